// One delivery: its way through the stages as bars over time, who decided, what it waits for, and what may be done about it.

import { ago, command, cut, empty, html, nothing, outside, quoted, repeat, sign, state } from "../lib/view.js";
import { api, path, query } from "../lib/api.js";
import { about, isOpen, mayChange, oneLine, outcome, shortId, version } from "../lib/words.js";
import { ask } from "../lib/dialog.js";
import { may } from "../lib/session.js";
import { to } from "../lib/router.js";
import { age, between, clock, moment, now, ZONE } from "../lib/time.js";
import { approve, override } from "../lib/approvals.js";

export function open({ parts: [project, context] }) {
  let sequence;
  let looked = false;
  let events = [];
  let last = "";

  async function read(signal) {
    const { states = [] } = await api.get(path`/v1/sequence/${project}` + query({ keptnContext: context }), { signal });
    sequence = states[0];
    looked = true;
    if (!sequence) return false;
    // The log is read again when something has happened: the history only grows.
    const sum = JSON.stringify(sequence.executions.map((x) => [x.id, x.phase, x.tasks]));
    if (sum !== last) {
      events = await api.all("/v1/event", { project, keptnContext: sequence.shkeptncontext }, "events", { signal, most: 5 });
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
    const time = between(task.startedAt ?? task.triggeredAt, task.finishedAt);
    if (task.result) return { sign: barOf(task), what: task.name, time };
    if (task.state === "timedOut" || task.state === "aborted") return { sign: "fail", what: `${task.name}: ${task.state === "timedOut" ? "timed out" : "aborted"}`, time: "" };
    return { sign: barOf(task), what: task.name, time: age(task.startedAt ?? task.triggeredAt) };
  };

  /** What happens now, and what comes next, as sentences. */
  function sentences() {
    const open = sequence.executions.filter(isOpen);
    if (!open.length) {
      const failed = sequence.executions.find((x) => x.result === "fail" && !x.retriedBy);
      return html`<p><strong>Now:</strong> it is over${failed ? `: ${failed.sequence} in ${failed.stage} ended with ${outcome(failed.result, failed.status)}${failed.message ? `, because ${oneLine(failed.message)}` : ""}` : ", and everything passed"}.</p>`;
    }
    const now = open.map((x) => {
      const told = about(x);
      const waits = x.waits ?? {};
      const until = waits.until ? `, until ${moment(waits.until)} at the latest` : "";
      const words = {
        approval: `waits for a person to approve, since ${told.time}`,
        lane: `waits for its turn ${told.what}, since ${told.time}`,
        executor: `has asked for ${waits.task} and no executor has begun, since ${told.time}${until}`,
        answer: told.sign === "runs" ? `runs ${waits.task}, since ${told.time}${until}` : `${told.what}, for ${told.time}${until}`,
        window: `is closed: ${told.what}`,
        resume: `is paused, since ${told.time}`,
        delay: `waits: ${told.what}`,
      }[waits.reason] ?? told.what;
      return `${x.stage} ${words}`;
    });
    return html`<p><strong>Now:</strong> ${now.join("; ")}.</p>`;
  }

  const control = (command, title, lines, danger) => ask({
    title, lines, danger, label: title.split(" ")[0],
    command: `keelway ${command} ${quoted(id())} -p ${quoted(project)}`,
    run: (_, key) => api.post(path`/v1/sequence/${project}/${context}/control`, { state: command, stage: "" }, key),
  });

  function actions() {
    const open = sequence.executions.filter(isOpen);
    const waiting = open.filter((x) => x.waits?.reason === "approval" && may(`approve:${x.stage}`, project));
    const frozen = open.filter((x) => x.waits?.reason === "window" && may(`approve:${x.stage}`, project));
    const failed = sequence.executions.findLast((x) => ["fail"].includes(x.result) && !x.retriedBy && !isOpen(x));
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
          <td>${oneLine(e.data?.message, 200)} ${e.data?.logUrl ? outside(e.data.logUrl, "log") : nothing}</td>
        </tr>`)}</tbody></table></div>
    </details>`;
  }

  return {
    title: () => (sequence ? subject() : "Delivery"),
    read,
    view: () => {
      if (!looked) return html`<h1>Delivery</h1><p class="loading">Loading…</p>`;
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
        ${sequence.truncated ? cut("Only the newest executions are shown.") : nothing}
        ${bars()}
        ${log()}
        ${command(`keelway watch ${quoted(id())} -p ${quoted(project)} --log`)}`;
    },
  };
}
