// Environments: which version runs where, what is on its way, and what blocks it.

import { ago, command, cut, empty, html, nothing, quoted, repeat, sign, state } from "../lib/view.js";
import { api, path, query } from "../lib/api.js";
import { about, mayChange, moves, version } from "../lib/words.js";
import { change, to } from "../lib/router.js";
import { chooser, filters, noProject, search } from "../lib/parts.js";
import { lazily } from "../lib/lazy.js";
import { now } from "../lib/time.js";

/** How many services are drawn, or left out, together. */
const CHUNK = 40;
/** Without a choice, so many projects are read; of more, the first one. */
const PROJECTS = 5;
/** How long a delivery that begins may go unseen while nothing else moves. */
const NEWS_MS = 14_000;

export function open({ params, redraw }) {
  let projects = [];
  let chosen = params.get("project") ?? "";
  let filter = params.get("filter") ?? "";
  let only = { moves: params.has("moves"), differs: params.has("differs") };
  /** project → {stages, cells: service → stage → environment, open: Map, since, cutOff} */
  const known = new Map();

  const names = () => {
    if (chosen) return [chosen];
    return projects.length <= PROJECTS ? projects.map((p) => p.projectName) : [projects[0].projectName];
  };

  async function whole(name, signal) {
    const about = projects.find((p) => p.projectName === name);
    const entry = { stages: (about?.stages ?? []).map((s) => s.stageName), cells: new Map(), open: new Map(), since: now(), full: false };
    known.set(name, entry);
    await api.all(path`/v1/project/${name}/environment`, {}, {
      signal,
      each: (cells) => {
        for (const cell of cells) put(entry, cell);
        redraw();
      },
    });
    entry.full = true;
  }

  function put(entry, cell) {
    if (!entry.cells.has(cell.service)) entry.cells.set(cell.service, new Map());
    entry.cells.get(cell.service).set(cell.stage, cell);
  }

  /** What is open; a cell is read again when something has begun or ended in it. */
  async function fresh(name, signal) {
    const entry = known.get(name);
    const open = await api.all("/v1/sequence-execution", { project: name, open: true }, { member: "sequenceExecutions", signal, most: 5 });
    entry.cutOff = open.cut;
    const ended = [...entry.open.values()].filter((x) => !open.some((y) => y.id === x.id));
    const began = open.filter((x) => !entry.open.has(x.id));
    entry.open = new Map(open.map((x) => [x.id, x]));
    const touched = new Set([...ended, ...began].map((x) => JSON.stringify([x.service, x.stage])));
    // What began and ended since the last look is in no list of what is open.
    if (now() - entry.since > NEWS_MS) {
      const fromTime = new Date(entry.since - 5_000).toISOString();
      const seen = now();
      const news = await api.get(path`/v1/sequence/${name}` + query({ fromTime, pageSize: 100 }), { signal });
      for (const one of news.states ?? []) {
        for (const x of one.executions ?? []) touched.add(JSON.stringify([one.service, x.stage]));
      }
      entry.since = seen;
    }
    for (const each of touched) {
      const [service, stage] = JSON.parse(each);
      const page = await api.get(path`/v1/project/${name}/environment` + query({ service, stage }), { signal });
      for (const cell of page.items) put(entry, cell);
    }
    for (const cells of entry.cells.values()) for (const cell of cells.values()) cell.coming = [];
    for (const x of open) entry.cells.get(x.service)?.get(x.stage)?.coming.push(x);
  }

  async function read(signal) {
    if (!projects.length) projects = await api.projects(signal);
    for (const name of names()) {
      if (!known.get(name)?.full) await whole(name, signal);
      await fresh(name, signal);
    }
    return names().some((name) => [...known.get(name).open.values()].some(mayChange));
  }

  /** Where a version differs from the stage before: how it is called there. */
  const before = (stages, cells, i) => {
    const earlier = stages.slice(0, i).map((s) => cells.get(s)?.image).filter(Boolean);
    return earlier[earlier.length - 1];
  };
  const differs = (stages, cells, i) => {
    const [mine, theirs] = [cells.get(stages[i])?.image, before(stages, cells, i)];
    return Boolean(mine && theirs && mine !== theirs);
  };

  function rows(entry) {
    const wanted = filter.toLowerCase();
    return [...entry.cells.entries()]
      .filter(([service]) => service.toLowerCase().includes(wanted))
      .filter(([, cells]) => !only.moves || [...cells.values()].some((c) => c.coming?.length))
      .filter(([, cells]) => !only.differs || entry.stages.some((_, i) => differs(entry.stages, cells, i)))
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }

  function cell(name, entry, service, cells, i) {
    const stage = entry.stages[i];
    const it = cells.get(stage);
    if (!it) return html`<td><span class="dim">–<span class="unseen"> nothing yet</span></span></td>`;
    const failed = it.last && it.last.result !== "pass" && !it.coming?.length;
    const link = it.shkeptncontext ?? it.last?.shkeptncontext;
    return html`<td>
      <span class="unseen">${stage}, </span>
      <a class="version ${it.image ? "" : "dim"}" href=${to("delivery", name, link ?? "")} title=${it.image ?? "no image"}>${version(it.image) || (it.since ? "rolled back" : "no version")}</a>
      <span class="dim right">${ago(it.since)}</span>
      ${differs(entry.stages, cells, i) ? html`<div class="differs">${sign("behind")} ${version(before(entry.stages, cells, i))} is in the stage before</div>` : nothing}
      ${failed ? html`<a class="line" href=${to("delivery", name, it.last.shkeptncontext)}>${state({ sign: it.last.result === "warning" ? "warning" : "fail", what: `last ${it.last.sequence}: ${it.last.result}` })}</a>` : nothing}
      ${repeat(it.coming ?? [], (x) => x.id, (x) => html`<a class="line" href=${to("delivery", name, x.shkeptncontext)}>${
        state(withVersion(x, it))}</a>`)}
    </td>`;
  }
  const withVersion = (x, it) => {
    const told = about(x);
    const name = x.image && x.image !== it.image ? `${version(x.image)} ` : "";
    return { ...told, what: name + told.what };
  };

  function table(name) {
    const entry = known.get(name);
    if (!entry) return html`<p class="loading">Loading ${name}…</p>`;
    const shown = rows(entry);
    const chunks = [];
    for (let i = 0; i < shown.length; i += CHUNK) chunks.push(shown.slice(i, i + CHUNK));
    const open = [...entry.open.values()];
    const people = open.filter((x) => about(x).sign === "person").length;
    return html`<section>
      <h2>${name} <span class="dim">${shown.length} of ${entry.cells.size} services · ${open.filter(moves).length} moving · ${people} wait for a person</span>
        <a class="small" href=${to("shipyard", name)}>Shipyard</a> <a class="small" href=${to("evaluations", { project: name })}>Evaluations</a></h2>
      ${entry.cutOff ? cut("Only the first 500 open executions are shown here.") : nothing}
      ${entry.cells.size === 0
        ? empty("Nothing has been delivered here yet.", html`Start with <code>keelway trigger delivery -p ${quoted(name)} -s SERVICE -i IMAGE</code>.`)
        : shown.length === 0
          ? empty("No service matches.", html`<button @click=${() => change({ filter: "", moves: "", differs: "" })}>Show all</button>`)
          : html`<div class="wide" tabindex="0" role="region" aria-label="Environments of ${name}"><table class="matrix" .style=${`min-width:${10 * entry.stages.length + 7}rem`}>
            <caption class="unseen">Services of ${name} and the versions in its stages</caption>
            <thead><tr><th scope="col">Service</th>${entry.stages.map((s) => html`<th scope="col">${s}</th>`)}</tr></thead>
            ${chunks.map((chunk, i) => lazily(`${name}/${i}`, entry.stages.length + 1, chunk.length, () =>
              repeat(chunk, ([service]) => service, ([service, cells]) => html`<tr>
                <th scope="row">${service}</th>
                ${entry.stages.map((_, at) => cell(name, entry, service, cells, at))}
              </tr>`)))}
          </table></div>`}
    </section>`;
  }

  const just = (what) => html`<label><input type="checkbox" .checked=${only[what]} @change=${(event) => change({ [what]: event.currentTarget.checked })}> only what ${what}</label>`;

  return {
    title: () => (chosen ? `Environments of ${chosen}` : "Environments"),
    routed(params) {
      const project = params.get("project") ?? "";
      filter = params.get("filter") ?? "";
      only = { moves: params.has("moves"), differs: params.has("differs") };
      if (project !== chosen) {
        chosen = project;
        dispatchEvent(new Event("changed"));
      }
    },
    read,
    view: () => html`
      <h1>Environments</h1>
      ${filters(chooser(projects, chosen, projects.length > PROJECTS ? `choose one of ${projects.length}` : "all"), search("Service", "filter", filter), just("moves"), just("differs"))}
      ${projects.length || known.size ? names().map(table) : noProject}
      ${command(`keelway get environments${chosen ? ` -p ${quoted(chosen)}` : ""}`)}`,
  };
}
