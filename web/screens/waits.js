// The inbox: what waits for a person, what fails, and what waits for something else, in all engines.

import { ago, command, cut, empty, html, nothing, outside, quoted, repeat, state } from "../lib/view.js";
import { api, query } from "../lib/api.js";
import { about, oneLine, revision, shortId, version } from "../lib/words.js";
import { to } from "../lib/router.js";
import { may } from "../lib/session.js";
import { several } from "../lib/several.js";
import { approve, decidePipeline, override, proceed, resume, sendDecision } from "../lib/approvals.js";
import { chooser, filters, loading } from "../lib/parts.js";
import { moment } from "../lib/time.js";

const GROUPS = [
  ["person", "Waits for a person", (item) => item.group === "person"],
  ["failing", "Does not go on as it is", (item) => item.group === "failing"],
  ["window", "Windows and delays", (item) => item.group === "waiting" && /window|delay|soaking|evaluating/i.test(item.reason)],
  ["lane", "Waits for its turn", (item) => item.group === "waiting" && item.reason === "lane"],
  ["other", "Waits for something else", (item) => item.group === "waiting" && item.reason !== "lane" && !/window|delay|soaking|evaluating/i.test(item.reason)],
];

const key = (item) => JSON.stringify([item.engine, item.project, item.name, item.shkeptncontext, item.stage, item.environment, item.id, item.reason, item.version]);
const decidable = (item) => (item.engine === "sequence" && item.reason === "approval") || (item.engine === "pipeline" && item.reason === "ApprovalNeeded");
const ours = (item) => decidable(item) && item.needs && may(item.needs, item.project);
const place = (item) => item.stage ?? item.environment ?? "";
const named = (item) => `${item.service ?? item.name ?? item.engine} ${item.engine === "pipeline" ? revision(item.version) : version(item.version)}`.trim();
const former = (item) => (item.engine === "pipeline" ? revision(item.from) : version(item.from));

/** Where more about it stands. */
function link(item) {
  if (item.shkeptncontext) return to("delivery", item.project, item.shkeptncontext);
  if (item.engine === "pipeline") return to("pipelines", item.project, item.name);
  if (item.engine === "deployment") return to("deployments", item.project, item.name);
  return to("operations");
}

