// Shipyards: the stages of a project as a drawing, with what follows what and what stands there; its text and its revisions.

import { ago, command, cut, html, nothing, quoted, state, svg } from "../lib/view.js";
import { about, moves, oneLine, revision, version } from "../lib/words.js";
import { api, path, query } from "../lib/api.js";
import { change, to } from "../lib/router.js";
import { changes, folded, follow, loading, noProject, table } from "../lib/parts.js";
import { moment, now } from "../lib/time.js";

/** What began and ended between two looks is seen after so long. */
const NEWS_MS = 60_000;
/** Services that the drawing shows in a stage. The table shows all. */
const STAND = 8;
const [WIDE, GAP, LINE, TOP] = [200, 70, 18, 32];

export const open = ({ parts, params }) => (parts[0] ? one(parts[0], { params }) : list());

function list() {
  let all;
  return {
    title: () => "Shipyards",
    async read(signal) {
      all = await api.projects(signal);
      return false;
    },
    view: () => html`<h1>Shipyards</h1>
      ${table("Projects and their stages", ["Project", "Stages", "Description"], all, (p) => p.projectName, (p) => [
        html`<a href=${to("shipyard", p.projectName)}>${p.projectName}</a>`, p.stages.map((s) => s.stageName).join(", "), oneLine(p.description, 200)],
        noProject)}
      ${command("keelway get projects")}`,
  };
}

/** stage → sequences `{name, tasks, after}`: `after` has what starts them, and `on` the same in words. */
function structure(plan) {
  const sources = ({ event }) => {
    const [stage, what] = event.replace(/\.finished$/, "").split(".");
    const all = plan.stages.find((one) => one.name === stage)?.sequences ?? [];
    return all.filter((s) => s.name === what || s.tasks.includes(what)).map((s) => `${stage}.${s.name}`);
  };
  const words = ({ event, selector }) => `${event}${selector.length ? ` with ${selector.join(", ")}` : ""}`;
  const sequence = (s) => ({ ...s, after: new Set(s.triggeredOn.flatMap(sources)), on: s.triggeredOn.map(words) });
  return plan.stages.map((stage) => [stage.name, stage.sequences.map(sequence)]);
}

function drawing(name, all, cells) {
  const boxes = new Map();
  let height = 0;
  const columns = all.map(([stage, sequences], i) => {
    const x = i * (WIDE + GAP) + 4;
    let y = TOP;
    const drawn = sequences.map((s) => {
      const box = { x, y, h: LINE * (s.tasks.length + 1) + 10 };
      boxes.set(`${stage}.${s.name}`, box);
      y += box.h + 22;
      return svg`<rect x=${x} y=${box.y} width=${WIDE} height=${box.h} rx="5"/>
        <text x=${x + 10} y=${box.y + LINE}><tspan class="name">${oneLine(s.name, 24)}</tspan>${s.tasks.map((t) => svg`<tspan x=${x + 20} dy=${LINE}>${oneLine(t, 22)}</tspan>`)}</text>`;
    });
    const here = cells.filter((c) => c.stage === stage && c.image);
    const lines = here.slice(0, STAND).map((c) => `${oneLine(c.service, 14)} ${oneLine(version(c.image), 12)}`);
    if (here.length > STAND) lines.push(`and ${here.length - STAND} more, below`);
    height = Math.max(height, y + LINE * (lines.length + 1));
    return svg`<text class="name" x=${x} y="20">${oneLine(stage, 24)}</text>${drawn}${lines.map((l, n) => svg`<text class="stood" x=${x + 10} y=${y + LINE * n}>${l}</text>`)}`;
  });
  const arrow = (from, name) => {
    const [a, b] = [boxes.get(from), boxes.get(name)];
    if (!a || !b || a === b) return nothing;
    const [x1, y1, x2, y2] = a.x === b.x ? [a.x + WIDE / 2, a.y + a.h, b.x + WIDE / 2, b.y] : [a.x + WIDE, a.y + a.h / 2, b.x, b.y + b.h / 2];
    return svg`<path class="arrow" d=${a.x === b.x ? `M${x1} ${y1}L${x2} ${y2}` : `M${x1} ${y1}C${x1 + 35} ${y1} ${x2 - 35} ${y2} ${x2} ${y2}`} marker-end="url(#head)"/>`;
  };
  const width = Math.max(0, all.length * (WIDE + GAP) - GAP + 8);
  return html`<div class="wide" tabindex="0" role="region" aria-label="Drawing"><svg class="drawing" role="img" aria-label="Stages and sequences of ${name}; the table below says the same" width=${width} height=${height}>
    <defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
    ${columns}${all.map(([stage, sequences]) => sequences.map((s) => [...s.after].map((from) => arrow(from, `${stage}.${s.name}`))))}</svg></div>`;
}

