// Times as people read them, by the server's clock: the clock of a browser may be wrong by minutes.

let offset = 0;

/** Sets the clock by the `now` of an answer. */
export function setClock(now) {
  const server = Date.parse(now);
  if (!Number.isNaN(server)) offset = server - Date.now();
}

/** The server's time, in milliseconds. */
export const now = () => Date.now() + offset;

/** By how many milliseconds this browser's clock differs from the server's. */
export const skew = () => offset;

/** A span as the command writes it: `0.3s`, `12s`, `3m12s`, `2h05m`, `3d04h`. */
export function span(millis) {
  const ms = Math.max(0, millis);
  const seconds = Math.floor(ms / 1000);
  const two = (n) => String(n).padStart(2, "0");
  if (seconds < 1) return `0.${Math.floor(ms / 100)}s`;
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h${two(Math.floor(seconds / 60) % 60)}m`;
  return `${Math.floor(seconds / 86400)}d${two(Math.floor(seconds / 3600) % 24)}h`;
}

/** How long ago a time was. */
export const age = (time) => (time ? span(now() - Date.parse(time)) : "");

/** How long it is until a time; empty without one. */
export const left = (time) => (time ? span(Date.parse(time) - now()) : "");

/** From one time to another; empty if one of them is missing. */
export const between = (from, to) => (from && to ? span(Date.parse(to) - Date.parse(from)) : "");

/** The reader's time zone. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const parts = (zone, options) => {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...options });
  } catch {
    return new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...options });
  }
};

/** What is no time stays as it is: it comes from outside. */
function format(time, zone, options) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time ?? "") : parts(zone, options).format(date);
}

/** `14:02:11` in a zone, the reader's by default. */
export const clock = (time, zone = ZONE) => format(time, zone, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** `25 Nov, 14:02` in the reader's zone, where the year is clear. */
export const short = (time) => format(time, ZONE, { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit" });

/** `25 Nov 2026, 14:02` in a zone, the reader's by default. */
export const moment = (time, zone = ZONE) =>
  format(time, zone, { day: "2-digit", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
