// Long tables: only what is near the window is drawn. A part that is not keeps the height that it had, so nothing jumps.

import { html } from "../vendor/lit-html.js";

/** What is guessed for a row that was never drawn, in pixels. */
const ROW = 44;
const NEAR = "600px";

const near = new Map();
const heights = new Map();
let observer;

function observe() {
  observer ??= new IntersectionObserver(
    (entries) => {
      let differs = false;
      for (const { target, isIntersecting, boundingClientRect } of entries) {
        const name = target.dataset.part;
        if (near.get(name) && boundingClientRect.height) heights.set(name, boundingClientRect.height);
        differs ||= near.get(name) !== isIntersecting;
        near.set(name, isIntersecting);
      }
      if (differs) dispatchEvent(new Event("routed"));
    },
    { rootMargin: NEAR },
  );
  for (const part of document.querySelectorAll("tbody[data-part]:not([data-seen])")) {
    part.dataset.seen = "";
    observer.observe(part);
  }
}

/** The rows of a part of a table, or as much room as they take. */
export function lazily(name, columns, rows, draw) {
  requestAnimationFrame(observe);
  // The first part is drawn at once: it is what one sees.
  const shown = near.get(name) ?? name.endsWith("/0");
  const height = heights.get(name) ?? rows * ROW;
  return html`<tbody data-part=${name}>${shown ? draw() : html`<tr aria-hidden="true"><td colspan=${columns} height=${Math.round(height)}></td></tr>`}</tbody>`;
}
