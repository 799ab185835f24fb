// What screens have in common: signs, times, commands, notices.

import { html, nothing } from "../vendor/lit-html.js";
import { SIGNS, oneLine } from "./words.js";
import { age, moment } from "./time.js";

export { html, nothing, svg, render } from "../vendor/lit-html.js";
export { repeat } from "../vendor/directives/repeat.js";

/** A sign, and what it means for those who do not see it. */
export const sign = (name) => html`<span class="sign ${name}" aria-hidden="true">${SIGNS[name][0]}</span
  ><span class="unseen">${SIGNS[name][1]}</span>`;

/** `▸ test 12s`, as the command writes it. */
export const state = ({ sign: name, what, time }) =>
  html`<span class="state ${name}">${sign(name)} ${what}${time ? html` <span class="dim">${time}</span>` : nothing}</span>`;

/** How long ago, with the time itself where one points. */
export const ago = (time) => (time ? html`<time datetime=${time} title=${moment(time)}>${age(time)}</time>` : nothing);

/** The command that does or shows the same. */
export const command = (text) =>
  html`<p class="command"><span class="unseen">The same in a terminal: </span><code>${text}</code>
    <button type="button" class="small" @click=${(event) => copy(event, text)}>Copy</button></p>`;

async function copy(event, text) {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select it instead";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

/** A word of a shell: quoted if it has to be. */
export const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`);

/** A link whose text comes from outside. Only addresses of the web are links; others are text. */
export function outside(address, text = address) {
  const fine = /^https?:\/\//i.test(address ?? "");
  return fine ? html`<a href=${address} rel="noreferrer noopener" target="_blank">${text}<span class="unseen"> (opens a new tab)</span></a>` : html`${text}`;
}

/** Nothing is there, and what to do about it. */
export const empty = (title, ...how) => html`<div class="empty"><p><strong>${title}</strong></p>${how.map((p) => html`<p>${p}</p>`)}</div>`;

/** The way out of a failed request. */
export function failed(error, instead) {
  const way = instead ?? {
    0: "The page tries again by itself.",
    401: "Sign in again.",
    403: "Ask whoever administers Keelway for a token with this scope.",
    404: "It may have been deleted, or the address is wrong.",
    429: `The page waits ${error.after ?? "a few"} s and goes on.`,
  }[error.status] ?? (error.status >= 500 ? "The page tries again by itself." : "");
  const title = error.status === undefined ? "the page failed" : error.title;
  return html`<div class="failed" role="alert"><p><strong>${title}</strong></p><p>${oneLine(error.message, 600)}</p><p>${way}</p></div>`;
}

/** A cut-off list says so. */
export const cut = (text) => html`<p class="cut" role="note">⚠ ${text}</p>`;
