// The token of this tab: kept for the tab only, and never part of an address.

const KEY = "keelway.token";

export const token = () => sessionStorage.getItem(KEY);

/** Without one, it is forgotten. */
export const keep = (given) => (given ? sessionStorage.setItem(KEY, given) : sessionStorage.removeItem(KEY));
