// The frame around every screen: signing in, navigation, the age of the data, and who is asked when.

import { loading } from "./lib/parts.js";
import { failed, html, nothing, render } from "./lib/view.js";
import { Poll } from "./lib/poll.js";
import { route, to } from "./lib/router.js";
import { mayAnywhere, restore, signOut, whoami } from "./lib/session.js";
import { token } from "./lib/token.js";
import { signInView, finishSignIn } from "./lib/sign-in.js";
import { skew } from "./lib/time.js";
import { inbox } from "./lib/inbox.js";

/** Screens are loaded when they are opened. Each has `open(route)`, which returns `{title, read, view}`. */
const SCREENS = {
  environments: ["Environments", () => import("./screens/environments.js")],
  delivery: [undefined, () => import("./screens/delivery.js")],
  deliveries: ["Deliveries", () => import("./screens/deliveries.js")],
  waits: ["Waits", () => import("./screens/waits.js")],
  pipelines: ["Pipelines", () => import("./screens/pipelines.js")],
  deployments: ["Deployments", () => import("./screens/deployments.js")],
  evaluations: ["Evaluations", () => import("./screens/evaluations.js")],
  calendar: ["Calendar", () => import("./screens/calendar.js")],
  shipyard: ["Shipyards", () => import("./screens/shipyard.js")],
  operations: ["Operations", () => import("./screens/operations.js")],
};

/** How far apart the clocks may be before the page says so. */
const SKEW_MS = 60_000;

const root = document.getElementById("app");
let screen;
let address;
let poll;
let problem;
let keeping;

function draw() {
  if (!token() || !whoami()) {
    render(signInView({ then: start, error: problem, fail: (error) => { problem = error; draw(); } }), root);
    return;
  }
  const { parts } = route();
  const current = parts[0] ?? "environments";
  render(
    html`<a class="skip" href="#main" @click=${skip}>Skip to the content</a>
      <header>
        <a class="brand" href=${to("environments")}>Keelway</a>
        <nav aria-label="Screens">
          <ul>${Object.entries(SCREENS).filter(shown).map(([name, [title]]) => html`<li>
            <a href=${to(name)} aria-current=${current === name ? "page" : nothing}>${title}${
              name === "waits" && inbox.count ? html` <span class="count">${inbox.count}<span class="unseen"> wait for a person</span></span>` : nothing}</a></li>`)}</ul>
        </nav>
        <p class="who"><span title=${(whoami().grants ?? []).map((g) => `${g.scopes.join(", ")} in ${g.projects?.join(", ") ?? "all projects"}`).join("; ")}>${whoami().by}</span>
          <button class="small" @click=${leave}>Sign out</button></p>
      </header>
      <p class="age" role="status" aria-live="off">${freshness()}</p>
      <main id="main" tabindex="-1">
        ${problem ? failed(problem) : nothing}
        ${screen?.view ? screen.view() : problem ? nothing : loading}
      </main>`,
    root,
  );
  titled();
}

const shown = ([name, [title]]) => title && (name !== "operations" || mayAnywhere("administer"));

function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

/** How old the data are, and why there are no newer ones. */
function freshness() {
  if (!poll) return "";
  const age = poll.age();
  const { error } = poll.state;
  const far = Math.abs(skew()) > SKEW_MS ? html` <span class="warn">⚠ this computer's clock is wrong by ${Math.round(Math.abs(skew()) / 60_000)} min; times are the server's</span>` : nothing;
  const until = whoami()?.expires ? Date.parse(whoami().expires) - Date.now() - skew() : Infinity;
  const ends = until < 10 * 60_000 ? html` <span class="warn">⚠ the token ends in ${Math.max(0, Math.round(until / 60_000))} min</span>` : nothing;
  if (error && age !== undefined) return html`<span class="warn">⚠ ${age} s old: ${error.title ?? error.message}</span>${far}${ends}`;
  return html`${age === undefined ? "…" : `updated ${age} s ago`}${far}${ends}`;
}

