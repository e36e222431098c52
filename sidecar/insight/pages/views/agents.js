// Which agents the chats came from, and which engines can answer a chat.

import { call } from "../api.js";
import { card, heading, make, table, tag } from "../dom.js";
import { age, count } from "../format.js";

const MOST = 1000;

export async function agents() {
  const [chats, { items: engines }] = await Promise.all([allChats(), call("engines/list")]);
  const groups = new Map();
  for (const each of chats) {
    const group = groups.get(each.namespace) ?? { chats: 0, turns: 0, last: 0 };
    groups.set(each.namespace, { chats: group.chats + 1, turns: group.turns + each.turns, last: Math.max(group.last, each.lastActivity) });
  }
  return [heading("Agents", "Which platform the chats came from, and the agents that can answer one."),
    card("Chats by namespace", groups.size
      ? table([["Namespace", "name"], ["Chats", "num"], ["Turns", "num"], ["Last activity", "num"]], [...groups].map(([name, each]) => [name, count(each.chats), count(each.turns), age(each.last)]))
      : make("p", { class: "quiet" }, "No chat yet. `sidecar connect` connects a coding agent; its calls appear here under its name.")),
    card("Engines", table([["Engine", "name"], ["State", ""], ["What to do", "name"]], engines.map((each) =>
      [[each.title, make("div", { class: "quiet small" }, each.name)], each.ready ? tag("ready", "good") : each.installed ? tag("not ready", "warn") : tag("not installed"), each.reason ?? ""])))];
}

async function allChats() {
  const found = [];
  let cursor;
  do {
    const page = await call("chat/list", { cursor, limit: 200 });
    found.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor && found.length < MOST);
  return found;
}
