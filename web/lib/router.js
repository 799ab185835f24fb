// Addresses: `#/delivery/shop/139a703f?tab=events`. They are fragments, so the server never sees them, and the page works behind
// any prefix.

/** `{parts, params}` of the present address. */
export function route() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, params: new URLSearchParams(search ?? "") };
}

/** The address of a screen: `to("delivery", project, context)`, with parameters as an object at the end. */
export function to(...parts) {
  const params = typeof parts[parts.length - 1] === "object" ? parts.pop() : {};
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "" && value !== false);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

/** Changes parameters of the present address: as a new entry of the history, or in place of the present one. */
export function change(values, { replace = true } = {}) {
  const { parts, params } = route();
  for (const [name, value] of Object.entries(values)) {
    value === undefined || value === "" || value === false ? params.delete(name) : params.set(name, value === true ? "1" : value);
  }
  const address = to(...parts, Object.fromEntries(params));
  history[replace ? "replaceState" : "pushState"]({ ...history.state }, "", address);
  dispatchEvent(new Event("routed"));
}
