// Parts of screens: tables, the choice of a project, buttons that ask first.

import { empty, html, nothing, repeat } from "./view.js";
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

/** What narrows a screen down; all of it is kept in the address. */
export const filters = (...inner) => html`<form class="filters" @submit=${(event) => event.preventDefault()}>${inner}</form>`;

/** The choice of one of `names`, which is kept in the address; `none` stands for no choice. */
export const choice = (label, name, names, chosen, none = "all") => html`<label>${label} <select @change=${(event) => change({ [name]: event.currentTarget.value }, { replace: false })}>
  ${none ? html`<option value="" ?selected=${!chosen}>${none}</option>` : nothing}${names.map((one) => html`<option ?selected=${one === chosen}>${one}</option>`)}</select></label>`;

/** The choice of a project. */
export const chooser = (projects, chosen, none) => choice("Project", "project", projects.map((p) => p.projectName ?? p), chosen, none);

/** A text that names have to contain. */
export const search = (label, name, value) => html`<label>${label} <input type="search" .value=${value} @input=${(event) => change({ [name]: event.currentTarget.value })}></label>`;

/** Without a project, only the way to one. */
export const noProject = empty("There is no project that this token may see.", html`<code>keelway apply -f shipyard.yaml</code> makes one.`);

/** A button that asks whether `run` shall be. */
export const act = (label, subject, lines, told, run, more = {}) => html`<button class=${more.kind ?? "small"} aria-label=${more.about ? `${label} ${more.about}` : nothing} @click=${() =>
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

/** The button below a list that was cut off: `grow` has more of it read. */
export const more = (label, grow, told) => html`<p><button @click=${() => { grow(); dispatchEvent(new Event("changed")); }}>${label}</button>${told}</p>`;

/** For screens that read again when the address has changed. */
export const follow = (held) => (params) => {
  if (String(held.params) === String(params)) return;
  held.params = params;
  dispatchEvent(new Event("changed"));
};
