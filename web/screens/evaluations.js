// Evaluations: the objectives of a service in a stage over its runs, the score over time, and one run in full: each value with its
// targets, and what it was compared with.

import { command, cut, empty, html, nothing, quoted, repeat, state, svg } from "../lib/view.js";
import { act, chooser, facts, filters, follow, loading, more, noProject, search, table } from "../lib/parts.js";
import { api, path } from "../lib/api.js";
import { between, moment, short } from "../lib/time.js";
import { may } from "../lib/session.js";
import { oneLine, revision, shortId } from "../lib/words.js";
import { to } from "../lib/router.js";

const PAGE = 20;
const OPEN = { waiting: ["waits", "is about to be measured"], measuring: ["runs", "is measured"], asked: ["runs", "waits for the provider's values"] };
/** The chart, in pixels. */
const [WIDE, HIGH, LEFT, EDGE] = [640, 150, 34, 12];

const number = (value) => (typeof value === "number" ? String(Number(value.toPrecision(6))) : "none");
const signOf = (result) => ({ pass: "pass", warning: "warning", fail: "fail" })[result] ?? "void";

/** How a run ended. What was let through without an evaluation has not passed one. */
function verdict(x) {
  const [sign, what] = OPEN[x.state] ?? [signOf(x.result), `${x.result ?? ""}${x.status && x.status !== "succeeded" ? ` (${x.status})` : ""}`];
  if (OPEN[x.state]) return { sign, what };
  if (!x.evaluated) return { sign: "void", what: "not evaluated" };
  return x.invalidated ? { sign: "void", what: `invalidated, was ${what} ${number(x.score)}` } : { sign, what: `${what} ${number(x.score)}` };
}

export const open = ({ parts, params }) => (parts.length > 2 ? one(parts, { params }) : list({ params }));

function list(held) {
  let [projects, looked, cells, of] = [[], false, undefined, ""];
  const project = () => held.params.get("project") || projects[0]?.projectName || "";
  const stages = () => (projects.find((p) => p.projectName === project())?.stages ?? []).map((s) => s.stageName);
  const services = () => cells && of === project() && [...new Set(cells.map((c) => c.service))].sort().filter((name) => name.toLowerCase().includes((held.params.get("filter") ?? "").toLowerCase()));
  return {
    title: () => "Evaluations",
    routed: follow(held),
    async read(signal) {
      if (!projects.length) projects = await api.projects(signal);
      looked = true;
      const name = project();
      if (name) [cells, of] = [await api.all(path`/v1/project/${name}/environment`, {}, { signal, most: 5 }), name];
      return false;
    },
    view: () => html`<h1>Evaluations</h1>
      ${filters(chooser(projects, project(), ""), search("Service", "filter", held.params.get("filter") ?? ""))}
      ${cells?.cut ? cut("Only the first 500 services are shown here.") : nothing}
      ${looked && !projects.length ? noProject : table("Services and their stages", ["Service", ...stages()], services(), (s) => s,
        (s) => [s, ...stages().map((stage) => html`<a href=${to("evaluations", project(), stage, s)}>${stage}<span class="unseen"> of ${s}</span></a>`)],
        empty("No service is here yet.", html`The first delivery makes one: <code>keelway trigger delivery -p ${quoted(project())} -s SERVICE -i IMAGE</code>.`))}
      ${command(`keelway get environments${project() ? ` -p ${quoted(project())}` : ""}`)}`,
  };
}

