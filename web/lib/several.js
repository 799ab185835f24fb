// One decision about several things: what happens first, then each with its own answer.

import { ask } from "./dialog.js";
import { html, state } from "./view.js";
import { oneLine } from "./words.js";

/** `each`: `[{line, run(message, key)}]`. They are sent one after another; one that is refused does not stop the others. */
export function several({ title, label, danger, reason, intro, each, after }) {
  // A request that had no answer is sent again with its own key: what has taken effect does not do so twice.
  const work = each.map((one) => ({ ...one, key: crypto.randomUUID(), told: undefined }));
  ask({
    title, label, danger, reason,
    lines: [intro, html`<ul>${work.map((one) => html`<li>${one.line}</li>`)}</ul>`],
    run: async (message) => {
      for (const one of work) {
        try {
          await one.run(message, one.key);
          one.told = { sign: "pass", what: "done" };
        } catch (error) {
          one.told = { sign: "fail", what: oneLine(error.message, 300) };
        }
      }
      after?.();
      return { show: html`<ul>${work.map((one) => html`<li>${one.line}: ${state(one.told)}</li>`)}</ul>` };
    },
  });
}
