// What the fields of the API mean in words. They are those of `keelway watch`: a screen and a terminal can be compared line by line.

import { age, between, left, now } from "./time.js";

/** Signs with their meaning, which is read aloud where the sign is shown. Those that may be pictures in colour are asked for as text. */
export const SIGNS = {
  pass: ["✓", "passed"],
  warning: ["!", "passed with a warning"],
  fail: ["✗", "failed"],
  runs: ["▸", "runs"],
  person: ["⏸\ufe0e", "waits for a person"],
  frozen: ["❄\ufe0e", "frozen"],
  waits: ["…", "waits"],
  behind: ["⚠\ufe0e", "differs from the stage before"],
  none: ["–", "not reached"],
  void: ["○", "does not count"],
};

/** A task that has waited this long for an executor is worth a word. */
const PATIENCE_MS = 15_000;
const DIGEST = /[0-9a-f]{20,}$/i;

/** One line of at most so many characters, without control characters. */
export function oneLine(text, most = 160) {
  const line = String(text ?? "").split(/[\p{White_Space}\p{Cc}]+/u).filter(Boolean).join(" ");
  const letters = [...line];
  return letters.length > most ? `${letters.slice(0, most - 1).join("").trimEnd()}…` : line;
}

/** The version that an image names: its tag, the beginning of its digest, or what names a package or a function's version. */
export function version(image) {
  if (!image) return "";
  if (image.startsWith("arn:")) return image.split(":").slice(-2).join(":");
  const packaged = /^s3:\/\/(.*)@sha256:([0-9a-f]*)$/i.exec(image);
  if (packaged) return `${packaged[1].split("?")[0].split("/").pop()}@${packaged[2].slice(0, 8)}`;
  const name = image.split("/").pop();
  const tag = name.includes(":") ? name.slice(name.lastIndexOf(":") + 1) : name;
  const digest = DIGEST.exec(tag);
  return digest ? tag.slice(0, digest.index + 12) : tag;
}

/** A revision with the first eight digits of its digest. */
export function revision(text) {
  const digest = DIGEST.exec(text ?? "");
  if (!digest) return text ?? "";
  return `${text.slice(0, digest.index).replace(/(sha1|sha256):$/, "")}${digest[0].slice(0, 8)}`;
}

/** The beginning of a context that stands for it. */
export const shortId = (context) => (/^[0-9a-f]{8}-/.test(context) ? context.slice(0, 8) : oneLine(context, 20));

/** `fail (errored)`: the result, and the status where it is not what one expects. */
export function outcome(result, status) {
  if (!status || status === "succeeded") return result ?? "";
  return result ? `${result} (${status})` : status;
}

/** What an open execution does or waits for: its sign, what, and since when. */
function open(x, waits) {
  const since = age(waits.since);
  const task = waits.task ?? "";
  switch (waits.reason) {
    case "lane": {
      const b = waits.behind;
      const sequence = b && b.sequence !== x.sequence ? b.sequence : "";
      const what = b ? ["behind", b.service, version(b.image), sequence].filter(Boolean).join(" ") : "its turn";
      return { sign: "waits", what, time: since };
    }
    case "window": {
      const why = waits.window ? `: ${oneLine(waits.window, 60)}` : "";
      return { sign: "frozen", what: `frozen${waits.until ? ` for ${left(waits.until)}` : ""}${why}`, time: since };
    }
    case "executor":
      if (waits.answeredBy) {
        const counts = waits.until ? `, counts in ${left(waits.until)}` : "";
        return { sign: "waits", what: `${task}: ${oneLine(waits.answeredBy, 40)} answered without .started${counts}`, time: since };
      }
      // Before, an executor may be about to answer.
      return { sign: "waits", what: now() - Date.parse(waits.since) >= PATIENCE_MS ? `${task}: no executor` : task, time: since };
    case "approval":
      return { sign: "person", what: "approval", time: since };
    case "resume":
      return { sign: "person", what: "paused", time: since };
    case "delay":
      return { sign: "waits", what: `${task} due in ${left(waits.until) || "a while"}`, time: "" };
    case "answer":
      if (waits.expected && now() >= Date.parse(waits.expected)) {
        const from = waits.by ? ` from ${oneLine(waits.by, 30)}` : "";
        return { sign: "waits", what: `${task}: nothing heard${from}`, time: age(waits.heard ?? waits.since) };
      }
      if (waits.queued) {
        return { sign: "waits", what: `${task}: waits for a place${waits.by ? ` at ${oneLine(waits.by, 30)}` : ""}`, time: since };
      }
      return { sign: "runs", what: waits.by ? `${task} by ${oneLine(waits.by, 30)}` : task, time: since };
    default:
      return { sign: "runs", what: waits.by ? `${task} by ${oneLine(waits.by, 30)}` : task, time: since };
  }
}

