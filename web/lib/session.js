// Who is signed in. The token is kept for this tab only, and is never part of an address.

import { api } from "./api.js";

const TOKEN = "keelway.token";
let who;

export const token = () => sessionStorage.getItem(TOKEN);

/** `GET /v1/whoami` of the token: name, `by`, `grants`, and `expires` if it ends. */
export const whoami = () => who;

/** Takes a token if the API accepts it; throws otherwise. */
export async function signIn(given) {
  const before = token();
  sessionStorage.setItem(TOKEN, given);
  try {
    who = await api.get("/v1/whoami");
  } catch (error) {
    before ? sessionStorage.setItem(TOKEN, before) : sessionStorage.removeItem(TOKEN);
    throw error;
  }
}

/** Reads who it is again, after the page was loaded again. */
export async function restore() {
  if (token()) who = await api.get("/v1/whoami");
  return who;
}

export function signOut() {
  sessionStorage.removeItem(TOKEN);
  who = undefined;
}

const fits = (scope, need) =>
  scope === "administer" || scope === need || (need.includes(":") && scope === `${need.split(":")[0]}:*`);

/**
 * Whether the token may do something in a project, `undefined` for everywhere: `may("approve:production", "shop")`. What it may
 * not do is not offered; the API decides.
 */
export function may(need, project) {
  return (who?.grants ?? []).some((grant) => {
    const everywhere = !grant.projects?.length;
    return (everywhere || (project !== undefined && grant.projects.includes(project))) && grant.scopes.some((s) => fits(s, need));
  });
}

/** Whether any grant allows it, in whatever project. */
export const mayAnywhere = (need) => (who?.grants ?? []).some((grant) => grant.scopes.some((s) => fits(s, need)));
