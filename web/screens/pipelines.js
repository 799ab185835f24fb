// Pipelines: their environments with what runs and what keeps the next revision back, what may be done, and what has been promoted.

import { ago, command, cut, empty, html, nothing, outside, quoted, sign, state } from "../lib/view.js";
import { api, path } from "../lib/api.js";
import { ENDS, oneLine, promoted, revision } from "../lib/words.js";
import { chooser, filters, follow, loading, more, table } from "../lib/parts.js";
import { to } from "../lib/router.js";
import { may } from "../lib/session.js";
import { ask } from "../lib/dialog.js";
import { decidePipeline } from "../lib/approvals.js";

export const open = (route) => (route.parts.length > 1 ? one(route) : list(route));

function list(held) {
  let pipelines;
  const project = () => held.params.get("project") ?? "";

  return {
    title: () => "Pipelines",
    routed: follow(held),
    async read(signal) {
      pipelines = await api.all("/v1/pipelines", {}, { signal, most: 10 });
      return pipelines.some((p) => p.reason && !p.suspended);
    },
    view: () => {
      const names = [...new Set(pipelines?.map((p) => p.namespace))].sort();
      const shown = pipelines?.filter((p) => !project() || p.namespace === project());
      return html`<h1>Pipelines</h1>
        ${filters(chooser(names, project()))}
        ${pipelines?.cut ? cut("Only the first 1,000 pipelines are shown.") : nothing}
        ${table("Pipelines", ["Pipeline", "Environments", "Revision", "State"], shown, (p) => `${p.namespace}/${p.name}`, (p) => [
          html`<a href=${to("pipelines", p.namespace, p.name)}>${p.name}</a><br><span class="dim">${p.namespace}</span>`,
          (p.environments ?? []).join(" › "), revision(p.revision),
          state(p.suspended ? { sign: "person", what: "suspended" } : p.reason ? { sign: "waits", what: oneLine(p.message || p.reason, 160) } : { sign: "pass", what: "" }),
        ], empty("There is no pipeline here.", html`<code>keelway apply -f pipeline.yaml</code> makes one.`))}
        ${command(`keelway get pipelines${project() ? ` -p ${quoted(project())}` : ""}`)}`;
    },
  };
}

