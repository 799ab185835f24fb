// Deliveries of a project, the newest first: each as `keelway watch` shows it; several can be paused, resumed or aborted at once.

import { ago, command, empty, html, nothing, quoted, repeat, state } from "../lib/view.js";
import { api, path } from "../lib/api.js";
import { about, isOpen, moves, shortId, version } from "../lib/words.js";
import { change, to } from "../lib/router.js";
import { may } from "../lib/session.js";
import { several } from "../lib/several.js";
import { chooser, choice, filters, loading, more, noProject, search } from "../lib/parts.js";

const PAGE = 50;
const STATES = ["triggered", "started", "waiting", "waitingForApproval", "paused", "finished", "aborted", "timedOut"];
const WORDS = {
  pause: "The tasks that run go on; the next ones do not begin.",
  resume: "They go on where they are.",
  abort: "They end as aborted in every stage. What an executor has begun may go on.",
};

export function open({ params, redraw }) {
  let projects = [];
  let values = params;
  let list = [];
  let next;
  let pages = 1;
  let total;
  let loaded = false;
  const chosen = new Set();

  const project = () => values.get("project") || projects[0]?.projectName || "";
  const wanted = () => values.get("state") ?? "";
  const filter = () => values.get("filter") ?? "";

  async function read(signal) {
    if (!projects.length) projects = await api.projects(signal);
    const name = project();
    if (!name) return false;
    // Pages are read again from the first: what is new moves the others on.
    const found = await api.all(path`/v1/sequence/${name}`, { state: wanted(), pageSize: PAGE }, { member: "states", signal, most: pages, each: (_, page) => { total = page.totalCount; } });
    // An answer to an older choice is not shown under a newer one.
    if (name !== project()) return true;
    list = [...new Map(found.map((one) => [one.shkeptncontext, one])).values()];
    next = found.cut;
    loaded = true;
    for (const context of chosen) if (!list.some((one) => one.shkeptncontext === context)) chosen.delete(context);
    return list.some((one) => one.executions?.some(moves));
  }

  const image = (one) => one.executions?.findLast((x) => x.image)?.image;
  const subject = (one) => `${one.service} ${version(image(one))}`.trim();
  const shown = () => list.filter((one) => one.service.toLowerCase().includes(filter().toLowerCase()));
  const running = (one) => one.executions?.some(isOpen);
  const paused = (one) => one.executions?.some((x) => x.waits?.reason === "resume");
  const fits = { pause: (one) => running(one) && !paused(one), resume: paused, abort: running };

  function control(what) {
    const name = project();
    const some = shown().filter((one) => chosen.has(one.shkeptncontext) && fits[what](one));
    const label = what[0].toUpperCase() + what.slice(1);
    several({
      title: `${label} ${some.length} deliveries`, label, danger: what === "abort", intro: WORDS[what],
      each: some.map((one) => ({
        line: `${subject(one)} ${shortId(one.shkeptncontext)} in ${one.executions.filter(isOpen).map((x) => x.stage).join(", ")}`,
        run: (_, key) => api.post(path`/v1/sequence/${name}/${one.shkeptncontext}/control`, { state: what, stage: "" }, key),
      })),
      after: () => chosen.clear(),
    });
  }

  function row(one) {
    const id = one.shkeptncontext;
    return html`<tr>
      ${may("trigger", project()) ? html`<td>${running(one) ? html`<input type="checkbox" aria-label=${`Select ${subject(one)} ${shortId(id)}`} .checked=${chosen.has(id)}
        @change=${(event) => { event.currentTarget.checked ? chosen.add(id) : chosen.delete(id); redraw(); }}>` : nothing}</td>` : nothing}
      <th scope="row"><a href=${to("delivery", project(), id)}>${subject(one)}</a><br><span class="dim">${one.name} ${shortId(id)}</span></th>
      <td>${ago(one.time)}</td>
      <td>${(one.executions ?? []).length ? one.executions.map((x) => html`<div>${x.stage}${x.sequence === one.name ? "" : ` ${x.sequence}`} ${state(about(x))}</div>`) : "nothing has begun yet"}</td>
    </tr>`;
  }

  function table() {
    const rows = shown();
    if (!loaded) return loading;
    if (!rows.length) {
      return wanted() || filter()
        ? empty("No delivery matches.", next ? "Older ones are not read yet." : "", html`<button @click=${() => change({ state: "", filter: "" })}>Show all</button>`)
        : empty("Nothing has been delivered here yet.", html`Start with <code>keelway trigger delivery -p ${quoted(project())} -s SERVICE -i IMAGE</code>.`);
    }
    const picked = rows.filter((one) => chosen.has(one.shkeptncontext));
    return html`
      ${may("trigger", project()) ? html`<p class="buttons">${Object.keys(WORDS).map((what) => {
        const count = picked.filter(fits[what]).length;
        return html`<button class=${what === "abort" ? "danger" : ""} ?disabled=${!count} @click=${() => control(what)}>${what[0].toUpperCase() + what.slice(1)} ${count || ""}</button>`;
      })}</p>` : nothing}
      <div class="wide" tabindex="0" role="region" aria-label="Deliveries"><table class="rows">
        <caption class="unseen">Deliveries of ${project()}, the newest first</caption>
        <thead><tr>${may("trigger", project()) ? html`<td></td>` : nothing}<th scope="col">Delivery</th><th scope="col">Age</th><th scope="col">Stages</th></tr></thead>
        <tbody>${repeat(rows, (one) => one.shkeptncontext, row)}</tbody>
      </table></div>`;
  }

  return {
    title: () => `Deliveries${project() ? ` of ${project()}` : ""}`,
    routed(params) {
      const before = [project(), wanted()].join();
      values = params;
      if ([project(), wanted()].join() === before) return;
      [list, next, pages, loaded] = [[], undefined, 1, false];
      chosen.clear();
      dispatchEvent(new Event("changed"));
    },
    read,
    view: () => html`
      <h1>Deliveries</h1>
      ${filters(chooser(projects, project(), ""), choice("State", "state", STATES, wanted()), search("Service", "filter", filter()))}
      ${projects.length ? table() : noProject}
      ${next ? more("More", () => (pages += 1), html` <span class="dim">${list.length}${total ? ` of ${total}` : ""} are shown</span>`) : nothing}
      ${command(`keelway get sequences${project() ? ` -p ${quoted(project())}` : ""}${wanted() ? ` --state ${wanted()}` : ""}`)}`,
  };
}