/** The score over time. Each result has a shape of its own; what was not evaluated has no score. */
function chart(runs, chosen) {
  const all = [...runs].reverse();
  const x = (i) => LEFT + EDGE + (all.length > 1 ? (i * (WIDE - LEFT - 2 * EDGE)) / (all.length - 1) : (WIDE - LEFT) / 2 - EDGE);
  const y = (score) => EDGE + ((100 - score) * (HIGH - 2 * EDGE)) / 100;
  const scored = all.map((run, i) => ({ run, at: [x(i), y(Math.min(100, Math.max(0, run.score)))], sign: verdict(run).sign })).filter(({ run }) => run.evaluated && typeof run.score === "number");
  const shape = ([a, b], sign) => ({
    pass: svg`<circle cx=${a} cy=${b} r="5"/>`, warning: svg`<path d="M${a} ${b - 6}l6 11h-12z"/>`,
    fail: svg`<path class="arrow" d="M${a - 5} ${b - 5}l10 10m0-10l-10 10"/>`,
  })[sign] ?? svg`<circle class="hollow" cx=${a} cy=${b} r="5"/>`;
  const told = scored.map(({ run }) => `${number(run.score)} ${verdict(run).what.split(" ")[0]}`).join(", ");
  return html`<div class="wide" tabindex="0" role="region" aria-label="Score over time"><svg class="drawing chart" role="img" width=${WIDE} height=${HIGH + 18} aria-label=${`Scores, the oldest first: ${told || "none"}`}>
    ${[0, 50, 100].map((score) => svg`<line x1=${LEFT} x2=${WIDE} y1=${y(score)} y2=${y(score)}/><text x=${LEFT - 6} y=${y(score) + 4} text-anchor="end">${score}</text>`)}
    <polyline points=${scored.filter(({ sign }) => sign !== "void").map(({ at }) => at.join(",")).join(" ")}/>
    ${scored.map(({ run, at, sign }) => svg`<g class=${sign}>${run === chosen ? svg`<circle class="ring" cx=${at[0]} cy=${at[1]} r="10"/>` : nothing}${shape(at, sign)}</g>`)}
    <text x=${LEFT} y=${HIGH + 12}>${short(all[0].end)}</text>${all.length > 1 ? svg`<text x=${WIDE} y=${HIGH + 12} text-anchor="end">${short(all.at(-1).end)}</text>` : nothing}</svg></div>
    <p class="dim">● pass ▲ warning ✕ fail ○ invalidated; a run that was not evaluated has no score.</p>`;
}