function one(name, held) {
  const base = path`/v1/project/${name}`;
  let [plan, cells, revisions, text, diff, last, since] = [undefined, [], [], "", undefined, "", 0];

  async function read(signal) {
    const { sequenceExecutions: open } = await api.get(`/v1/sequence-execution${query({ project: name, pageSize: 100, open: true })}`, { signal });
    const page = await api.all(`${base}/shipyard/revisions`, {}, { signal, most: 1 });
    if (page[0]?.number !== revisions[0]?.number || !plan) {
      plan = await api.get(`${base}/shipyard/plan`, { signal });
      text = await api.get(`${base}/shipyard`, { signal });
      revisions = page;
    }
    // What stands where is read again when something has begun or ended, and now and then: it may have done both.
    const sum = JSON.stringify(open.map((x) => x.id));
    if (sum !== last || now() - since > NEWS_MS) {
      since = now();
      cells = await api.all(`${base}/environment`, {}, { signal, most: 5 });
      last = sum;
    }
    for (const cell of cells) cell.coming = open.filter((x) => x.stage === cell.stage && x.service === cell.service);
    const asked = query({ from: held.params.get("from") ?? "", to: held.params.get("to") ?? "" });
    const key = `${asked} ${revisions[0]?.number}`;
    if (!asked.includes("from=")) diff = undefined;
    else if (diff?.key !== key) diff = { ...(await api.get(`${base}/shipyard/diff${asked}`, { signal })), key };
    return open.some(moves);
  }

  /** From a revision to the one that is in force, or to another one. */
  const compare = () => html`<form class="filters" @submit=${(event) => event.preventDefault()}>${["from", "to"].map((which) => html`<label>${which === "from" ? "What changed from" : "to"}
    <select @change=${(event) => change({ [which]: event.currentTarget.value })}><option value="">${which === "from" ? "choose a revision" : "the one in force"}</option>
      ${revisions.map((r) => html`<option value=${r.revision} ?selected=${r.revision === held.params.get(which)}>${r.number} ${revision(r.revision)}</option>`)}</select></label>`)}</form>`;

  return {
    title: () => `Shipyard of ${name}`,
    routed: follow(held),
    read,
    view: () => {
      if (!plan) return html`<h1>Shipyard of ${name}</h1>${loading}`;
      const all = structure(plan);
      return html`<p><a href=${to("shipyard")}>‹ Shipyards</a> · <a href=${to("environments", { project: name })}>Environments of ${name}</a></p>
        <h1>Shipyard of ${name}</h1>
        ${drawing(name, all, cells)}
        ${table("Stages", ["Stage", "Sequences", "Services"], all, ([stage]) => stage, ([stage, sequences]) => [stage,
          sequences.length ? sequences.map((s) => html`<div><strong>${s.name}</strong>: ${s.tasks.join(", ")} <span class="dim">${s.on.length ? `after ${s.on.join(", or ")}` : ""}</span></div>`)
            : html`<span class="dim">none</span>`,
          cells.filter((c) => c.stage === stage).map((c) => html`<div>${c.service} <strong>${version(c.image) || "no version"}</strong> <span class="dim">${ago(c.since)}</span>
            ${(c.coming ?? []).map((x) => html`<a class="line" href=${to("delivery", name, x.shkeptncontext)}>${state(about(x))}</a>`)}</div>`)])}
        ${cells.cut ? cut("Only the first 500 services are shown here.") : nothing}
        ${folded("The text in force", text)}
        <h2>Revisions</h2>
        ${table("Revisions", ["Revision", "Applied", "By", "State"], revisions, (r) => r.number,
          (r) => [html`${r.number} <code>${revision(r.revision)}</code>`, moment(r.applied), oneLine(r.by, 60), r.inForce ? state({ sign: "pass", what: "in force" }) : ""])}
        ${revisions.cut ? cut("Only the newest 100 revisions are shown here.") : nothing}
        ${revisions.length > 1 ? compare() : nothing}
        ${diff ? html`${changes(diff.changes, "Nothing differs.")}${command(`keelway diff shipyard ${quoted(name)} ${revision(diff.from)} ${revision(diff.to)}`)}` : nothing}
        ${command(`keelway get shipyard ${quoted(name)}`)}`;
    },
  };
}
