// Deciding an approval: of a delivery, or of a revision in an environment of a pipeline.

import { api, path } from "./api.js";
import { ask } from "./dialog.js";
import { oneLine, shortId, version } from "./words.js";
import { html } from "./view.js";
import { quoted } from "./view.js";

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
