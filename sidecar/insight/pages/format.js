// Figures and times as text. What was not measured is a dash, never a zero.

const counts = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const DAY_MS = 86_400_000;
export const NOT_MEASURED = "–";

export const isKnown = (value) => value !== null && value !== undefined;
export const count = (value) => (isKnown(value) ? counts.format(value) : NOT_MEASURED);
export const short = (value) => (isKnown(value) ? compact.format(value) : NOT_MEASURED);
export const dollars = (value) =>
  isKnown(value) ? `$${value.toFixed(value > 0 && value < 1 ? 4 : 2)}` : NOT_MEASURED;
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

export function bytes(value) {
  if (!isKnown(value)) return NOT_MEASURED;
  const units = ["B", "kB", "MB", "GB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return `${at ? value.toFixed(1) : value} ${units[at]}`;
}

export const moment = (ms) => (isKnown(ms) ? new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "never");

/** "today", "1d ago", "12d ago", by the user's calendar. */
export function age(ms) {
  if (!isKnown(ms)) return "never";
  const midnight = (at) => { const day = new Date(at); return Date.UTC(day.getFullYear(), day.getMonth(), day.getDate()); };
  const days = Math.round((midnight(Date.now()) - midnight(ms)) / DAY_MS);
  return days <= 0 ? "today" : `${days}d ago`;
}

export const seconds = (ms) => (isKnown(ms) ? `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s` : NOT_MEASURED);

/** The sum of a member over rows; null where no row has measured it. */
export function total(rows, member) {
  const known = rows.map((row) => row[member]).filter(isKnown);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}

/** The dates (UTC) of the last `length` days, oldest first. */
export function lastDays(length) {
  return Array.from({ length }, (_, at) => new Date(Date.now() - (length - 1 - at) * DAY_MS).toISOString().slice(0, 10));
}