function one([project, stage, service], held) {
  let [runs, pages] = [undefined, 1];
  const base = path`/v1/project/${project}/stage/${stage}/service/${service}/evaluation`;
  const here = (x) => to("evaluations", project, stage, service, { run: x.id });
  const wanted = () => held.params.get("run");
  const chosen = () => (wanted() ? runs.find((x) => x.id === wanted() || x.context === wanted()) : runs[0]);
  const link = (id) => { const x = runs.find((run) => run.id === id); return html`<div><a href=${here({ id })}>${x ? moment(x.end) : shortId(id)}</a></div>`; };

  function heat(shown) {
    const all = [...runs].reverse();
    const slis = new Map(runs.flatMap((x) => x.indicators ?? []).map((i) => [i.value.metric, i]).reverse());
    const cell = (x, metric) => {
      const i = x.indicators?.find((one) => one.value.metric === metric);
      if (!i) return html`<td class="dim">–<span class="unseen"> not measured</span></td>`;
      return html`<td class="heat ${signOf(i.status)}">${state({ sign: signOf(i.status), what: i.value.success ? number(i.value.value) : "no value" })}</td>`;
    };
    return html`<div class="wide late" tabindex="0" role="region" aria-label="Objectives by run"><table class="matrix" .style=${`min-width:${8 * all.length + 10}rem`}>
      <caption class="unseen">Objectives, and their values in each run, the oldest first</caption>
      <thead><tr><th scope="col">Objective</th>${all.map((x) => html`<th scope="col"><a href=${here(x)} aria-current=${x === shown ? "true" : nothing}><time datetime=${x.end} title=${moment(x.end)}>${short(x.end)}</time></a><div>${state(verdict(x))}</div></th>`)}</tr></thead>
      <tbody>${repeat([...slis].reverse(), ([metric]) => metric, ([metric, i]) => html`<tr><th scope="row">${i.displayName || metric}${i.keySli ? html`<div class="dim">key</div>` : nothing}</th>${all.map((x) => cell(x, metric))}</tr>`)}</tbody>
    </table></div>`;
  }

  const targets = (all) => (all ?? []).map((t) => html`<div>${state({ sign: t.violated ? "fail" : "pass", what: `${t.criteria}${t.criteria.includes(number(t.targetValue)) ? "" : ` = ${number(t.targetValue)}`}` })}</div>`);
  const row = (i) => {
    const { metric, value, comparedValue: was, message, success } = i.value;
    const change = success && was ? `${value >= was ? "+" : ""}${(((value - was) / Math.abs(was)) * 100).toFixed(1)} %` : "";
    return [html`${i.displayName || metric}<div class="dim">${i.displayName && i.displayName !== metric ? metric : ""}${i.keySli ? " key" : ""}</div>`,
      html`${success ? number(value) : "none"}${message ? html`<div class="dim">${oneLine(message, 200)}</div>` : nothing}`,
      html`${was ? number(was) : "–"} <span class="dim">${change}</span>`, targets(i.passTargets), targets(i.warningTargets), number(i.score), state({ sign: signOf(i.status), what: i.status })];
  };

  function run(x) {
    const counts = x.state === "finished" && x.evaluated && !x.invalidated;
    return html`<h2>Run of ${moment(x.end)} <span class="dim">${shortId(x.id)}</span></h2>
      ${facts({
        Result: state(verdict(x)), Message: oneLine(x.message, 600), Notes: (x.notes ?? []).map((note) => html`<div>⚠ ${oneLine(note, 400)}</div>`),
        Window: `${moment(x.start)} to ${moment(x.end)}, ${between(x.start, x.end)}`, Provider: x.provider,
        "Compared with": x.evaluated && ((x.comparedEvents ?? []).length ? x.comparedEvents.map(link) : "nothing: no earlier run counts"),
        ...(x.pipeline
          ? { Pipeline: html`<a href=${to("pipelines", ...x.pipeline.split("/"))}>${x.pipeline}</a> <span class="dim">${revision(x.revision ?? "")} in ${x.environment}</span>` }
          : { Delivery: html`<a href=${to("delivery", project, x.context)}>${shortId(x.context)}</a>` }),
      })}
      ${counts && may("trigger", project) ? html`<p class="buttons">${act("Invalidate", "", "Later runs are not compared with it any more. What it has decided stays decided.",
        `keelway evaluation invalidate ${quoted(x.id)}`, (_, key) => api.post(`${base}/${encodeURIComponent(x.id)}/invalidate`, undefined, key), { title: `Invalidate the run of ${moment(x.end)}`, kind: "danger", danger: true })}</p>` : nothing}
      ${table("Objectives of this run", ["Objective", "Value", "Before", "Pass if", "Warning if", "Score", "Status"], x.indicators ?? [], (i) => i.value.metric, row,
        html`<p>${OPEN[x.state] ? "There are no values yet." : "Nothing was measured."}</p>`)}
      ${command(`keelway evaluation show ${quoted(x.id)}`)}`;
  }

  const whole = (shown) => html`${chart(runs, shown)}
    <h2>Objectives by run</h2>
    ${heat(shown)}
    ${runs.cut ? more("Show older runs", () => (pages += 1)) : nothing}
    ${shown ? run(shown) : empty("This run is not among those that are shown.", html`<a href=${here(runs[0])}>The newest run</a>`)}`;

  return {
    title: () => `Evaluations of ${service} in ${stage}`,
    routed: (params) => { held.params = params; },
    async read(signal) {
      runs = await api.all(base, { pageSize: PAGE }, { signal, most: pages });
      return runs.some((x) => OPEN[x.state]);
    },
    view: () => html`<p><a href=${to("evaluations", { project })}>‹ Evaluations of ${project}</a> · <a href=${to("environments", { project, filter: service })}>Environments of ${service}</a></p>
      <h1>${service} in ${stage}</h1>
      ${!runs ? loading : runs.length ? whole(chosen()) : empty("Nothing was evaluated here yet.", html`A task <code>evaluation</code> of a sequence does it, where the project has objectives (<code>slo.yaml</code>).`)}
      ${command(`keelway get evaluations -p ${quoted(project)} --stage ${quoted(stage)} --service ${quoted(service)}`)}`,
  };
}
