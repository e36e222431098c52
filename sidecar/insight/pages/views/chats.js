// The list of chats with search, and one chat as a timeline of turns with what was sent.

import { call } from "../api.js";
import { colour, stackedAreas } from "../charts.js";
import { card, confirm, diff, empty, heading, make, pages, searchForm, table, tag, unfold } from "../dom.js";
import { age, count, moment, plural, seconds, short } from "../format.js";

const PAGE = 30;
export const chatTitle = (each) => each.title || each.preview || each.chatId || each.sessionId;
export const chatLink = (each, text) => make("a", { href: `/chats/${each.sessionId}` }, text ?? chatTitle(each));

export async function chats() {
  const columns = [["Chat", "name"], ["Model", "hide-narrow"], ["Turns", "num"], ["Last activity", "num"]];
  const list = pages((cursor) => call("chat/list", { cursor, limit: 50 }), (items) =>
    table(columns, items.map((each) => [
      [chatLink(each), " ", each.archived && tag("archived"), each.state !== "idle" && tag(each.state, "warn"),
        make("div", { class: "quiet small" }, each.projectPath ?? "")],
      make("span", { class: "small" }, each.model ?? ""), count(each.turns), age(each.lastActivity)])));
  const found = make("div");
  const first = await list.more();
  const title = heading("Chats", "Every chat of this database, newest activity first.");
  if (!first.items.length) return [title, empty("No chat yet", "Start one in your app, or run `sidecar chat`.")];
  return [title, searchForm("Words in messages of every chat", "", (query) => search(query, found)), found, card("", list.target)];
}

async function search(query, target) {
  document.getElementById("main").dataset.searched = query;
  if (!query) { target.replaceChildren(); return; }
  const results = await call("chat/search", { query, limit: 20 });
  target.replaceChildren(card(`Found for “${query}”`, results.items.length
    ? results.items.map((hit) => make("div", { class: "item" }, chatLink(hit), " ",
      make("span", { class: "quiet small" }, age(hit.lastActivity)), make("p", {}, marked(hit.snippet, hit.matches, hit.snippetStart))))
    : make("p", { class: "quiet" }, "No message has these words.")));
}

/** Matches count code points of the message; the snippet starts at `start`. */
function marked(text, matches = [], start = 0) {
  const points = [...text];
  const parts = [];
  let at = 0;
  for (const match of matches) {
    const from = Math.max(at, match.start - start), to = Math.min(points.length, match.end - start);
    if (to <= from) continue;
    parts.push(points.slice(at, from).join(""), make("mark", {}, points.slice(from, to).join("")));
    at = to;
  }
  return [...parts, points.slice(at).join("")];
}

export async function chat(sessionId) {
  const [page, known] = await Promise.all([
    call("chat/history", { sessionId, limit: PAGE }),
    call("chat/list", { limit: 200 }).then((list) => list.items.find((each) => each.sessionId === sessionId)),
  ]);
  const title = known ? chatTitle(known) : page.chatId ?? sessionId;
  const turns = make("div");
  const shown = [...page.turns].reverse();
  turns.append(...shown.map((turn) => turnCard(sessionId, turn)));
  return [
    heading(title, [known?.projectPath ?? "No project", " · ", make("code", {}, sessionId)]),
    make("div", { class: "row" },
      make("a", { href: `/patches/${sessionId}` }, "Changes of files"),
      make("button", { type: "button", class: "danger", onclick: () => remove(sessionId, title) }, "Delete chat")),
    await contextCard(sessionId, page.turns), turns, older(sessionId, page.before, turns),
    page.turns.length ? null : empty("No turn yet", "The chat was opened, and no prompt was sent."),
  ];
}

function older(sessionId, before, turns) {
  if (!before) return null;
  const button = make("button", { type: "button" }, "Show older turns");
  button.addEventListener("click", async () => {
    const page = await call("chat/history", { sessionId, before, limit: PAGE });
    turns.append(...[...page.turns].reverse().map((turn) => turnCard(sessionId, turn)));
    before = page.before;
    if (!before) button.remove();
  });
  return button;
}

async function remove(sessionId, title) {
  if (!await confirm(`Delete the chat “${title}”? Its turns cannot be brought back.`, "Delete")) return;
  await call("chat/delete", { sessionId });
  history.pushState(null, "", "/chats");
  document.dispatchEvent(new Event("sidecar-show"));
}

async function contextCard(sessionId, turns) {
  const manifests = await Promise.all(turns.map((turn) =>
    call("chat/context", { sessionId, turnId: turn.id, includeText: false }).catch(() => null)));
  const kinds = [...new Set(manifests.flatMap((each) => sent(each).map((block) => block.kind)))];
  if (!kinds.length) return card("Context of each turn", make("p", { class: "quiet" }, "Nothing was recorded of what was sent with these turns."));
  const layers = kinds.map((kind) => [kind, manifests.map((each) => sent(each).filter((block) => block.kind === kind).reduce((sum, block) => sum + block.tokens, 0))]);
  return card("Context of each turn", make("p", { class: "quiet small" }, "Tokens of the first request of each turn, by block."),
    stackedAreas("Tokens of the context of each turn, by block", turns.map((_, at) => `turn ${at + 1}`), layers));
}

