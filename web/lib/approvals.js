// What lets something go on that waits for a person: approvals of deliveries and of revisions in pipelines; overrides, proceeding.

import { api, path } from "./api.js";
import { act } from "./parts.js";
import { ask } from "./dialog.js";
import { oneLine, shortId, version } from "./words.js";
import { html, quoted } from "./view.js";

const verb = { approve: "Approve", decline: "Decline" };

/** Asks for the decision about a delivery's stage: `{project, context, service, stage, image, from, id}`. */
export function approve({ project, context, service, stage, image, from, id }, decision) {
  const subject = `${service} ${version(image)}`.trim();
  ask({
    title: `${verb[decision]} ${oneLine(subject, 80)} in ${oneLine(stage, 40)}`,
    label: verb[decision],
    danger: decision === "decline",
    reason: "optional",
    lines: [
      decision === "approve"
        ? html`<strong>${subject}</strong> goes on in <strong>${stage}</strong> of ${project}${from ? html`, where ${version(from)} runs now` : ""}.`
        : html`<strong>${subject}</strong> does not go on in <strong>${stage}</strong> of ${project}: the sequence ends with fail.`,
    ],
    command: `keelway ${decision} ${quoted(shortId(context))} --stage ${quoted(stage)}`,
    run: (message, key) => api.post(path`/v1/project/${project}/approval/${context}/${id}`, { decision, ...(message ? { message } : {}) }, key),
  });
}

/** What sends a decision about an item of `GET /v1/wait`, whichever engine it is of. */
export function sendDecision(item, decision, message, key) {
  const why = message ? { message } : {};
  if (item.engine === "pipeline") return sendPipeline(item.project, item.name, item.environment, item.version, decision, why, key);
  return api.post(path`/v1/project/${item.project}/approval/${item.shkeptncontext}/${item.id}`, { decision, ...why }, key);
}

/** A pipeline calls declining `reject`. */
const sendPipeline = (namespace, name, environment, revision, decision, why, key) =>
  api.post(path`/v1/pipelines/${namespace}/${name}/environments/${environment}/revisions/${revision}/approval`,
    { decision: decision === "decline" ? "reject" : decision, ...why }, key);

/** Asks for the decision about a revision in an environment of a pipeline. */
export function decidePipeline({ namespace, name, environment, revision, from }, decision) {
  ask({
    title: `${verb[decision]} ${oneLine(`${name} ${revision}`, 80)} in ${oneLine(environment, 40)}`,
    label: verb[decision],
    danger: decision === "decline",
    reason: "optional",
    lines: [
      decision === "approve"
        ? html`<strong>${name} ${revision}</strong> may be promoted into <strong>${environment}</strong> of ${namespace}${from ? html`, where ${from} runs now` : ""}.`
        : html`<strong>${name} ${revision}</strong> is not promoted into <strong>${environment}</strong> of ${namespace} in this run.`,
    ],
    command: `keelway pipeline ${decision} ${quoted(name)} ${quoted(environment)} ${quoted(revision)} -p ${quoted(namespace)}`,
    run: (message, key) => sendPipeline(namespace, name, environment, revision, decision, message ? { message } : {}, key),
  });
}

/** A button that lets a delivery begin in a closed stage: `{project, context, stage, subject, window}`. */
export const override = ({ project, context, stage, subject, window }, label = "Override") => act(label, "", [
  html`<strong>${subject}</strong> begins in <strong>${stage}</strong> of ${project} although it is closed${window ? `: ${oneLine(window, 200)}` : ""}. It counts for all of this delivery in ${stage}.`],
  `keelway override ${quoted(shortId(context))} --stage ${quoted(stage)} -p ${quoted(project)} -m WHY`,
  (reason, key) => api.post(path`/v1/sequence/${project}/${context}/override`, { reason, stage }, key),
  { title: `Override the window of ${stage}`, reason: "required", danger: true, about: `${subject} in ${stage}` });

/** A button that lets a paused delivery go on. */
export const resume = ({ project, context, stage, subject }) => act("Resume", "", `${subject} goes on where it is.`, `keelway resume ${quoted(shortId(context))} -p ${quoted(project)}`,
  (_, key) => api.post(path`/v1/sequence/${project}/${context}/control`, { state: "resume", stage: "" }, key), { title: `Resume ${subject}`, about: `${subject} in ${stage}` });

/** A button that lets a canary take its next step: `config` is `namespace/name`. */
export const proceed = ({ config, subject, number }) => act("Proceed", "", `#${number} of ${config} takes its next step.`, `keelway rollout proceed ${quoted(config)}`,
  async (message, key) => {
    const { nothing: none, follows } = (await api.post(path`/v1/deploymentConfigs/${config.replace("/", ":")}/proceed`, message ? { message } : {}, key)) ?? {};
    return { show: none ?? follows };
  }, { title: `Let ${subject} proceed`, reason: "optional", about: subject });
