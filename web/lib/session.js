// Who is signed in, and what they may do.

import { api } from "./api.js";
import { keep, token } from "./token.js";

let who;

/** `GET /v1/whoami` of the token: name, `by`, `grants`, and `expires` if it ends. */
export const whoami = () => who;

/** Takes a token if the API accepts it; throws otherwise. */
export async function signIn(given) {
  const before = token();
  keep(given);
  try {
    who = await api.get("/v1/whoami");
  } catch (error) {
    keep(before);
    throw error;
  }
}

/** Reads who it is again, after the page was loaded again. */
export async function restore() {
  if (token()) who = await api.get("/v1/whoami");
  return who;
}

export function signOut() {
  keep();
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