const mayRun = (task) => (task?.mayRun ? `; ${task.name} may still run` : "");

function late(task, message) {
  if (task && message.includes("to receive a correlating .started")) return `${task.name}: no executor in time`;
  if (message) return message;
  if (!task) return "not done in time";
  return task.startedAt ? `${task.name}: not finished in time` : `${task.name}: no executor in time`;
}

/** How an execution ended. */
function over(x) {
  const time = between(x.startedAt, x.finishedAt);
  const tasks = x.tasks ?? [];
  const last = tasks[tasks.length - 1];
  const message = oneLine(x.message);
  const about = (task) => (task ? (message ? `${task.name}: ${message}` : task.name) : message);
  if (x.state === "aborted") return { sign: "fail", what: (message || "aborted") + mayRun(last), time: "" };
  if (x.state === "timedOut") {
    return { sign: "fail", what: late(last?.state === "timedOut" ? last : undefined, message) + mayRun(last), time: "" };
  }
  if (x.result === "pass") return { sign: "pass", what: "", time };
  if (x.result === "warning") {
    return { sign: "warning", what: about(tasks.findLast((task) => task.result === "warning")), time };
  }
  if (last?.name === "approval" && last.result === "fail") {
    const declined = `declined${last.by ? ` by ${oneLine(last.by, 40)}` : ""}`;
    const why = message.startsWith(`${declined}: `) ? message.slice(declined.length + 2) : message;
    return { sign: "fail", what: why ? `${declined}: ${why}` : declined, time: "" };
  }
  return { sign: "fail", what: about(last?.result ? last : undefined), time: "" };
}

/** What an execution does, waits for, or how it ended: `{sign, what, time}`. */
export function about(x) {
  if (x.waits) return open(x, x.waits);
  return x.result ? over(x) : { sign: "runs", what: oneLine(x.state, 40), time: "" };
}

/** Whether an execution is still open. */
export const isOpen = (x) => !x.finishedAt && !["finished", "aborted", "timedOut"].includes(x.state);

/** Whether it may change at any moment: also by a person, whose decision should be seen at once. */
export const mayChange = (x) => isOpen(x) && !["window", "delay"].includes(x.waits?.reason);

/** Whether something happens by itself soon: nobody waits for a person, a window or a pause. */
export const moves = (x) => isOpen(x) && !["approval", "resume", "window", "delay"].includes(x.waits?.reason);

/** Whether a version of a deployment config has ended. */
export const isOver = (v) => ["Complete", "Failed"].includes(v?.status);

/** Whether it is at a step of a canary without a bake time. */
export const holds = (v) => v && !isOver(v) && v.holds;

/** How a version is, in the words of `keelway rollout status`. */
export function told(v) {
  if (!v) return { sign: "none", what: "no version yet" };
  const say = (sign, what) => ({ sign, what: `#${v.version} ${what}`, time: isOver(v) ? between(v.since, v.endedAt) : age(v.since) });
  const who = v.deployer ? ` by ${oneLine(v.deployer, 40)}` : "";
  const why = `: ${oneLine(v.message, 200)}`;
  const far = who + (v.progress?.message ? `: ${oneLine(v.progress.message, 200)}` : "");
  const paused = v.desired === "pause";
  if (v.status === "Complete") return say("pass", `rolled out${who}`);
  if (v.status === "Failed") return say("fail", `failed${who}${why}`);
  if (v.desired === "cancel") return say("runs", `is being cancelled${why}`);
  if (v.status === "New") return paused ? say("person", "is held: the config is paused") : say("waits", `waits for a deployer${why}`);
  return say(paused || holds(v) ? "person" : "runs", (paused ? "is told to pause" : v.status === "Pending" ? "is claimed" : "is running") + far);
}

/** How promotions end. */
export const ENDS = { succeeded: "pass", failed: "fail", rejected: "fail", abandoned: "none" };

/** How a promotion is. */
export const promoted = ({ phase, revision: what }) => ({ sign: ENDS[phase] ?? (phase === "waiting" ? "waits" : "runs"), what: `${revision(what)} ${phase}` });
