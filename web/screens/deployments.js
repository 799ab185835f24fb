// Deployments: the configs with what is deployed and what is on its way; one config with its versions, and what may be done about it.

import { ago, command, cut, empty, failed, html, nothing, outside, quoted, state } from "../lib/view.js";
import { act, changes, chooser, facts, filters, folded, follow, loading, more, table } from "../lib/parts.js";
import { age, between, left, moment } from "../lib/time.js";
import { api, path } from "../lib/api.js";
import { ask } from "../lib/dialog.js";
import { may } from "../lib/session.js";
import { holds, isOver, oneLine, shortId, told, version } from "../lib/words.js";
import { to } from "../lib/router.js";

const moves = (c) => (c.latest && ["runs", "waits"].includes(told(c.latest).sign) && (c.latest.starts || c.latest.status !== "New")) || ["Settling", "AwaitingCancellation"].includes(c.reason);
const HOOKS = {
  runs: (hook) => ({ sign: "runs", what: `${hook} runs` }), done: (hook) => ({ sign: "pass", what: `${hook} is done` }),
  failed: (hook) => ({ sign: "fail", what: `${hook} failed` }), ignored: (hook) => ({ sign: "warning", what: `${hook} failed, which is ignored` }),
};
const address = (c) => `${c.namespace}/${c.name}`;
const images = (all) => Object.entries(all ?? {}).map(([name, image]) => html`<div><span class="dim">${name}</span> <strong title=${image}>${version(image)}</strong></div>`);
const by = (actor) => (actor.by ? ` by ${oneLine(actor.by, 60)}` : "");

/** What a config waits for: `[sign, what, the command that goes on]`. */
function waits(c, of) {
  const since = (actor) => `${by(actor)}, ${age(actor.at)} ago${actor.message ? `: ${oneLine(actor.message, 200)}` : ""}`;
  const v = c.latest;
  const unclaimed = v?.status === "New" && v.desired === "run";
  return [
    c.paused && ["person", `paused${since(c.paused)}`, `keelway rollout resume ${of}`],
    c.triggersSuspended && ["frozen", `no trigger fires: suspended${since(c.triggersSuspended)}`, `keelway set triggers ${of} --resume`],
    holds(v) && ["person", `#${v.version} holds until a person lets it go on`, `keelway rollout proceed ${of}`],
    unclaimed && !v.starts && ["waits", `#${v.version} waits for a deployer to claim it${v.deadline ? `, ${left(v.deadline)} longer` : ""}`,
      `keelway deployer --config ${quoted(c.name)} -p ${quoted(c.namespace)} -- COMMAND`],
    c.pendingVersion && ["waits", `#${c.pendingVersion} waits until #${c.latestVersion} has ended`],
    c.drift && ["warning", `drifts for ${age(c.drift.since)}: ${oneLine(c.drift.message, 300)}`, `keelway rollout latest ${of} --again`],
    c.message && !c.paused && !(c.reason === "TriggersSuspended") && ["waits", oneLine(c.message, 300)],
  ].filter(Boolean);
}

export const open = ({ parts, params }) => (parts.length > 1 ? one(parts[0], parts[1]) : list({ params }));

