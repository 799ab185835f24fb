// Calendar: what the schedules trigger and what opens in the next 14 days, and what is closed now.

import { act, chooser, folded, follow, loading, table } from "../lib/parts.js";
import { api, path } from "../lib/api.js";
import { about, oneLine, shortId, version } from "../lib/words.js";
import { command, cut, empty, html, nothing, quoted, state } from "../lib/view.js";
import { left, moment, now, ZONE } from "../lib/time.js";
import { may } from "../lib/session.js";
import { to } from "../lib/router.js";

const DAYS = 14;
/** Without a choice, so many projects are read. */
const PROJECTS = 5;

/** A time in the reader's zone, and in the other one where they differ. */
const both = (time, zone = ZONE) => html`<time datetime=${time}>${moment(time)}</time>${zone === ZONE ? nothing : html`<div class="dim">${moment(time, zone)} in ${zone}</div>`}`;
const closed = (e) => e.conditions?.find((c) => c.reason === "WindowClosed");

export function open({ params }) {
  const held = { params };
  const texts = new Map();
  let [projects, schedules, waiting, gates] = [[], undefined, [], []];
  const chosen = () => held.params.get("project") ?? "";
  const names = () => (chosen() ? [chosen()] : projects.slice(0, PROJECTS).map((p) => p.projectName));

  async function read(signal) {
    projects = await api.all("/v1/project", {}, "projects", { signal });
    const found = [[], [], []];
    for (const project of names()) {
      const of = projects.find((p) => p.projectName === project)?.shipyardVersion;
      if (texts.get(project)?.of !== of || !of) texts.set(project, { of, text: await api.get(path`/v1/project/${project}/shipyard`, { signal }) });
      found[0].push(...(await api.all(path`/v1/schedules/${project}`, {}, "schedules", { signal })));
      const { queues } = await api.get(path`/v1/project/${project}/queue`, { signal });
      found[1].push(...queues.flatMap(({ service, waiting: all }) => all.filter((x) => x.waits?.reason === "window").map((x) => ({ ...x, project, service }))));
      for (const one of (await api.all("/v1/pipelines", { namespace: project }, "pipelines", { signal })).filter(closed)) {
        const { environments } = await api.get(path`/v1/pipelines/${one.namespace}/${one.name}`, { signal });
        found[2].push(...environments.filter((e) => e.nextOpening || closed(e)).map((e) => ({ ...e, pipeline: one })));
      }
    }
    [schedules, waiting, gates] = found;
    return false;
  }

  function days() {
    const stages = Map.groupBy(waiting.filter((x) => x.waits.until), (x) => JSON.stringify([x.project, x.stage, x.waits.until]));
    const entries = [
      ...schedules.filter((s) => s.next).map((s) => ({ at: s.next, zone: s.zone ?? "UTC", key: `schedule/${s.project}/${s.name}`, sign: "waits",
        what: `${s.name} triggers ${s.sequence} of ${s.services.join(", ")} in ${s.stage} of ${s.project}`, then: s.cron ? `and then by ${s.cron}, zone ${s.zone ?? "UTC"}` : "" })),
      ...[...stages].map(([key, all]) => ({ at: all[0].waits.until, key, sign: "frozen", what: `${all[0].stage} of ${all[0].project} opens`, then: `then begin: ${all.map((x) => x.service).join(", ")}` })),
      ...gates.filter((e) => e.nextOpening).map((e) => ({ at: e.nextOpening, key: `pipeline/${e.pipeline.namespace}/${e.pipeline.name}/${e.name}`, sign: "frozen", what: `${e.name} of the pipeline ${e.pipeline.namespace}/${e.pipeline.name} opens` })),
    ].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
    const soon = entries.filter((e) => Date.parse(e.at) <= now() + DAYS * 86_400_000);
    return html`${table(`The next ${DAYS} days`, ["When", "In", "What"], soon, (e) => e.key, (e) => [both(e.at, e.zone), left(e.at), html`${state(e)}<div class="dim">${e.then}</div>`],
      empty(`Nothing is known for the next ${DAYS} days.`, html`<code>keelway apply -f FILE</code> with a manifest of kind <code>Schedule</code> triggers sequences by the clock.`))}
      ${entries.length > soon.length ? html`<p class="dim">${entries.length - soon.length} more later: ${moment(entries[soon.length].at)} is the next one.</p>` : nothing}`;
  }

  const override = (x) => act("Override", `the window of ${x.stage}`,
    `${`${x.service} ${version(x.image)}`.trim()} begins in ${x.stage} of ${x.project} although it is closed: ${about(x).what}. It counts for all of this delivery in ${x.stage}.`,
    `keelway override ${quoted(shortId(x.shkeptncontext))} --stage ${quoted(x.stage)} -p ${quoted(x.project)} -m WHY`,
    (reason, key) => api.post(path`/v1/sequence/${x.project}/${x.shkeptncontext}/override`, { reason, stage: x.stage }, key), { reason: "required", danger: true });

  const all = () => html`<h2>The next ${DAYS} days</h2>${days()}
    <h2>Closed now</h2>
    ${table("Sequences that wait for a window", ["Sequence", "Stage", "Why", "Opens", ""], waiting, (x) => x.id, (x) => [
      html`<a href=${to("delivery", x.project, x.shkeptncontext)}>${x.sequence} of ${x.service} ${version(x.image)}</a>`, `${x.stage} of ${x.project}`, state(about(x)), x.waits.until ? both(x.waits.until) : "not known",
      may(`approve:${x.stage}`, x.project) ? override(x) : nothing], html`<p>No sequence waits for a window.</p>`)}
    ${table("Environments of pipelines that are closed", ["Environment", "Pipeline", "Why", "Opens"], gates, (e) => `${e.pipeline.namespace}/${e.pipeline.name}/${e.name}`, (e) => [
      e.name, html`<a href=${to("pipelines", e.pipeline.namespace, e.pipeline.name)}>${e.pipeline.namespace}/${e.pipeline.name}</a>`,
      state({ sign: "frozen", what: oneLine(closed(e)?.message ?? "closed", 200) }), e.nextOpening ? both(e.nextOpening) : "not known"], nothing)}
    <h2>Schedules</h2>
    ${table("Schedules", ["Schedule", "Triggers", "When", "Last"], schedules, (s) => `${s.project}/${s.name}`, (s) => [
      `${s.project}/${s.name}`, `${s.sequence} in ${s.stage}: ${s.services.join(", ")}`,
      html`${s.cron ? html`<code>${s.cron}</code>` : "once"} <span class="dim">${s.zone ?? "UTC"}</span><div>${s.suspended ? state({ sign: "frozen", what: "suspended" }) : s.next ? both(s.next, s.zone ?? "UTC") : s.planned ? "not any more" : "about to be planned"}</div>`,
      html`${s.last ? `${moment(s.last.at)}${s.last.late ? ", late" : ""}${s.last.skipped.length ? `, left out: ${s.last.skipped.join(", ")}` : ""}` : "never"}
        ${(s.runs ?? []).map((r) => html`<div><a href=${to("delivery", s.project, r.shkeptncontext)}>${r.service} ${shortId(r.shkeptncontext)}</a></div>`)}`])}
    <h2>Windows</h2>
    <p class="dim">They stand in shipyards and pipelines. Above is when a stage opens that something waits for.</p>
    ${names().map((project) => (/\bwindows\b/.test(texts.get(project)?.text) ? folded(`Shipyard of ${project}`, texts.get(project).text) : nothing))}`;

  return {
    title: () => "Calendar",
    routed: follow(held),
    read,
    view: () => html`<h1>Calendar</h1>
      <form class="filters" @submit=${(event) => event.preventDefault()}>${chooser(projects, chosen())}<span class="dim">Times in ${ZONE}, and in the zone of a schedule</span></form>
      ${!chosen() && projects.length > PROJECTS ? cut(`Only the first ${PROJECTS} of ${projects.length} projects are shown: choose one.`) : nothing}
      ${schedules ? all() : loading}
      ${command(`keelway get queue${chosen() ? ` -p ${quoted(chosen())}; keelway get schedules -p ${quoted(chosen())}` : ""}`)}`,
  };
}