function one({ parts: [namespace, name] }) {
  let pipeline;
  let explained = new Map();
  let past = [];
  let commands = [];
  let pages = 1;
  const base = path`/v1/pipelines/${namespace}/${name}`;

  async function read(signal) {
    const [now, why] = await Promise.all(["", "/explain"].map((end) => api.get(base + end, { signal })));
    pipeline = now;
    explained = new Map(why.environments.map((e) => [e.environment, e]));
    // Commands are on the first page.
    let said;
    past = await api.all(`${base}/history`, { pageSize: 50 }, { signal, most: pages, each: (_, page) => { said ??= page.commands ?? []; } });
    commands = said;
    return why.environments.some((e) => !e.done);
  }

  const at = quoted(name);
  const order = (what, title, says, { environment, revision, danger } = {}) => ask({
    title, danger, label: title.split(" ")[0], reason: "optional", lines: [says],
    command: `keelway pipeline ${what} ${at}${environment ? ` ${quoted(environment)}` : ""} -p ${quoted(namespace)}${revision ? ` --revision ${quoted(revision)}` : ""}`,
    run: (message, key) => api.post(`${base}/commands`, { command: what, environment, revision, ...(message ? { message } : {}) }, key),
  });

  /** Only what makes sense as it is, and only to who may. */
  function actions(e) {
    const it = e.promotion;
    const why = explained.get(e.name);
    const where = { environment: e.name };
    const about = { namespace, name, environment: e.name, revision: it?.revision ?? pipeline.run?.revision, from: e.healthy?.revision };
    const trigger = may("trigger", namespace);
    const waits = why?.reason === "ApprovalNeeded" && about.revision && may(`approve:${e.name}`, namespace);
    if (!trigger && !waits) return nothing;
    const going = it && !it.completed && !(it.phase in ENDS && it.phase !== "failed");
    const failed = it && ["failed", "abandoned", "rejected"].includes(it.phase);
    const again = why?.reason === "EvaluationFailed" ? "The soak time until now is evaluated." : `${it?.revision} is attempted once more. Approvals stay.`;
    return html`${waits ? html`<button class="primary" @click=${() => decidePipeline(about, "approve")}>Approve ${e.name}</button>
        <button @click=${() => decidePipeline(about, "decline")}>Decline ${e.name}</button>` : nothing}
      ${!trigger ? nothing : e.hold
        ? html`<button @click=${() => order("release", `Release ${e.name}`, "Revisions are promoted into it again.", where)}>Release ${e.name}</button>`
        : html`<button @click=${() => order("hold", `Hold ${e.name}`, `No other revision is promoted into it${e.healthy ? ` than ${e.healthy.revision}` : ""}. What runs there stays.`, where)}>Hold ${e.name}</button>`}
      ${trigger && (failed || going) ? html`<button @click=${() => order("retry", `Retry ${e.name}`, again, where)}>Retry ${e.name}</button>` : nothing}
      ${trigger && going && it.attempts ? html`<button class="danger" @click=${() => order("abort", `Abort ${e.name}`, "The present attempt ends: its pull request is closed, its sequence aborted.", { ...where, danger: true })}>Abort ${e.name}</button>` : nothing}`;
  }

  /** Why the next revision is not here yet, as a sentence. */
  function gate(e) {
    const why = explained.get(e.name);
    if (!why) return nothing;
    if (why.done) return state({ sign: "pass", what: "done" });
    const person = ["ApprovalNeeded", "Held", "Suspended"].includes(why.reason);
    const sign = why.reason === "EvaluationFailed" ? "fail" : person ? "person" : "waits";
    return html`${state({ sign, what: oneLine(why.message || why.reason, 300) })}${why.remedy ? html`<div class="dim">${oneLine(why.remedy, 300)}</div>` : nothing}`;
  }

  function request(e) {
    const it = e.promotion?.pullRequest;
    if (!it) return html`<span class="dim">none</span>`;
    const seen = it.look?.at;
    return html`${outside(it.url, `#${it.number}`)} <span class="dim">${ago(e.promotion.attemptedAt ?? e.promotion.since)} old</span>${seen ? html`<div class="dim">looked at ${ago(seen)} ago</div>` : nothing}`;
  }

  const line = (title, cell) => html`<tr><th scope="row">${title}</th>${pipeline.environments.map((e) => html`<td>${cell(e)}</td>`)}</tr>`;

  function history() {
    const names = pipeline.environments.map((e) => e.name);
    const present = pipeline.environments.filter((e) => e.promotion).map((e) => ({ environment: e.name, ...e.promotion }));
    const rows = new Map();
    // The newest promotion of a revision into an environment is the one that counts.
    for (const p of [...present, ...past]) {
      if (!rows.has(p.revision)) rows.set(p.revision, new Map());
      if (!rows.get(p.revision).has(p.environment)) rows.get(p.revision).set(p.environment, p);
    }
    if (!rows.size) return empty("Nothing has been promoted yet.");
    return html`${table("History", ["Revision", ...names], [...rows], ([r]) => r, ([r, cells]) => [html`<span title=${r}>${revision(r)}</span>`, ...names.map((n) => {
      const p = cells.get(n);
      return p ? html`<span title=${oneLine(p.message, 300)}>${sign(promoted(p).sign)} ${p.phase}</span> <span class="dim">${ago(p.at ?? p.since)}</span>` : sign("none");
    })])}
      ${past.cut ? more("More", () => (pages += 1)) : nothing}`;
  }

  const by = (text) => (text ? html` by ${oneLine(text, 60)}` : nothing);

  return {
    title: () => name,
    read,
    view: () => {
      if (!pipeline) return html`<h1>${name}</h1>${loading}`;
      const all = pipeline.environments;
      const whole = may("trigger", namespace);
      const run = pipeline.run?.revision;
      return html`<p><a href=${to("pipelines", { project: namespace })}>‹ Pipelines of ${namespace}</a></p>
        <h1>${name} <span class="dim">${revision(run ?? "")}</span></h1>
        ${pipeline.message ? html`<p>${oneLine(pipeline.message, 300)}</p>` : nothing}
        ${whole ? html`<p class="buttons">
          ${pipeline.suspended
            ? html`<button @click=${() => order("resume", `Resume ${name}`, "Attempts begin again.")}>Resume</button>`
            : html`<button @click=${() => order("suspend", `Suspend ${name}`, "No attempt begins in the whole pipeline; what is on its way goes on.")}>Suspend</button>`}
          ${run && [...explained.values()].some((e) => !e.done) ? html`<button class="danger" @click=${() => order("abandon", `Abandon ${revision(run)}`, `${run} is promoted nowhere, in no run; what is open for it is closed.`, { revision: run, danger: true })}>Abandon ${revision(run)}</button>` : nothing}
        </p>` : nothing}
        <h2>Environments</h2>
        <div class="wide" tabindex="0" role="region" aria-label="Environments"><table class="matrix" .style=${`min-width:${12 * all.length + 7}rem`}>
          <caption class="unseen">Environments of ${name}</caption>
          <thead><tr><td></td>${all.map((e) => html`<th scope="col">${e.name}</th>`)}</tr></thead>
          <tbody>
            ${line("Healthy", (e) => (e.healthy ? html`<span class="version" title=${e.healthy.revision}>${revision(e.healthy.revision)}</span> <span class="dim">${ago(e.healthy.since)}</span>` : html`<span class="dim">nothing yet</span>`))}
            ${line("Targets", (e) => (e.targets ?? []).map((t) => html`<div>${state({ sign: t.ready ? "pass" : "fail", what: [t.cluster, t.namespace, revision(t.revision)].filter(Boolean).join(" ") })} <span class="dim">${ago(t.observedAt)}</span></div>`))}
            ${line("Gates", gate)}
            ${line("Promotion", (e) => (e.promotion ? html`${state(promoted(e.promotion))}<div class="dim">${oneLine(e.promotion.message, 200)}</div>
              ${(e.promotion.approvals ?? []).map((a) => html`<div class="dim">approved${by(a.by)}</div>`)}` : html`<span class="dim">none</span>`))}
            ${line("Pull request", request)}
            ${line("Held", (e) => (e.hold ? html`${state({ sign: "person", what: revision(e.hold.revision ?? "") })}${by(e.hold.by)}<div class="dim">${oneLine(e.hold.message, 160)}</div>` : html`<span class="dim">no</span>`))}
          </tbody></table></div>
        <div class="buttons">${all.map(actions)}</div>
        <h2>History</h2>
        ${history()}
        ${commands.length ? html`<details><summary>Who did what (${commands.length})</summary><ul>${commands.map((c) => html`<li>${ago(c.at)} ago: ${c.command} ${c.environment ?? ""} ${revision(c.revision ?? "")}${by(c.by)}${c.message ? `: ${oneLine(c.message, 160)}` : ""}</li>`)}</ul></details>` : nothing}
        ${command(`keelway pipeline status ${at} -p ${quoted(namespace)}`)}`;
    },
  };
}
