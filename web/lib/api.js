// Requests to the API, which is at the same origin. Every screen gets what it shows from here.

import { setClock } from "./time.js";
import { token } from "./token.js";

/** What is before `/ui/` in the address: empty, except on a local cloud. */
export const BASE = location.pathname.replace(/\/ui\/.*$/, "");

/** How long an answer may take before it counts as none. */
const PATIENCE_MS = 30_000;

/** A refused or failed request: `status` 0 means that there was no answer. */
export class ApiError extends Error {
  constructor(status, title, detail, after) {
    super(detail || title);
    Object.assign(this, { status, title, after });
  }
  /** Whether the same request may succeed later. */
  get passing() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

async function request(method, path, { body, key, signal } = {}) {
  const headers = { authorization: `Bearer ${token() ?? ""}` };
  if (key) headers["idempotency-key"] = key;
  if (body !== undefined) headers["content-type"] = typeof body === "string" ? "application/yaml" : "application/json";
  let response;
  try {
    response = await fetch(BASE + path, {
      method,
      headers,
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE_MS), ...(signal ? [signal] : [])]),
      credentials: "omit",
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "no answer", "The API does not answer. Check the network; the page goes on trying.");
  }
  const text = await response.text();
  const json = /json/.test(response.headers.get("content-type") ?? "");
  let answer = text;
  if (json && text) {
    try {
      answer = JSON.parse(text);
    } catch {
      throw new ApiError(502, "not understood", "The answer is no JSON. Something between the page and the API has changed it.");
    }
  }
  if (!response.ok) {
    const after = Number(response.headers.get("retry-after")) || undefined;
    throw new ApiError(response.status, answer.title ?? `status ${response.status}`, answer.detail ?? answer.message, after);
  }
  if (answer?.now) setClock(answer.now);
  return answer;
}

/** A path with names from outside in it: `` path`/v1/project/${name}` ``. */
export const path = (texts, ...names) => texts.reduce((all, text, i) => all + encodeURIComponent(names[i - 1]) + text);

/** `?a=1&b=2` of what has a value. */
export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

export const api = {
  get: (path, options) => request("GET", path, options),
  /** `key` makes it take effect once, however often it is sent. */
  post: (path, body, key) => request("POST", path, { body, key }),
  delete: (path, key) => request("DELETE", path, { key }),
  /** Every entry of a listing that has pages; `each` is called with every page as it comes. `member`: what Keptn's API calls them. */
  async all(path, values, { member = "items", each, signal, most = 50 } = {}) {
    const found = [];
    let nextPageKey;
    for (let pages = 0; pages < most; pages += 1) {
      const page = await request("GET", path + query({ pageSize: 100, ...values, nextPageKey }), { signal });
      found.push(...(page[member] ?? []));
      each?.(page[member] ?? [], page);
      nextPageKey = page.nextPageKey;
      if (!nextPageKey || nextPageKey === "0") return found;
    }
    found.cut = true;
    return found;
  },
  /** Every project that the token may see. */
  projects: (signal) => api.all("/v1/project", {}, { member: "projects", signal }),
};
