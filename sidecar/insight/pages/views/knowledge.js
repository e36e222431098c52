// The sources of the index, one source with its chunks, and search within a token budget.

import { call } from "../api.js";
import { card, confirm, empty, heading, make, pages, table, tag, unfold } from "../dom.js";
import { age, bytes, count, moment, plural } from "../format.js";

const LETTERS = /[\p{L}\p{N}_]{2,}/gu;
const about = () => call("insight/about");
const address = (database, id) => `/knowledge/${database}/${id}`;

export async function knowledge() {
  const [{ database }, stats] = await Promise.all([about(), call("stats/read")]);
  const title = heading("Knowledge", `${plural(stats.index.sources, "source")}, ${plural(stats.index.chunks, "chunk")}, ${bytes(stats.index.textBytes)} of text, ${bytes(stats.index.diskBytes)} on disk. Read out by models: ${count(stats.returned)} tokens in ${plural(stats.searches, "search", "searches")}.`);
  if (!stats.index.sources) return [title, empty("The index is empty", "Outputs of tools, fetched pages and indexed files appear here. Run `/index PATH` in a chat to add files.")];
  const columns = [["Source", "name"], ["Kind", ""], ["Size", "num"], ["Chunks", "num"], ["Tokens", "num hide-narrow"], ["Kept", "num"]];
  const list = pages((cursor) => call("index/list", { scope: "all", cursor, limit: 50 }), (items) =>
    table(columns, items.map((each) => [
      [make("a", { href: address(database, each.id) }, each.source), each.truncated && tag("truncated", "warn"), make("div", { class: "quiet small" }, each.projectPath ?? "")],
      tag(each.toolName ?? each.kind), bytes(each.bytes), each.chunks ? count(each.chunks) : tag("waiting", "warn"), count(each.tokens), age(each.ts)])));
  await list.more();
  const found = make("div");
  return [title, searchBox(database, found), found, card("Sources", list.target)];
}

function searchBox(database, target) {
  const words = make("input", { type: "search", "aria-label": "Words to find in the index", placeholder: "Words to find in the index" });
  const budget = make("input", { type: "number", min: 100, max: 20000, step: 100, value: 1200, "aria-label": "Token budget" });
  const form = make("form", { class: "row", role: "search" }, words, make("label", { class: "small quiet" }, "Tokens "), budget, make("button", { class: "main" }, "Search"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const query = words.value.trim();
    document.getElementById("main").dataset.searched = query;
    if (!query) { target.replaceChildren(); return; }
    try {
      const { results } = await call("index/search", { queries: [query], scope: "all", maxTokens: Number(budget.value) || 1200 });
      target.replaceChildren(hits(database, query, results[0]));
    } catch (error) {
      target.replaceChildren(make("p", { class: "error" }, error.message));
    }
  });
  return form;
}

function hits(database, query, result) {
  if (!result.hits.length) return card(`Found for “${query}”`, make("p", { class: "quiet" }, "No chunk has these words."));
  const words = (result.corrected ?? query).match(LETTERS) ?? [];
  return card(`Found for “${query}”`,
    make("p", { class: "quiet small" }, `As a model would get it: ${plural(result.hits.length, "hit")}, ${plural(result.tokens, "token")}.`, result.corrected ? ` Searched for “${result.corrected}”.` : ""),
    result.hits.map((hit) => make("div", { class: "item" },
      make("a", { href: address(database, hit.sourceId) }, hit.source), make("span", { class: "quiet small" }, ` ${hit.title} · lines ${hit.lines.start}–${hit.lines.end}`),
      make("pre", { tabindex: 0 }, highlighted(hit.text, words)))));
}

function highlighted(text, words) {
  const wanted = words.map((word) => word.toLowerCase());
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(LETTERS)) {
    if (!wanted.some((word) => match[0].toLowerCase().startsWith(word))) continue;
    parts.push(text.slice(at, match.index), make("mark", {}, match[0]));
    at = match.index + match[0].length;
  }
  return [...parts, text.slice(at)];
}

export async function source(database, id) {
  const here = (await about()).database;
  if (database !== here) return [heading("Another database", `This page shows ${here}. Run \`sidecar insight --data-dir\` for ${database}.`)];
  let known = null;
  const list = pages(async (cursor) => {
    const page = await call("index/chunks", { id, includeText: true, cursor, limit: 50 });
    known ??= page.source;
    return page;
  }, (items) => items.map((chunk) =>
    unfold([chunk.title || "without a title", make("span", { class: "quiet small" }, `${plural(chunk.end - chunk.start, "character")} · lines ${chunk.lines.start}–${chunk.lines.end}`)],
      () => [
        make("dl", { class: "small" }, make("dt", {}, "id"), make("dd", {}, chunk.id), make("dt", {}, "characters"), make("dd", {}, `${count(chunk.start)} to ${count(chunk.end)}`)),
        make("pre", { tabindex: 0 }, chunk.text ?? "")])));
  const first = await list.more();
  const facts = { id: known.id, kind: known.kind, tool: known.toolName, project: known.projectPath, file: known.path, chat: known.sessionId && make("a", { href: `/chats/${known.sessionId}` }, known.sessionId),
    size: `${bytes(known.bytes)}, ${plural(known.lines, "line")}, ${plural(known.tokens, "token")}`, kept: `${moment(known.ts)} (${age(known.ts)})`, complete: known.truncated ? "no, it was too large" : "yes" };
  return [
    heading(known.source, plural(known.chunks, "chunk")),
    make("div", { class: "row" },
      known.path && known.projectPath && make("button", { type: "button", onclick: (event) => reindex(event.target, known) }, "Index again"),
      make("button", { type: "button", class: "danger", onclick: () => remove(known) }, "Delete source")),
    card("", make("dl", {}, Object.entries(facts).filter(([, value]) => value).map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))),
    card("Chunks", first.items.length ? list.target : make("p", { class: "quiet" }, "The source waits to be indexed.")),
  ];
}

async function reindex(button, known) {
  button.disabled = true;
  try {
    await call("index/add", { projectPath: known.projectPath, path: known.path });
    history.pushState(null, "", "/knowledge");
    document.dispatchEvent(new Event("sidecar-show"));
  } catch (error) {
    button.after(make("p", { class: "error" }, error.message));
  }
}

async function remove(known) {
  if (!await confirm(`Delete “${known.source}” from the index? Models can no longer read it there.`, "Delete")) return;
  await call("index/remove", { id: known.id });
  history.pushState(null, "", "/knowledge");
  document.dispatchEvent(new Event("sidecar-show"));
}
