// Signing in: with a token of Keelway's, or at an identity provider by authorization code with PKCE.

import { failed, html, nothing } from "./view.js";
import { BASE } from "./api.js";
import { signIn } from "./session.js";

const PENDING = "keelway.sign-in";
let busy = false;
let settings;

/** What the server says about providers: `{"providers": [{"issuer", "clientId", "scope"}]}`. */
async function known() {
  settings ??= fetch(`${BASE}/ui/settings.json`, { credentials: "omit" })
    .then((answer) => answer.json())
    .catch(() => ({ providers: [] }));
  return settings;
}
let providers = [];

export function signInView({ then, error }) {
  known().then((found) => {
    if (providers.length !== found.providers.length) {
      providers = found.providers;
      dispatchEvent(new Event("routed"));
    }
  });
  const submit = async (event) => {
    event.preventDefault();
    if (busy) return;
    const form = event.currentTarget;
    const told = form.querySelector("output");
    const given = form.elements.token.value.trim();
    busy = true;
    told.textContent = "Checking…";
    try {
      await signIn(given);
      form.reset();
      told.textContent = "";
      await then();
    } catch (refused) {
      told.textContent = refused.status === 401 ? `This token is not accepted: ${refused.message}` : refused.message;
    } finally {
      busy = false;
    }
  };
  return html`<main class="sign-in" id="main">
    <h1>Keelway</h1>
    <p>What runs where, what moves, and what waits for whom.</p>
    ${error ? failed(error) : nothing}
    ${providers.map((provider) => html`<p><button class="primary" @click=${() => leaveFor(provider)}>Sign in with ${provider.name}</button></p>`)}
    <form @submit=${submit}>
      <label>Token
        <input name="token" type="password" autocomplete="off" spellcheck="false" required></label>
      <button type="submit" class=${providers.length ? "" : "primary"}>Sign in</button>
      <p><output role="alert"></output></p>
    </form>
    <p class="dim">The token stays in this tab, and closing the tab signs you out. <code>keelway token create me --scope read</code>
      makes one that only reads; <code>make run</code> prints one for the local cloud.</p>
  </main>`;
}

const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const random = () => text(crypto.getRandomValues(new Uint8Array(32)));
const here = () => `${location.origin}${BASE}/ui/`;

async function leaveFor(provider) {
  const { issuer, clientId, scope } = provider;
  const about = await (await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, { credentials: "omit" })).json();
  const pending = { issuer, clientId, verifier: random(), state: random(), nonce: random(), token: about.token_endpoint, back: location.hash };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const challenge = text(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier)));
  const asked = new URL(about.authorization_endpoint);
  const values = {
    response_type: "code", client_id: clientId, redirect_uri: here(), scope, state: pending.state, nonce: pending.nonce,
    code_challenge: challenge, code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(values)) asked.searchParams.set(name, value);
  location.assign(asked);
}

/** Ends what [`leaveFor`] began, if this is the way back from a provider. */
export async function finishSignIn() {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state")) return;
  const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "{}");
  sessionStorage.removeItem(PENDING);
  // The code is in no address that stays.
  history.replaceState(null, "", here() + (pending.back ?? ""));
  const refuse = (why) => Promise.reject(Object.assign(new Error(why), { status: 401, title: "not signed in" }));
  if (!pending.state || answer.get("state") !== pending.state) return refuse("The answer of the provider belongs to no sign-in of this tab: try again.");
  if (answer.has("error")) return refuse(`The provider refused: ${answer.get("error_description") ?? answer.get("error")}`);
  const body = new URLSearchParams({
    grant_type: "authorization_code", code: answer.get("code"), redirect_uri: here(), client_id: pending.clientId, code_verifier: pending.verifier,
  });
  const response = await fetch(pending.token, { method: "POST", body, credentials: "omit" });
  const tokens = await response.json().catch(() => ({}));
  if (!response.ok || !tokens.id_token) return refuse(`The provider gave no token: ${tokens.error_description ?? tokens.error ?? response.status}`);
  const claims = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(tokens.id_token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0))));
  if (claims.nonce !== pending.nonce) return refuse("The token belongs to another sign-in: try again.");
  await signIn(tokens.id_token);
}
