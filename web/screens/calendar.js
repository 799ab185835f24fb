// Calendar: what the schedules trigger, when stages are closed in the next 14 days, and what waits for that.

import { chooser, filters, follow, loading, table } from "../lib/parts.js";
import { override } from "../lib/approvals.js";
import { api, path } from "../lib/api.js";
import { oneLine, shortId, version } from "../lib/words.js";
import { command, cut, empty, html, nothing, quoted, state } from "../lib/view.js";
import { age, between, left, moment, now, ZONE } from "../lib/time.js";
import { may } from "../lib/session.js";
import { to } from "../lib/router.js";

const DAYS = 14;
/** Without a choice, so many projects are read, and so many pipelines. */
const PROJECTS = 5;
const PIPELINES = 20;
const AGAIN_MS = 600_000;

/** A time in the reader's zone, and in the other one where they differ. */
const both = (time, zone = ZONE) => html`<time datetime=${time}>${moment(time)}</time>${zone === ZONE ? nothing : html`<div class="dim">${moment(time, zone)} in ${zone}</div>`}`;
const isClosed = (x) => x.reason === "window" || x.reason === "WindowClosed";
/** What is closed: a stage of a project, or an environment of a pipeline. */
const place = (x) => (x.engine === "pipeline" ? `${x.environment} of the pipeline ${x.project}/${x.name}` : `${x.stage} of ${x.project}`);
const subject = (x) => (x.engine === "pipeline" ? x.version ?? "" : `${x.sequence} of ${x.service} ${version(x.version)}`.trim());

