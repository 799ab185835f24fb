// Signing in: with a token of Keelway's, or at an identity provider by authorization code with PKCE.

import { failed, html, nothing } from "./view.js";
import { BASE } from "./api.js";
import { signIn } from "./session.js";

const PENDING = "keelway.sign-in";
let busy = false;

/** What the server says about providers: `{"providers": [{"issuer", "clientId", "scope", "origins"}], "wrong"}`. */
let settings;

export function signInView({ then, error, fail }) {
  if (!settings) {
    settings = { providers: [] };
    ask(`${BASE}/ui/settings.json`).then(({ said }) => {
      Object.assign(settings, said);
      dispatchEvent(new Event("routed"));
    });
  }
  const { providers, wrong } = settings;
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
    ${error ? failed(error, "Try again, or sign in with a token.") : nothing}
    ${wrong ? failed({ status: 0, title: "no provider", message: wrong }, "Whoever deploys Keelway can mend it. Until then, sign in with a token.") : nothing}
    ${providers.map((provider) => html`<p><button class="primary" @click=${() => leaveFor(provider).catch(fail)}>Sign in with ${provider.name}</button></p>`)}
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

const refuse = (why) => Promise.reject(Object.assign(new Error(why), { status: 401, title: "not signed in" }));

/** An answer of the provider as JSON; without one, `ok` is false. */
async function ask(url, options) {
  try {
    const answer = await fetch(url, { ...options, credentials: "omit", signal: AbortSignal.timeout(30_000) });
    return { ok: answer.ok, why: `status ${answer.status}`, said: (await answer.json()) ?? {} };
  } catch (error) {
    return { why: error instanceof SyntaxError ? "its answer is no JSON" : "it does not answer, or does not let this page ask it (CORS)", said: {} };
  }
}

async function leaveFor({ issuer, clientId, scope, origins }) {
  const at = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const { ok, why, said } = await ask(at);
  if (!ok) return refuse(`${at} cannot be read: ${why}.`);
  if (said.issuer !== issuer) return refuse(`The provider calls itself ${said.issuer}, and Keelway calls it ${issuer}: write it in OidcIssuers as it does.`);
  const { origin } = new URL(said.token_endpoint);
  if (!origins.includes(origin)) return refuse(`The provider gives tokens at ${origin}, where this page may not ask: add that to PageSignIn.`);
  const pending = {
    issuer, clientId, verifier: random(), state: random(), nonce: random(), token: said.token_endpoint, back: location.hash,
    named: said.authorization_response_iss_parameter_supported,
  };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const challenge = text(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier)));
  const asked = new URL(said.authorization_endpoint);
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
  if (!["state", "code", "error"].some((name) => answer.has(name))) return;
  const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "{}");
  sessionStorage.removeItem(PENDING);
  // The code is in no address that stays.
  history.replaceState(null, "", here() + (pending.back ?? ""));
  if (!pending.state || answer.get("state") !== pending.state) return refuse("The answer of the provider belongs to no sign-in of this tab: try again.");
  if ((pending.named || answer.has("iss")) && answer.get("iss") !== pending.issuer) return refuse("The answer is of another provider: try again.");
  if (answer.has("error")) return refuse(`The provider refused: ${answer.get("error_description") ?? answer.get("error")}`);
  const body = new URLSearchParams({
    grant_type: "authorization_code", code: answer.get("code"), redirect_uri: here(), client_id: pending.clientId, code_verifier: pending.verifier,
  });
  const { ok, why, said } = await ask(pending.token, { method: "POST", body });
  if (!ok || !said.id_token) return refuse(`The provider gave no token: ${said.error_description ?? said.error ?? why}`);
  const claims = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(said.id_token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0))));
  if (claims.nonce !== pending.nonce) return refuse("The token belongs to another sign-in: try again.");
  await signIn(said.id_token);
}
