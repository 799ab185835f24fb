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