export function open({ params }) {
  const held = { params };
  const plans = new Map();
  let [projects, schedules, closed, pipelines] = [[], undefined, [], []];
  const chosen = () => held.params.get("project") ?? "";
  const names = () => (chosen() ? [chosen()] : projects.slice(0, PROJECTS).map((p) => p.projectName));

  async function read(signal) {
    projects = await api.projects(signal);
    const found = [];
    for (const name of names()) {
      plans.set(name, await api.get(path`/v1/project/${name}/shipyard/plan`, { signal }));
      found.push(...(await api.all(path`/v1/schedules/${name}`, {}, { signal })));
    }
    pipelines = await pipelinePlans(signal);
    closed = (await api.all("/v1/wait", { project: chosen() }, { signal, most: 11 })).filter(isClosed);
    schedules = found;
    return false;
  }

  /** Their definitions change rarely: a plan is read again when its pipeline was applied again, and every ten minutes. */
  async function pipelinePlans(signal) {
    const all = (await api.all("/v1/pipelines", {}, { signal, most: 5 })).filter((p) => !chosen() || p.namespace === chosen());
    const some = all.slice(0, PIPELINES);
    for (const p of some) {
      const [key, known] = [`${p.namespace}/${p.name}`, plans.get(`${p.namespace}/${p.name}`)];
      if (known?.applied === p.appliedAt && now() - known.at < AGAIN_MS) continue;
      plans.set(key, { ...(await api.get(path`/v1/pipelines/${p.namespace}/${p.name}/plan`, { signal })), applied: p.appliedAt, at: now() });
    }
    return Object.assign(some, { cut: all.cut || all.length > some.length });
  }

  /** What has windows: the stages of the projects, and the environments of the pipelines. */
  const windowed = () => [
    ...names().flatMap((project) => (plans.get(project)?.stages ?? []).map((stage) => ({ ...stage, of: project }))),
    ...pipelines.flatMap((p) => (plans.get(`${p.namespace}/${p.name}`)?.environments ?? []).map((e) => ({ ...e, of: `the pipeline ${p.namespace}/${p.name}` }))),
  ];

  function days() {
    const opens = Map.groupBy(closed.filter((x) => x.until && x.engine === "pipeline"), (x) => `${place(x)} ${x.until}`);
    const closes = windowed().flatMap((it) => it.closures.map((c) => ({
      at: c.from, key: `${it.of}/${it.name}/${c.from}`, sign: "frozen", what: `${it.name} of ${it.of} is closed: ${oneLine(c.reason, 160)}`,
      then: c.until ? `until ${moment(c.until)}, for ${between(c.from, c.until)}` : "and does not open again",
    })));
    const entries = [
      ...closes,
      ...schedules.filter((s) => s.next).map((s) => ({ at: s.next, zone: s.zone ?? "UTC", key: `${s.project}/${s.name}`, sign: "waits",
        what: `${s.name} triggers ${s.sequence} of ${s.services.join(", ")} in ${s.stage} of ${s.project}`, then: s.cron ? `and then by ${s.cron}, zone ${s.zone ?? "UTC"}` : "" })),
      ...[...opens].map(([key, all]) => ({ at: all[0].until, key, sign: "frozen", what: `${place(all[0])} opens`, then: `then begin: ${all.map(subject).join(", ")}` })),
    ].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
    const soon = entries.filter((e) => Date.parse(e.at) <= now() + DAYS * 86_400_000);
    return html`${table(`The next ${DAYS} days`, ["When", "In", "What"], soon, (e) => e.key, (e) => [both(e.at, e.zone), Date.parse(e.at) <= now() ? "now" : left(e.at), html`${state(e)}<div class="dim">${e.then}</div>`],
      empty(`Nothing is known for the next ${DAYS} days.`, html`<code>keelway apply -f FILE</code> with a manifest of kind <code>Schedule</code> triggers sequences by the clock.`))}
      ${entries.length > soon.length ? html`<p class="dim">${entries.length - soon.length} more later: ${moment(entries[soon.length].at)} is the next one.</p>` : nothing}`;
  }

  const all = () => html`<h2>The next ${DAYS} days</h2>${days()}
    <h2>Closed now</h2>
    ${table("What waits for a window", ["What", "Where", "Why", "Opens", ""], closed, (x) => `${place(x)} ${x.shkeptncontext} ${x.sequence} ${x.version}`, (x) => [
      html`<a href=${x.engine === "pipeline" ? to("pipelines", x.project, x.name) : to("delivery", x.project, x.shkeptncontext)}>${subject(x) || x.name}</a>`, place(x),
      state({ sign: "frozen", what: oneLine(x.window || x.message || "closed", 200), time: age(x.since) }), x.until ? both(x.until) : "not known",
      x.engine === "sequence" && may(`approve:${x.stage}`, x.project) ? override({ ...x, context: x.shkeptncontext, subject: subject(x) }) : nothing], html`<p>Nothing waits for a window.</p>`)}
    <h2>Schedules</h2>
    ${table("Schedules", ["Schedule", "Triggers", "When", "Last"], schedules, (s) => `${s.project}/${s.name}`, (s) => [
      `${s.project}/${s.name}`, `${s.sequence} in ${s.stage}: ${s.services.join(", ")}`,
      html`${s.cron ? html`<code>${s.cron}</code>` : "once"} <span class="dim">${s.zone ?? "UTC"}</span>
        <div>${s.suspended ? state({ sign: "frozen", what: "suspended" }) : s.next ? both(s.next, s.zone ?? "UTC") : s.planned ? "not any more" : "about to be planned"}</div>`,
      html`${s.last ? `${moment(s.last.at)}${s.last.late ? ", late" : ""}${s.last.skipped.length ? `, left out: ${s.last.skipped.join(", ")}` : ""}` : "never"}
        ${(s.runs ?? []).map((r) => html`<div><a href=${to("delivery", s.project, r.shkeptncontext)}>${r.service} ${shortId(r.shkeptncontext)}</a></div>`)}`])}
    <h2>Windows</h2>
    ${windowed().some((it) => it.windows.length) ? windowed().filter((it) => it.windows.length).map((it) => html`<h3>${it.name} of ${it.of}</h3>
      <ul>${it.windows.map((window) => html`<li>${oneLine(window, 300)}</li>`)}</ul>`) : html`<p>No stage and no environment has windows: everything begins at any time.</p>`}
    ${pipelines.cut ? cut(`Only the windows of the first ${PIPELINES} pipelines are shown: choose a project.`) : nothing}`;

  return {
    title: () => "Calendar",
    routed: follow(held),
    read,
    view: () => html`<h1>Calendar</h1>
      ${filters(chooser(projects, chosen()), html`<span class="dim">Times in ${ZONE}, and in the zone of a schedule</span>`)}
      ${!chosen() && projects.length > PROJECTS ? cut(`Only the first ${PROJECTS} of ${projects.length} projects are shown: choose one.`) : nothing}
      ${schedules ? all() : loading}
      ${command(`keelway get queue${chosen() ? ` -p ${quoted(chosen())}; keelway get schedules -p ${quoted(chosen())}` : ""}`)}`,
  };
}
