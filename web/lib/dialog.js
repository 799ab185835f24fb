// The second step of everything that changes something: what will happen, the reason, and the command that does the same.

import { command, failed, html, nothing, render } from "./view.js";

let shown;
let back;

/**
 * Asks before `run(reason, key)` is called. `lines` say what will happen; `reason`: `"none"`, `"optional"` or `"required"`. The
 * dialog stays until the API has answered, and one click is one key: a request that is sent again takes effect once. `run` also gets
 * the form, for fields among the lines; what it returns as `{show}` stays to be read. Without `run`, there is only something to read.
 */
export function ask({ title, lines = [], reason = "none", label = title, danger = false, command: told, run }) {
  back = document.activeElement;
  shown = { title, lines, reason, label, danger, told, run, key: crypto.randomUUID(), busy: false, error: undefined };
  draw();
  host().showModal();
}

function host() {
  let dialog = document.querySelector("dialog");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.setAttribute("aria-labelledby", "dialog-title");
    // It may have been opened again before this event came.
    dialog.onclose = () => dialog.open || closed();
    dialog.oncancel = () => !shown?.busy;
    document.body.append(dialog);
  }
  return dialog;
}

function closed() {
  shown = undefined;
  render(nothing, host());
  if (back?.isConnected) back.focus();
}

async function go(event) {
  event.preventDefault();
  if (shown.busy) return;
  const given = event.currentTarget.elements.reason?.value.trim() ?? "";
  Object.assign(shown, { busy: true, error: undefined });
  draw();
  const asked = shown;
  try {
    const answer = await asked.run(given, asked.key, event.target);
    dispatchEvent(new Event("changed"));
    if (asked !== shown) return;
    if (!answer?.show) return host().close();
    Object.assign(shown, { lines: [answer.show], reason: "none", told: undefined, run: undefined, busy: false });
    draw();
  } catch (error) {
    Object.assign(asked, { busy: false, error });
    // What was refused for good may be sent again in other words; what had no answer is sent again as it was.
    if (!error.passing) asked.key = crypto.randomUUID();
    if (asked !== shown) return;
    draw();
    // The button was disabled while it waited, and lost the focus.
    host().querySelector("button[type=submit]")?.focus();
  }
}

function draw() {
  const { title, lines, reason, label, danger, told, run, busy, error } = shown;
  render(
    html`<form method="dialog" @submit=${go}>
      <h2 id="dialog-title">${title}</h2>
      ${lines.map((line) => html`<div class="said">${line}</div>`)}
      ${reason === "none"
        ? nothing
        : html`<label>Reason${reason === "optional" ? " (optional)" : ""}
            <textarea name="reason" rows="2" maxlength="500" ?required=${reason === "required"} ?disabled=${busy}></textarea></label>`}
      ${error ? failed(error, error.passing ? "Send it again: it counts once." : undefined) : nothing}
      ${told ? command(told) : nothing}
      <p class="buttons">
        <button type="button" ?disabled=${busy} @click=${() => host().close()}>${run ? "Cancel" : "Close"}</button>
        ${run ? html`<button type="submit" class=${danger ? "danger" : "primary"} ?disabled=${busy}>${busy ? "Sending…" : label}</button>` : nothing}
      </p>
    </form>`,
    host(),
  );
}
