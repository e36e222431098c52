// Tools by calls and tokens, what was denied or redirected, and hooks.

import { call } from "../api.js";
import { card, heading, make, table, tag } from "../dom.js";
import { age, count, plural, seconds, short } from "../format.js";
import { chatLink } from "./chats.js";

const CHATS = 10;

export async function tools() {
  const [stats, { items: chats }] = await Promise.all([call("stats/read"), call("chat/list", { limit: CHATS })]);
  const projects = stats.projects.slice(0, 5).map((each) => each.path);
  const [calls, hooks, offered] = await Promise.all([
    recentCalls(chats), hookList(projects), call("tools/list", chats.length ? { sessionId: chats[0].sessionId } : {})]);
  return [heading("Tools and hooks", "What models called, what it took, and what was not run."), figures(stats, calls), denials(calls), hookCard(hooks), servers(offered)];
}

async function recentCalls(chats) {
  const pages = await Promise.all(chats.map((chat) => call("chat/history", { sessionId: chat.sessionId, limit: 100 }).then((page) => ({ chat, turns: page.turns })).catch(() => ({ chat, turns: [] }))));
  return pages.flatMap(({ chat, turns }) => turns.flatMap((turn) => turn.items.filter((each) => each.type === "tool").map((each) => ({ chat, ...each }))));
}

function figures(stats, calls) {
  if (!stats.tools.length) return card("Tools", make("p", { class: "quiet" }, "No model has called a tool yet."));
  const mean = (name) => {
    const took = calls.filter((each) => each.name === name && each.endedAt && !each.notRun).map((each) => each.endedAt - each.startedAt);
    return took.length ? seconds(took.reduce((sum, value) => sum + value, 0) / took.length) : "–";
  };
  return card("Tools", table([["Tool", "name"], ["Calls", "num"], ["Mean time", "num"], ["Captured", "num hide-narrow"], ["Kept out", "num"]],
    stats.tools.map((each) => [each.name, count(each.calls), mean(each.name), short(each.captured), short(each.keptOut)])),
    make("p", { class: "quiet small" }, `Mean time is of the newest ${CHATS} chats. A dash means: not measured.`));
}

function denials(calls) {
  const found = calls.filter((each) => each.notRun || each.status === "denied");
  return card("Not run, or redirected", found.length
    ? table([["Call", "name"], ["Reason", "name"], ["Chat", "name hide-narrow"], ["When", "num"]], found.slice(-50).reverse().map((each) =>
      [[make("code", {}, each.name ?? ""), make("div", { class: "small" }, each.title ?? "")],
        [tag(each.notRun?.code ?? "denied", "bad"), " ", each.notRun?.message ?? "", each.notRun?.instead ? [" ", tag(`instead: ${each.notRun.instead}`, "good")] : ""], chatLink(each.chat), age(each.startedAt)]))
    : make("p", { class: "quiet" }, `Every call in the newest ${plural(CHATS, "chat")} was run.`));
}

async function hookList(projects) {
  const lists = await Promise.all((projects.length ? projects.map((projectPath) => ({ projectPath })) : [{}]).map((scope) => call("hooks/list", scope).catch(() => ({ items: [] }))));
  return [...new Map(lists.flatMap((list) => list.items).map((each) => [each.id, each])).values()];
}

const MOODS = { allow: "good", deny: "bad", failed: "bad", ask: "warn" };
const hookCard = (hooks) => card("Hooks", hooks.length
  ? table([["Event", ""], ["Command", "name"], ["Runs", "num"], ["Last", ""], ["Took", "num"]], hooks.map((each) =>
    [[each.event || "?", make("div", { class: "quiet small" }, each.matcher)],
      [make("code", {}, each.command), " ", !each.trusted && tag("not trusted", "warn"), each.problem && make("div", { class: "error small" }, each.problem), make("div", { class: "quiet small" }, each.file)],
      count(each.runs), each.lastResult ? [tag(each.lastResult, MOODS[each.lastResult]), make("div", { class: "quiet small" }, age(each.lastAt))] : "–", seconds(each.lastMs)]))
  : make("p", { class: "quiet" }, "No hook applies. Write .sidecar/hooks.json in a project to add one."));

const servers = ({ servers: found }) => found.length ? card("MCP servers", table([["Server", "name"], ["State", ""], ["Tools", "num"]], found.map((each) =>
  [[each.name, each.error && make("div", { class: "error small" }, each.error)], tag(each.state, each.state === "ready" ? "good" : ["failed", "untrusted"].includes(each.state) ? "bad" : ""), count(each.tools)]))) : null;