const sent = (manifest) => (manifest?.blocks ?? []).filter((block) => block.included !== "dropped");

function turnCard(sessionId, turn) {
  const usage = turn.usage ?? {};
  const mood = { completed: "good", failed: "bad", denied: "bad", running: "warn" }[turn.status] ?? "";
  return make("section", { class: "card" },
    make("div", { class: "row between" },
      make("span", {}, tag(turn.status, mood), " ", make("span", { class: "quiet small" }, `${moment(turn.startedAt)} · ${turn.model}${turn.endedAt ? ` · ${seconds(turn.endedAt - turn.startedAt)}` : ""}`)),
      make("span", { class: "quiet small" }, `${short(usage.inputTokens)} sent · ${short(usage.cachedTokens)} cached · ${short(usage.outputTokens)} answered`)),
    turn.items.map(item),
    turn.error && make("p", { class: "error" }, turn.error.message),
    unfold("What was sent, and why", () => manifest(sessionId, turn.id, 1)));
}

function item(each) {
  const kind = `item ${each.type} ${each.status}`;
  if (each.type === "tool") return make("div", { class: kind }, toolItem(each));
  if (each.type === "compaction")
    return make("div", { class: kind }, unfold([`Compaction: ${short(each.tokensBefore)} → ${short(each.tokensAfter)} tokens`, tag(each.trigger ?? "")], () => make("pre", { tabindex: 0 }, each.summary ?? "No summary.")));
  const text = each.text ?? each.title ?? (each.entries ? each.entries.map((entry) => `${entry.status}: ${entry.content}`).join("\n") : "");
  const label = each.type === "user" || each.type === "message" ? "" : each.type;
  if (each.type === "thought") return make("div", { class: kind }, unfold("Thought", () => make("pre", { tabindex: 0 }, text)));
  return make("div", { class: kind }, label && tag(label), make("p", {}, text || each.error?.message || ""));
}

function toolItem(each) {
  const took = each.endedAt ? seconds(each.endedAt - each.startedAt) : "";
  const mood = each.status === "completed" ? "good" : each.status === "running" ? "warn" : "bad";
  return unfold([make("code", {}, each.name ?? "tool"), " ", each.title ?? "", tag(each.status, mood), make("span", { class: "quiet small" }, took)], () => [
    each.notRun && make("p", { class: "error" }, `Not run (${each.notRun.code}): ${each.notRun.message}`, each.notRun.instead ? ` Instead: ${each.notRun.instead}.` : ""),
    each.rewritten && make("p", {}, `A hook changed the arguments: ${each.rewritten.by}`),
    make("pre", { tabindex: 0 }, JSON.stringify(each.input ?? null, null, 2)),
    each.output?.text && make("pre", { tabindex: 0 }, each.output.text),
    (each.changes ?? []).map((change) => change.diff ? diff(change.diff) : make("p", {}, change.path)),
    each.error && make("p", { class: "error" }, each.error.message),
  ]);
}

async function manifest(sessionId, turnId, request) {
  const found = await call("chat/context", { sessionId, turnId, request, includeText: true });
  if (!found.blocks.length) return make("p", { class: "quiet" }, "Nothing was recorded of this turn.");
  const gone = { expired: "The texts are older than `session.sent_days`.", damaged: "The texts cannot be read.", not_stored: "The texts were not stored." }[found.textGone];
  const target = make("div");
  if (found.requests > 1) {
    const choice = make("select", { "aria-label": "Request of the turn" }, Array.from({ length: found.requests }, (_, at) => make("option", { value: at + 1, selected: at + 1 === request }, `Request ${at + 1} of ${found.requests}`)));
    choice.addEventListener("change", async () => target.replaceWith(await manifest(sessionId, turnId, Number(choice.value))));
    target.append(choice);
  }
  target.append(
    make("p", { class: "small quiet" }, `${count(found.used)} of ${count(found.budget)} tokens, ${found.exact ? "counted" : "estimated"}, for ${found.model}. ${gone ?? ""}`),
    ...found.blocks.map((block, at) => {
      const dot = make("span", { class: "swatch" });
      dot.style.background = colour(at);
      return unfold([dot, block.label, tag(block.included, block.included === "dropped" ? "warn" : ""), make("span", { class: "quiet small" }, `${plural(block.tokens, "token")} · gate: ${block.gate}`)],
        () => block.text ? make("pre", { tabindex: 0 }, block.text) : make("p", { class: "quiet" }, "This block has no kept text."));
    }));
  return target;
}
