// One delivery: its way through the stages as bars over time, who decided, what it waits for, what it has to do with in the other
// engines, and what may be done about it.

import { ago, command, cut, empty, html, nothing, outside, quoted, repeat, sign, state } from "../lib/view.js";
import { api, path } from "../lib/api.js";
import { about, isOpen, mayChange, oneLine, outcome, promoted, shortId, told, version } from "../lib/words.js";
import { facts, loading } from "../lib/parts.js";
import { ask } from "../lib/dialog.js";
import { may } from "../lib/session.js";
import { to } from "../lib/router.js";
import { age, between, clock, moment, now, ZONE } from "../lib/time.js";
import { approve, override } from "../lib/approvals.js";

/** How an end has to match so that a sequence follows what passes. */
const onPass = ({ selector }) => selector.every((one) => one.endsWith(": pass"));

export function open({ parts: [project, context] }) {
  const base = path`/v1/project/${project}`;
  let [all, sequence, looked, events, stages, last] = [{}, undefined, false, [], [], ""];

  async function read(signal) {
    try {
      all = await api.get(base + path`/delivery/${context}`, { signal });
    } catch (error) {
      if (error.status !== 404) throw error;
      all = {};
    }
    looked = true;
    sequence = all.delivery;
    if (!sequence) return false;
    // The log is read again when something has happened: the history only grows. So is what may follow.
    const sum = JSON.stringify(sequence.executions.map((x) => [x.id, x.phase, x.tasks]));
    if (sum !== last) {
      events = await api.all("/v1/event", { project, keptnContext: sequence.shkeptncontext }, { member: "events", signal, most: 5 });
      if (sequence.executions.some(isOpen)) stages = (await api.get(`${base}/shipyard/plan`, { signal })).stages;
      last = sum;
    }
    return sequence.executions.some(mayChange) || (sequence.executions.length === 0 && now() - Date.parse(sequence.time) < 60_000);
  }

  const image = () => sequence.executions.findLast((x) => x.image)?.image;
  const subject = () => `${sequence.service} ${version(image())}`.trim();
  const id = () => shortId(sequence.shkeptncontext);

  function bars() {
    const all = sequence.executions;
    if (!all.length) return empty("It is triggered, and nothing has begun yet.");
    const begin = Math.min(...all.map((x) => Date.parse(x.acceptedAt)));
    const end = Math.max(...all.map((x) => Date.parse(x.finishedAt ?? new Date(now()).toISOString())), begin + 1000);
    const at = (time) => Math.min(100, Math.max(0, ((Date.parse(time) - begin) / (end - begin)) * 100));
    const place = (from, to) => {
      const [x, w] = [at(from), Math.max(0.4, at(to ?? new Date(now()).toISOString()) - at(from))];
      return `left:${x.toFixed(2)}%;width:${Math.min(w, 100 - x).toFixed(2)}%`;
    };
    const part = (name, from, to, what) => html`<span class="bar ${name}" .style=${place(from, to)} title=${what}></span>`;
    return html`<div class="wide" tabindex="0" role="region" aria-label="Timeline"><table class="timeline">
      <caption class="unseen">Sequences of this delivery in time</caption>
      <thead><tr><th scope="col">Stage</th><th scope="col">What</th><th scope="col" class="axis"><span>${clock(begin)}</span><span>${clock(begin + (end - begin) / 2)}</span><span>${clock(end)}</span></th></tr></thead>
      <tbody>${repeat(all, (x) => x.id, (x) => html`<tr>
        <th scope="row">${x.stage}${x.sequence === sequence.name ? nothing : html`<br><span class="dim">${x.sequence}</span>`}</th>
        <td>${state(about(x))}${x.override ? html`<div class="dim">let through by ${oneLine(x.override.by, 60)}: ${oneLine(x.override.reason, 120)}</div>` : nothing}
          <ul class="tasks">${(x.tasks ?? []).map((task) => html`<li>${state(taskState(task))}${task.by ? html` <span class="dim">by ${oneLine(task.by, 60)}</span>` : nothing}${task.name === "evaluation" ? html` <a href=${to("evaluations", project, x.stage, sequence.service, { run: sequence.shkeptncontext })}>values</a>` : nothing}</li>`)}</ul></td>
        <td class="bars" aria-hidden="true">
          ${x.startedAt && x.startedAt > x.acceptedAt ? part("waits", x.acceptedAt, x.startedAt, "waited for its turn") : nothing}
          ${!x.startedAt ? part(about(x).sign, x.acceptedAt, x.finishedAt, about(x).what) : nothing}
          ${(x.tasks ?? []).filter((t) => t.triggeredAt).map((t) => part(barOf(t), t.triggeredAt, t.finishedAt ?? x.finishedAt, `${t.name} ${between(t.triggeredAt, t.finishedAt)}`))}
        </td>
      </tr>`)}
      ${(sequence.notReached ?? []).map((missed) => html`<tr class="dim"><th scope="row">${missed.stage}</th>
        <td colspan="2">${sign("none")} ${missed.sequence === sequence.name ? "" : `${missed.sequence}: `}not reached: ${missed.after.stage} ended with ${missed.after.result}</td></tr>`)}
      </tbody></table></div>`;
  }
  const barOf = (task) => ({ pass: "pass", warning: "warning", fail: "fail" })[task.result] ?? (task.name === "approval" ? "person" : task.startedAt ? "runs" : "waits");
  const taskState = (task) => {
    const ended = { timedOut: "timed out", aborted: "aborted" }[task.state];
    if (ended && !task.result) return { sign: "fail", what: `${task.name}: ${ended}` };
    const from = task.startedAt ?? task.triggeredAt;
    return { sign: barOf(task), what: task.name, time: task.result ? between(from, task.finishedAt) : age(from) };
  };

  const where = (x) => `${x.stage}${x.sequence === sequence.name ? "" : ` ${x.sequence}`}`;

  /** What an open execution does or waits for, and who has to do something; the words are those of the command. */
  function present(x) {
    const { sign: name, what, time } = about(x);
    const { reason, until } = x.waits ?? {};
    const verb = { runs: "runs", person: "waits for a person:", frozen: "is" }[name] ?? "waits:";
    return [where(x), verb, what, reason === "approval" && `by whoever has approve:${x.stage}`, time && `(${time})`,
      until && ["executor", "answer"].includes(reason) && `until ${moment(until)} at the latest`].filter(Boolean).join(" ");
  }

  /** What follows if it passes, as the shipyard in force has it. */
  function future(x) {
    const planned = stages.flatMap((stage) => stage.sequences.map((s) => ({ ...s, stage: stage.name, sequence: s.name })));
    const { tasks = [] } = planned.find((s) => s.stage === x.stage && s.name === x.sequence) ?? {};
    const done = x.tasks ?? [];
    // A retry begins with the task that failed.
    const rest = tasks.slice(Math.max(0, tasks.indexOf(done[0]?.name)) + done.length);
    const ends = [x.sequence, ...tasks].map((one) => `${x.stage}.${one}.finished`);
    const next = planned.filter((s) => s.triggeredOn.some((on) => ends.includes(on.event) && onPass(on)));
    const begins = next.map((s) => `${where(s)} begins with ${s.tasks[0]}`).join(" and ") || "nothing follows";
    return `${rest.length ? `${where(x)} goes on with ${rest.join(", ")}; ` : ""}if ${where(x)} passes, ${begins}`;
  }

  /** What happens now, and what comes next, as sentences. */
  function sentences() {
    const open = sequence.executions.filter(isOpen);
    const failed = sequence.executions.find((x) => x.result === "fail" && !x.retriedBy);
    const over = failed ? `it is over: ${where(failed)} failed: ${about(failed).what || "fail"}` : "it is over, and everything passed";
    const after = `nothing follows${failed ? " unless it is retried" : ""}`;
    return html`<p><strong>Now:</strong> ${open.map(present).join("; ") || over}.<br><strong>Then:</strong> ${open.map(future).join("; ") || after}.</p>`;
  }

  /** The promotions that it carries out, and the versions that carry out its tasks. */
  const others = () => html`${facts({
    Promotion: (all.promotions ?? []).map((p) => html`<div><a href=${to("pipelines", p.namespace, p.pipeline)}>${p.namespace}/${p.pipeline}</a> into ${p.environment} ${state(promoted(p.promotion))} <span class="dim">${oneLine(p.promotion.message, 200)}</span></div>`),
    Deployment: (all.deployments ?? []).map((v) => html`<div><a href=${to("deployments", v.namespace, v.config)}>${v.namespace}/${v.config}</a> ${state(told(v))}</div>`),
  })}${all.cut ? cut("There may be more: only the newest were looked through.") : nothing}`;

  const control = (command, title, lines, danger) => ask({
    title, lines, danger, label: title.split(" ")[0],
    command: `keelway ${command} ${quoted(id())} -p ${quoted(project)}`,
    run: (_, key) => api.post(path`/v1/sequence/${project}/${context}/control`, { state: command, stage: "" }, key),
  });

  function actions() {
    const open = sequence.executions.filter(isOpen);
    const waiting = open.filter((x) => x.waits?.reason === "approval" && may(`approve:${x.stage}`, project));
    const frozen = open.filter((x) => x.waits?.reason === "window" && may(`approve:${x.stage}`, project));
    const failed = sequence.executions.findLast((x) => x.result === "fail" && !x.retriedBy && !isOpen(x));
    const trigger = may("trigger", project);
    const paused = open.some((x) => x.waits?.reason === "resume");
    return html`<p class="buttons">
      ${repeat(waiting, (x) => x.id, (x) => html`
        <button class="primary" @click=${() => approve({ project, context, service: sequence.service, stage: x.stage, image: x.image, id: x.waits.id }, "approve")}>Approve ${x.stage}</button>
        <button @click=${() => approve({ project, context, service: sequence.service, stage: x.stage, image: x.image, id: x.waits.id }, "decline")}>Decline ${x.stage}</button>`)}
      ${repeat(frozen, (x) => x.id, (x) => override({ project, context, stage: x.stage, subject: subject(), window: x.waits.window }, `Override the window of ${x.stage}`))}
      ${trigger && open.length && !paused ? html`<button @click=${() => control("pause", "Pause this delivery", ["The task that runs goes on; the next one does not begin."])}>Pause</button>` : nothing}
      ${trigger && paused ? html`<button @click=${() => control("resume", "Resume this delivery", ["It goes on where it is."])}>Resume</button>` : nothing}
      ${trigger && open.length ? html`<button class="danger" @click=${() => control("abort", "Abort this delivery", [`${subject()} ends as aborted in ${open.map((x) => x.stage).join(", ")}. What an executor has begun may go on.`], true)}>Abort</button>` : nothing}
      ${trigger && failed ? html`<button @click=${() => ask({
        title: `Retry ${failed.sequence} in ${failed.stage}`, label: "Retry",
        lines: [`${failed.sequence} in ${failed.stage} is repeated from the task that failed.`],
        command: `keelway retry ${quoted(id())}`,
        run: (_, key) => api.post(path`/v1/sequence/${project}/${context}/retry`, { execution: failed.id }, key),
      })}>Retry ${failed.stage}</button>` : nothing}
    </p>`;
  }

  function log() {
    const by = (event) => event.data?.approval?.by ?? event.keelwayauthors ?? event.source;
    return html`<details class="log">
      <summary>What happened (${events.length})</summary>
      ${events.cut ? cut("Only the first 500 events are shown: keelway get events shows all.") : nothing}
      <div class="wide" tabindex="0" role="region" aria-label="Events"><table>
        <thead><tr><th scope="col">Time</th><th scope="col">Stage</th><th scope="col">What</th><th scope="col">Result</th><th scope="col">By</th><th scope="col">Message</th></tr></thead>
        <tbody>${repeat(events, (e) => e.source + e.id, (e) => html`<tr class=${e.verdict ? "dim" : ""}>
          <td><time datetime=${e.received ?? e.time} title=${moment(e.received ?? e.time)}>${clock(e.received ?? e.time)}</time></td>
          <td>${e.data?.stage}</td>
          <td>${e.type.replace(/^sh\.keptn\.event\./, "")}</td>
          <td>${outcome(e.data?.result, e.type.endsWith(".finished") ? e.data?.status : "")}${e.verdict ? ` [${e.verdict}: does not count]` : ""}</td>
          <td>${oneLine(by(e), 60)}</td>
          <td>${oneLine(e.data?.message, 200)} ${e.data?.logUrl && outside(e.data.logUrl, "log")}</td>
        </tr>`)}</tbody></table></div>
    </details>`;
  }

  return {
    title: () => (sequence ? subject() : "Delivery"),
    read,
    view: () => {
      if (!looked) return html`<h1>Delivery</h1>${loading}`;
      if (!sequence) {
        return html`<h1>Delivery</h1>${empty("There is no such delivery.", html`${project} does not know the context ${context}, or its history is no longer kept.`, html`<a href=${to("environments", { project })}>Environments of ${project}</a>`)}`;
      }
      const root = events.find((e) => e.shkeptncontext === sequence.shkeptncontext);
      return html`
        <p><a href=${to("environments", { project })}>‹ Environments of ${project}</a></p>
        <h1>${subject()} <span class="dim">${id()}</span></h1>
        <p class="dim">${sequence.name}, accepted ${moment(sequence.time)} (${ZONE}), ${ago(sequence.time)} ago${root ? html`, by ${oneLine(root.keelwayauthors ?? root.source, 80)}` : nothing}${image() ? html` · <code>${image()}</code>` : nothing}</p>
        ${actions()}
        ${sentences()}
        ${others()}
        ${sequence.truncated ? cut("Only the newest executions are shown.") : nothing}
        ${bars()}
        ${log()}
        ${command(`keelway watch ${quoted(id())} -p ${quoted(project)} --log`)}`;
    },
  };
}
