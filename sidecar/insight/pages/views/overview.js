// What was used and saved: figures, plots a day, and what would have been sent without the index.

import { call } from "../api.js";
import { dayBars } from "../charts.js";
import { card, empty, figure, heading, make, table } from "../dom.js";
import { bytes, count, dollars, isKnown, lastDays, moment, plural, short, total } from "../format.js";

const SPANS = [[1, "Today"], [7, "7 days"], [30, "30 days"]];
const PLOTS = [["Tokens sent", "inputTokens"], ["Tokens kept out", "keptOut"], ["Cost in US dollars", "cost"]];
let span = 7;

export async function overview() {
  const stats = await call("stats/read");
  const title = heading("Overview", lead(stats));
  if (!stats.turns && !stats.countedTurns && !stats.purgedTurns && !isKnown(stats.captured))
    return [title, empty("No turn yet", "Send a prompt from your app, or run `sidecar chat`. Its tokens, cost and savings appear here.")];
  return [title, period(stats), card("Savings", savings(stats)), allTime(stats), projects(stats)];
}

const lead = (stats) =>
  `${plural(stats.chats, "chat")}, ${plural(stats.turns, "turn")}, ${bytes(stats.databaseBytes)} on disk` +
  (stats.lastActivity ? `. Last activity: ${moment(stats.lastActivity)}.` : ".");

function period(stats) {
  const body = make("div");
  const choices = make("div", { class: "row", role: "group", "aria-label": "Period" });
  const fill = () => {
    choices.replaceChildren(...SPANS.map(([days, label]) =>
      make("button", { type: "button", "aria-pressed": String(days === span), onclick: () => { span = days; fill(); } }, label)));
    const days = lastDays(span);
    const rows = stats.days.filter((each) => days.includes(each.day));
    body.replaceChildren(
      make("div", { class: "figures" },
        figure(short(total(rows, "inputTokens")), "tokens sent"),
        figure(short(total(rows, "outputTokens")), "tokens answered"),
        figure(short(total(rows, "keptOut")), "tokens kept out"),
        figure(dollars(total(rows, "cost")), "cost by list prices")),
      span === 1 ? "" : plots(days, stats.days));
  };
  fill();
  return card("", choices, body, make("p", { class: "quiet small" }, "Days are counted in UTC. A dash means: not measured."));
}

function plots(days, rows) {
  const byDay = new Map(rows.map((each) => [each.day, each]));
  return make("div", { class: "grid plots" }, PLOTS.map(([label, member], at) => {
    const values = days.map((day) => byDay.get(day)?.[member] ?? null);
    const any = values.some(isKnown);
    return make("div", {}, make("h3", { class: "small quiet" }, label), any ? dayBars(label, days, values, at) : make("p", { class: "quiet" }, "Not measured in these days."));
  }));
}

/** Two bars: what tool outputs and pages would have taken, and what was sent of them. */
export function savings(stats) {
  if (!isKnown(stats.captured))
    return make("p", { class: "quiet" }, "Not measured yet: no output of a tool and no page has gone to the index.");
  const was = (stats.sent ?? 0) + (stats.returned ?? 0);
  const most = Math.max(stats.captured, was, 1);
  const bar = (label, value, kind) => {
    const fill = make("div", { class: `fill ${kind}` });
    fill.style.width = `${(100 * value) / most}%`;
    return [make("span", {}, label), make("div", { class: "track" }, fill), make("b", {}, count(value))];
  };
  return [
    make("div", { class: "bars" }, bar("Would have been", stats.captured, ""), bar("Was", was, "was")),
    make("p", {}, `${count(stats.keptOut)} tokens were kept out of context windows.`),
    make("p", { class: "quiet small" },
      "How it is counted: “would have been” is every token of the outputs and pages that the index keeps. “Was” is what models got in their place " +
      `(${count(stats.sent)}) and what they later read out of the index (${count(stats.returned)}).`),
  ];
}

const allTime = (stats) => card("All time", make("div", { class: "figures" },
  figure(count(stats.turns), "turns"),
  figure(short(stats.inputTokens), `tokens sent, in ${plural(stats.countedTurns, "counted turn")}`),
  figure(short(stats.cachedTokens), "of them cached by providers"),
  figure(short(stats.outputTokens), "tokens answered"),
  figure(dollars(stats.cost), `cost of ${plural(stats.pricedTurns, "priced turn")}`),
  figure(count(stats.compactions), `compactions, ${short(stats.compactionTokens)} tokens removed`),
  figure(count(stats.searches), "searches of the index"),
  figure(isKnown(stats.fetches) ? `${count(stats.fetchHits ?? 0)} / ${count(stats.fetches)}` : "–", "pages fetched from the cache"),
  figure(count(stats.purgedChats), "purged chats, still counted")));

function projects(stats) {
  if (!stats.projects.length) return null;
  const columns = [["Project", "name"], ["Chats", "num"], ["Turns", "num"], ["Sent", "num"], ["Kept out", "num"], ["Cost", "num"]];
  return card("Projects", table(columns, stats.projects.map((each) =>
    [each.path, count(each.chats), count(each.turns), short(each.inputTokens), short(each.keptOut), dollars(each.cost)])));
}
