// The checks of the installation and what to do about them.

import { call } from "../api.js";
import { card, heading, make, table, tag } from "../dom.js";

const MOODS = { ok: "good", warn: "warn", fail: "bad" };
const ORDER = ["fail", "warn", "ok"];

export async function doctor() {
  const { status, checks } = await call("doctor/run");
  const bad = checks.filter((each) => each.status !== "ok").length;
  return [heading("Doctor", status === "ok" ? "Everything is well." : `${bad} of ${checks.length} checks need attention.`),
    card("", table([["", ""], ["Check", "nowrap"], ["Finding", "name"]], [...checks].sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status)).map((each) =>
      [tag(each.status, MOODS[each.status]), each.name, [each.message, each.action && make("div", {}, make("b", {}, "Do: "), each.action)]])))];
}
