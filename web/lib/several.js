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
      for (const one of work.filter((one) => one.told?.sign !== "pass")) {
        try {
          await one.run(message, one.key);
          one.told = { sign: "pass", what: "done" };
        } catch (error) {
          one.told = { sign: "fail", what: oneLine(error.message, 300), again: error.passing };
        }
      }
      after?.();
      const open = work.filter((one) => one.told.again);
      if (open.length) {
        const why = `${open.length} of ${work.length} had no answer (${open[0].told.what}). Send again: what is done is not sent twice.`;
        throw Object.assign(new Error(why), { status: 0, title: "not everything was answered", passing: true });
      }
      return { show: html`<ul>${work.map((one) => html`<li>${one.line}: ${state(one.told)}</li>`)}</ul>` };
    },
  });
}
