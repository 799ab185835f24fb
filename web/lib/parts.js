// Parts of screens: tables, the choice of a project, buttons that ask first.

import { html, nothing, repeat } from "./view.js";
import { ask } from "./dialog.js";
import { change } from "./router.js";
import { oneLine } from "./words.js";

/** Nothing was read yet. */
export const loading = html`<p class="loading">Loading…</p>`;

/** A table that scrolls by itself; `row` gives the cells of an item, `none` stands for no item. A head without text is that of the buttons. */
export const table = (caption, heads, items, key, row, none = html`<p>None.</p>`) => (!items ? loading : !items.length ? none : html`<div class="wide" tabindex="0" role="region" aria-label=${caption}><table class="rows">
  <caption class="unseen">${caption}</caption>
  <thead><tr>${heads.map((head) => html`<th scope="col">${head || html`<span class="unseen">Action</span>`}</th>`)}</tr></thead>
  <tbody>${repeat(items, key, (item) => {
    const [name, ...cells] = row(item);
    return html`<tr><th scope="row">${name}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  })}</tbody></table></div>`);

/** The choice of a project, which is kept in the address. */
export const chooser = (projects, chosen) => html`<label>Project <select @change=${(event) => change({ project: event.currentTarget.value }, { replace: false })}>
  <option value="" ?selected=${!chosen}>all</option>${projects.map((p) => html`<option ?selected=${p.projectName === chosen}>${p.projectName}</option>`)}</select></label>`;

/** A button that asks whether `run` shall be. */
export const act = (label, subject, lines, told, run, more = {}) => html`<button class=${more.kind ?? "small"} @click=${() =>
  ask({ title: `${label} ${subject}`.trim(), label, lines: [lines].flat(), command: told, run, danger: more.kind === "danger", ...more })}>${label}</button>`;

const text = (value) => oneLine(JSON.stringify(value ?? undefined) ?? "(absent)", 300);

/** `[{field, was, becomes}]`, as the command writes it. */
export const changes = (all, none) => (all.length ? html`<ul class="plain changes">${all.map((x) => html`<li><strong>${x.field}</strong>: ${text(x.was)} → ${text(x.becomes)}</li>`)}</ul>` : html`<p>${none}</p>`);

/** Labels and values, where there are some. */
export const facts = (all) => html`<dl>${Object.entries(all).filter(([, v]) => v && v.length !== 0).map(([label, v]) => html`<dt>${label}</dt><dd>${v}</dd>`)}</dl>`;

/** Text from outside as it is. */
export const pre = (label, given) => html`<pre tabindex="0" role="region" aria-label=${label}>${given}</pre>`;

/** A text that is folded. */
export const folded = (label, given) => (given ? html`<details><summary>${label}</summary>${pre(label, given)}</details>` : nothing);

/** For screens that read again when the address has changed. */
export const follow = (held) => (params) => {
  if (String(held.params) === String(params)) return;
  held.params = params;
  dispatchEvent(new Event("changed"));
};