function titled() {
  const count = inbox.count ? `(${inbox.count}) ` : "";
  const name = screen?.title?.() ?? "Keelway";
  document.title = `${count}${name} · Keelway`;
  const icon = document.getElementById("icon");
  const colour = inbox.count ? "#b45309" : poll?.state.moving ? "#0b7a3b" : "#0b5c8a";
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="${colour}"/><path d="M4 3v10M4 9l7-6M7 7l5 6" stroke="#fff" stroke-width="2" fill="none"/></svg>`;
  const href = `data:image/svg+xml,${encodeURIComponent(drawing)}`;
  if (icon.href !== href) icon.href = href;
}

async function open() {
  if (!token() || !whoami()) return draw();
  const { parts, params } = route();
  const path = location.hash.split("?")[0];
  // A change of the fragment is told twice, as popstate and as hashchange: a screen that is being loaded is not opened again.
  if (path === address && (screen || !problem)) {
    screen?.routed?.(params);
    return draw();
  }
  address = path;
  clearTimeout(keeping);
  const place = history.state;
  poll?.end();
  [screen, problem, poll] = [undefined, undefined, undefined];
  const name = parts[0] ?? "environments";
  draw();
  const known = SCREENS[name];
  try {
    if (!known) throw Object.assign(new Error(`There is no screen ${name}: choose one above.`), { status: 404, title: "unknown address" });
    const opened = (await known[1]()).open({ parts: parts.slice(1), params, redraw: draw });
    if (address !== path) return;
    screen = opened;
  } catch (error) {
    problem = error;
    return draw();
  }
  const own = new Poll((signal) => screen.read(signal), changed);
  poll = own;
  draw();
  await own.again();
  if (poll === own) back(place);
}

function changed() {
  const error = poll.state.error;
  if (error?.status === 401) return leave("The token is no longer accepted: sign in again.");
  // Only the first failure takes the place of a screen: later ones leave the last data where they are.
  problem = error && !poll.state.at ? error : undefined;
  draw();
}

/** Back where one was, with the parts open that were. */
function back(place) {
  for (const i of place?.open ?? []) document.querySelectorAll("#main details")[i]?.setAttribute("open", "");
  if (place?.scroll) scrollTo(0, place.scroll);
}

/** Keeps it in this entry of the history; not while a screen is loading, which is short. */
function keep() {
  if (!poll?.state.at) return;
  const open = [...document.querySelectorAll("#main details")].flatMap((part, i) => (part.open ? [i] : []));
  history.replaceState({ ...history.state, scroll: scrollY, open }, "");
}
for (const event of ["scroll", "toggle"]) {
  addEventListener(event, () => {
    clearTimeout(keeping);
    keeping = setTimeout(keep, 100);
  }, true);
}

function leave(why) {
  signOut();
  poll?.end();
  inbox.end();
  [screen, address, poll] = [undefined, undefined, undefined];
  problem = typeof why === "string" ? Object.assign(new Error(why), { status: 401, title: "signed out" }) : undefined;
  draw();
}

async function start() {
  problem = undefined;
  inbox.begin(draw);
  await open();
}

history.scrollRestoration = "manual";
addEventListener("hashchange", open);
addEventListener("popstate", open);
addEventListener("routed", open);
// Somebody changed something here: look at once.
addEventListener("changed", () => { poll?.again(); inbox.again(); });
addEventListener("online", () => poll?.again());
setInterval(() => poll && !document.hidden && draw(), 1000);

try {
  // Whoever goes back through the provider's pages, or follows a link with a stray answer, stays signed in.
  const refused = await finishSignIn().catch((error) => error);
  if (await restore()) await start();
  else {
    problem = refused;
    draw();
  }
} catch (error) {
  problem = error;
  if (error.status === 401) signOut();
  draw();
}