export function open({ params, redraw }) {
  let values = params;
  let projects = [];
  let items = [];
  let clipped = [];
  let loaded = false;
  const chosen = new Set();
  const project = () => values.get("project") ?? "";

  async function read(signal) {
    if (!projects.length) projects = await api.projects(signal);
    const asked = project();
    let more = [];
    const found = await api.all("/v1/wait", { project: asked }, { signal, most: 10, each: (_, page) => { more = page.cut ?? []; } });
    if (asked !== project()) return true;
    [items, clipped, loaded] = [found, found.cut ? [...more, "items"] : more, true];
    const there = new Set(items.filter(ours).map(key));
    for (const one of chosen) if (!there.has(one)) chosen.delete(one);
    return items.some((item) => item.group !== "failing");
  }

  const decide = (item, decision) => (item.engine === "pipeline"
    ? decidePipeline({ ...item, namespace: item.project, revision: item.version }, decision)
    : approve({ ...item, context: item.shkeptncontext, image: item.version }, decision));

  function all(decision) {
    const some = items.filter((item) => chosen.has(key(item)) && ours(item));
    const label = decision === "approve" ? "Approve" : "Decline";
    several({
      title: `${label} ${some.length}`, label, danger: decision === "decline", reason: "optional",
      intro: decision === "approve" ? "These go on:" : "These do not go on:",
      each: some.map((item) => ({
        line: `${named(item)} in ${place(item)} of ${item.project}${item.from ? `, where ${former(item)} runs now` : ""}`,
        run: (message, once) => sendDecision(item, decision, message, once),
      })),
      after: () => chosen.clear(),
    });
  }

  /** What else lets it go on, beside decisions. */
  function onward(item) {
    const x = { ...item, context: item.shkeptncontext, subject: named(item), config: `${item.project}/${item.name}` };
    if (item.engine === "sequence" && item.reason === "window") return override(x);
    if (item.engine === "sequence" && item.reason === "resume") return resume(x);
    return item.engine === "deployment" && item.reason === "Held" ? proceed(x) : nothing;
  }

  /** What it waits for: a sequence's as in `keelway watch`, another's as its engine says it. */
  function why(item) {
    if (item.engine === "sequence") return state(about({ sequence: item.sequence, waits: item }));
    const name = item.group === "person" ? "person" : item.group === "failing" ? "fail" : "waits";
    return state({ sign: name, what: oneLine(item.message || item.reason, 200), time: "" });
  }

  const row = (item) => html`<tr>
    <td>${ours(item) ? html`<input type="checkbox" aria-label=${`Select ${named(item)} in ${place(item)}`} .checked=${chosen.has(key(item))}
      @change=${(event) => { event.currentTarget.checked ? chosen.add(key(item)) : chosen.delete(key(item)); redraw(); }}>` : nothing}</td>
    <th scope="row"><a href=${link(item)}>${named(item)}</a>${item.shkeptncontext ? html` <span class="dim">${shortId(item.shkeptncontext)}</span>` : nothing}
      <br><span class="dim">${[item.engine, item.project, place(item)].filter(Boolean).join(" · ")}</span>
      ${item.from ? html`<br><span class="dim">replaces ${former(item)}</span>` : nothing}</th>
    <td>${why(item)}
      ${item.approval?.needed > 1 ? html`<div class="dim">${item.approval.given} of ${item.approval.needed} approvals</div>` : nothing}
      ${item.by ? html`<div class="dim">by ${oneLine(item.by, 60)}</div>` : nothing}
      ${item.until ? html`<div class="dim">until ${moment(item.until)}</div>` : nothing}
      ${item.remedy ? html`<div>${oneLine(item.remedy, 240)}</div>` : nothing}
      ${item.url ? html`<div>${outside(item.url, "pull request")}</div>` : nothing}
      ${item.compareUrl ? html`<div>${outside(item.compareUrl, "compare")}</div>` : nothing}</td>
    <td>${ago(item.since)}</td>
    <td>${ours(item)
      ? html`<button class="small" aria-label=${`Approve ${named(item)} in ${place(item)}`} @click=${() => decide(item, "approve")}>Approve</button>
        <button class="small" aria-label=${`Decline ${named(item)} in ${place(item)}`} @click=${() => decide(item, "decline")}>Decline</button>`
      : item.needs && !may(item.needs, item.project) ? html`<span class="dim">takes ${item.needs}</span>` : onward(item)}</td>
  </tr>`;

  function section([name, title, test]) {
    const rows = items.filter(test);
    if (!rows.length) return nothing;
    const picked = rows.filter((item) => chosen.has(key(item))).length;
    return html`<section><h2>${title} <span class="dim">${rows.length}</span></h2>
      ${name === "person" && rows.some(ours) ? html`<p class="buttons">
        <button class="primary" ?disabled=${!picked} @click=${() => all("approve")}>Approve ${picked || ""} selected</button>
        <button ?disabled=${!picked} @click=${() => all("decline")}>Decline ${picked || ""} selected</button></p>` : nothing}
      <div class="wide" tabindex="0" role="region" aria-label=${title}><table class="rows">
        <caption class="unseen">${title}</caption>
        <thead><tr><td></td><th scope="col">What</th><th scope="col">Why</th><th scope="col">Since</th><td></td></tr></thead>
        <tbody>${repeat(rows, key, row)}</tbody>
      </table></div></section>`;
  }

  return {
    title: () => `What waits${project() ? ` in ${project()}` : ""}`,
    routed(params) {
      const before = project();
      values = params;
      if (project() === before) return;
      [items, loaded] = [[], false];
      chosen.clear();
      dispatchEvent(new Event("changed"));
    },
    read,
    view: () => html`
      <h1>What waits</h1>
      ${filters(chooser(projects, project()))}
      ${clipped.length ? cut(`There is more than is shown here: ${clipped.join(", ")}. Choose a project.`) : nothing}
      ${!loaded ? loading : items.length ? GROUPS.map(section) : empty("Nothing waits.", "What needs you shows up here, and in the title of this tab.")}
      ${command(`keelway status${project() ? ` -p ${quoted(project())}` : ""}`)}`,
  };
}