function list(held) {
  let [projects, all] = [[], undefined];
  const project = () => held.params.get("project") ?? "";
  return {
    title: () => "Deployments",
    routed: follow(held),
    async read(signal) {
      if (!projects.length) projects = await api.projects(signal);
      all = await api.all("/v1/deploymentConfigs", { namespace: project() }, { signal, most: 5 });
      return all.some(moves);
    },
    view: () => html`<h1>Deployments</h1>
      ${filters(chooser(projects, project()), html`<span class="dim">${all ? `${all.length} configs · ${all.filter((c) => c.latest && !isOver(c.latest)).length} on their way · ${all.filter((c) => c.latest?.status === "Failed").length} failed` : ""}</span>`)}
      ${all?.cut ? cut("Only the first 500 configs are shown: choose a project.") : nothing}
      ${table("Deployment configs", ["Config", "Deployed", "Latest version", "Waits"], all, address, (c) => [
        html`<a href=${to("deployments", c.namespace, c.name)}>${address(c)}</a>`,
        c.activeVersion ? html`#${c.activeVersion} <span class="dim">${ago(c.activeSince)}</span>${images(c.activeImages)}` : html`<span class="dim">nothing yet</span>`,
        state(told(c.latest)),
        waits(c, "").map(([sign, what]) => html`<div>${state({ sign, what })}</div>`),
      ], empty("There is no deployment config here.", html`<code>keelway apply -f FILE</code> with a manifest of kind <code>DeploymentConfig</code> makes one.`))}
      ${command(`keelway get dc ${project() ? `-p ${quoted(project())}` : "-A"}`)}`,
  };
}

function one(namespace, name) {
  const of = quoted(`${namespace}/${name}`);
  const base = path`/v1/deploymentConfigs/${`${namespace}:${name}`}`;
  let [c, spec, versions, pages, last] = [undefined, {}, [], 1, ""];

  async function read(signal) {
    c = await api.get(`${base}/status`, { signal });
    const sum = JSON.stringify([c.resourceVersion, c.latest?.version, c.latest?.attempt, c.latest?.status, c.pendingVersion, pages]);
    if (sum !== last) {
      spec = (await api.get(base, { signal })).spec ?? {};
      versions = await api.all(`${base}/history`, { pageSize: 20 }, { signal, most: pages });
      last = sum;
    }
    return moves(c);
  }

  const steer = (label, what, line, words, kind = "") => act(label, name, line, `keelway ${words}`, async (message, key) => {
    const { nothing: none, follows } = (await api.post(`${base}/${what}`, message ? { message } : {}, key)) ?? {};
    return { show: none ?? follows };
  }, { kind, reason: "optional", title: `${name}: ${label.toLowerCase()}` });

  /** First what would be, by a dry run; then whether it shall be. */
  async function rollBack(release) {
    const words = `keelway rollback ${of}${release ? ` --to ${release}` : ""}`;
    try {
      const would = await api.post(`${base}/rollback`, { release, dryRun: true });
      const n = would.resolvedRelease;
      ask({
        title: `Roll ${name} back to #${n}`, label: "Roll back", danger: true, reason: "optional", command: words,
        lines: [
          `A new version deploys what #${n} did${would.reason ? ` (${would.reason})` : ""}. Afterwards no trigger fires until they are resumed.`,
          changes(would.changes, "Nothing changes; it would be deployed again."), ...would.warnings.map((w) => html`<span class="warn">⚠ ${oneLine(w, 500)}</span>`),
        ],
        run: (notes, key) => api.post(`${base}/rollback`, { release: n, ...(notes ? { notes } : {}) }, key),
      });
    } catch (error) {
      ask({ title: `${name} cannot be rolled back`, lines: [failed(error)], command: `${words} --dry-run` });
    }
  }

  function actions() {
    const v = c.latest;
    const onItsWay = v && !isOver(v);
    return html`<div class="buttons">
      ${holds(v) ? steer("Proceed", "proceed", "The canary takes its next step.", `rollout proceed ${of}`, "primary") : nothing}
      ${v?.status === "Failed" && !c.paused ? steer("Retry", "retry", `#${v.version}, which failed, is carried out again: same number, same content.`, `rollout retry ${of}`) : nothing}
      ${c.paused ? steer("Resume", "resume", "New versions are deployed again; a deployer that is at work goes on.", `rollout resume ${of}`, "primary")
        : steer("Pause", "pause", "Nothing new is deployed; a deployer that is at work is told to pause.", `rollout pause ${of}`)}
      ${c.triggersSuspended ? steer("Resume triggers", "triggers/resume", "Triggers fire again.", `set triggers ${of} --resume`)
        : steer("Suspend triggers", "triggers/suspend", "No trigger fires until they are resumed.", `set triggers ${of} --suspend`)}
      ${!c.paused && versions.some((x) => x.status === "Complete" && x.version < c.latestVersion) ? html`<button @click=${() => rollBack()}>Roll back…</button>` : nothing}
      ${onItsWay && !c.paused ? steer(`Cancel #${v.version}`, "cancel", `#${v.version} is told to stop. A newer change that waits is deployed next.`, `rollout cancel ${of}`, "danger") : nothing}
    </div>`;
  }

  /** A window of the analysis, or one of its objectives. */
  const judged = (o) => [`${o.sli ? `${o.target} ${o.sli} ${o.value ?? "has no value"}` : o.result}${o.baseline === undefined ? "" : `, ${o.baseline} before`}`,
    o.samples >= 0 && `${o.samples} requests`, o.score >= 0 && `score ${o.score}`, ...(o.targets ?? []).map((t) => `${t.criteria}${t.violated ? ` missed (${t.targetValue})` : ""}`), oneLine(o.message, 300)].filter(Boolean).join(" · ");

  /** How far the latest version is: share of the requests, targets, analysis, hooks, alarms. */
  function progress(v) {
    if (!v) return empty("There is no version yet.", html`<code>keelway rollout latest ${of}</code> deploys the first one.`);
    const { tail = "", log = "", targets = {}, analysis: a } = v.progress;
    const { type, canaryParams, rollingParams, recreateParams } = spec.strategy ?? {};
    const how = canaryParams ?? rollingParams ?? recreateParams ?? {};
    const steps = (how.steps ?? []).map((s) => `${s.weight} % ${s.bake ? `for ${s.bake}` : "until it is told to proceed"}`);
    const sign = { Complete: "pass", Failed: "fail", Running: "runs" };
    return html`<h2>Latest version</h2>
      <p>${state(told(v))}${v.attempt > 1 ? html` <span class="dim">attempt ${v.attempt}</span>` : nothing}</p>
      ${v.share >= 0 && !isOver(v) ? html`<p><label><progress max="100" value=${v.share}></progress> ${v.share} % of the requests</label></p>` : nothing}
      ${facts({
        Images: images(v.images),
        Reason: v.reason,
        Strategy: [type, ...steps].filter(Boolean).join(" · "),
        Targets: Object.entries(targets).map(([target, at]) => html`<div>${state({ sign: sign[at.status] ?? "waits", what: `${target} ${at.status}${at.message ? `: ${oneLine(at.message)}` : ""}` })}</div>`),
        Drift: Object.entries(c.drift?.targets ?? {}).map(([target, at]) => html`<div>${target} serves ${at.serves}, and not ${at.expected}</div>`),
        Analysis: a && [a, ...(a.objectives ?? [])].map((o) => html`<div>${state({ sign: { inconclusive: "waits", info: "none" }[o.result] ?? o.result, what: judged(o) })}</div>`),
        Hooks: ["pre", "mid", "post"].filter((hook) => how[hook] || v.hooks?.[hook]).map((hook) => html`<div>${state(HOOKS[v.hooks?.[hook]]?.(hook) ?? { sign: "none", what: `${hook} was not run${isOver(v) ? "" : " yet"}` })}</div>`),
        Alarms: (c.alarms ?? []).map((a) => html`<div>${state(a.on === undefined ? { sign: "none", what: `${a.name}: nothing was told yet` } : { sign: a.on ? "fail" : "pass", what: `${a.name} is ${a.on ? "on" : "off"}`, time: age(a.since) })}</div>`),
        Deployer: v.heard && `${oneLine(v.deployer, 60)}, heard ${age(v.heard)} ago`,
        Deadline: !isOver(v) && v.deadline ? `${moment(v.deadline)}, in ${left(v.deadline)}` : "",
        Sequence: v.context && html`<a href=${to("delivery", namespace, v.context)}>${shortId(v.context)}</a>`,
        Log: log && outside(log),
        Triggers: c.triggers.map((t) => html`<div>${t.type} ${t.from}${t.effectiveAutomatic ? nothing : html` <span class="warn">does not fire${t.why ? `: ${oneLine(t.why, 200)}` : ""}</span>`}</div>`),
      })}
      ${folded("End of the log", tail)}`;
  }

  const why = (x) => x.delivery && !x.release ? oneLine(x.notes, 200) : [x.type, x.of && `of #${x.of}`, x.release && `to #${x.release}`].filter(Boolean).join(" ") + by(x) + [x.from, x.notes].filter(Boolean).map((t) => `: ${oneLine(t, 200)}`).join("");
  const row = (v) => [
    html`#${v.version}<div class="dim">${v.version === c.activeVersion && v.status === "Complete" ? "deployed" : v.attempt > 1 ? `attempt ${v.attempt}` : ""}</div>`,
    html`${state({ ...told(v), what: `${v.status}${v.reason ? ` (${v.reason})` : ""}` })}<div>${v.status === "Failed" ? oneLine(v.message, 200) : ""}</div>`,
    images(v.images),
    v.details.causes.length ? v.details.causes.map((x) => html`<div>${why(x)}</div>`) : v.details.message,
    ago(v.since),
    v.status === "Complete" && v.version !== c.latestVersion && !c.paused && may("trigger", namespace)
      ? html`<button class="small" @click=${() => rollBack(v.version)}>Roll back to #${v.version}…</button>` : nothing,
  ];

  const whole = () => html`<p>${c.activeVersion ? html`<strong>#${c.activeVersion}</strong> is deployed, since ${moment(c.activeSince)}${
    Object.values(c.activeImages ?? {}).map((i) => html` · <code>${i}</code>`)}` : "No version is complete yet."}</p>
    <ul class="plain">${waits(c, of).map(([sign, what, how]) => html`<li>${state({ sign, what })}${how ? html`: <code>${how}</code>` : nothing}</li>`)}</ul>
    ${may("trigger", namespace) ? actions() : nothing}
    ${progress(c.latest)}
    <h2>Versions</h2>
    ${table(`Versions of ${name}`, ["Version", "Status", "Images", "Cause", "Age", ""], versions, (v) => `${v.version}-${v.attempt}`, row)}
    ${versions.cut ? more("Show older versions", () => (pages += 1)) : nothing}`;

  return {
    title: () => name,
    read,
    view: () => html`<p><a href=${to("deployments", { project: namespace })}>‹ Deployments of ${namespace}</a></p>
      <h1>${namespace}/${name}</h1>
      ${c ? whole() : loading}
      ${command(`keelway rollout history ${of}`)}`,
  };
}
