// What tools changed in files, chat by chat: diffs, drift, revert.

import { call } from "../api.js";
import { card, confirm, diff, empty, heading, make, pages, tag, unfold } from "../dom.js";
import { age, moment } from "../format.js";
import { chatLink } from "./chats.js";

const CHATS = 20;
const MOODS = { applied: "good", drifted: "warn", superseded: "", reverted: "" };

export async function patches() {
  const only = location.pathname.split("/")[2];
  const { items } = await call("chat/list", { limit: only ? 200 : CHATS });
  const chats = only ? items.filter((each) => each.sessionId === only) : items.filter((each) => each.projectPath);
  const cards = (await Promise.all(chats.map(chatCard))).filter(Boolean);
  const title = heading("Patches", only ? "What tools changed in this chat." : `What tools changed in the ${CHATS} newest chats; a chat's own page has a link to all of its changes.`);
  return cards.length ? [title, cards] : [title, empty("No file was changed", "When a tool edits files, each change appears here with its diff, and can be reverted.")];
}

async function chatCard(chat) {
  const list = pages((cursor) => call("patches/list", { sessionId: chat.sessionId, cursor, limit: 20 }), (items) => items.map((each) => patch(chat, each)));
  const first = await list.more();
  if (!first.items.length) return null;
  return make("section", { class: "card" }, make("h2", {}, chatLink(chat)), make("p", { class: "quiet small" }, chat.projectPath), list.target);
}

function patch(chat, each) {
  const summary = [make("code", {}, each.filePath), tag(each.status, MOODS[each.status]), make("span", { class: "quiet small" }, `${each.summary} · ${each.toolName} · ${age(each.ts)}`)];
  return unfold(summary, async () => {
    const { items } = await call("patches/show", { sessionId: chat.sessionId, id: each.id });
    const said = make("p", { class: "error", role: "alert" });
    return [
      make("p", { class: "quiet small" }, `${moment(each.ts)} · `, make("code", {}, each.id), each.status === "drifted" ? " · The file was changed since by another program." : ""),
      items[0]?.unifiedDiff ? diff(items[0].unifiedDiff) : make("p", { class: "quiet" }, each.binary ? "The file is binary." : "Only the summary was kept."),
      each.revertible && each.status !== "reverted" && make("button", { type: "button", class: "danger", onclick: () => revert(chat, each, said) }, "Revert"), said];
  });
}

async function revert(chat, each, said) {
  if (!await confirm(`Revert the change of ${each.filePath}? The file gets the content that it had before.`, "Revert")) return;
  try {
    await call("patches/revert", { sessionId: chat.sessionId, id: each.id });
    document.dispatchEvent(new Event("sidecar-show"));
  } catch (error) {
    said.textContent = error.message;
  }
}
