// The health of instruction rules: what is loaded, what is stale or broken, and what a prompt would load.

import { call } from "../api.js";
import { card, empty, figure, heading, make, searchForm, table, tag } from "../dom.js";
import { age, count, isKnown, plural, total } from "../format.js";

const RECENT = 6;
const STALE = { no_match: "its globs match no file", unused: "not needed for 30 days" };
let chosen = "";

export async function rules() {
  const { projects } = await call("stats/read");
  const paths = projects.map((each) => each.path);
  if (!paths.includes(chosen)) chosen = paths[0] ?? "";
  const scope = chosen ? { projectPath: chosen } : {};
  const { items } = await call("rules/list", scope);
  const title = heading("Rules health", "Files of instructions for the model, such as AGENTS.md.");
  const picker = projectPicker(paths);
  if (!items.length) return [title, picker, empty("No rules apply here", "Write AGENTS.md in the project, or Markdown files in .sidecar/rules.")];
  const most = items.reduce((best, each) => (each.loadCount > best.loadCount ? each : best));
  const recent = items.filter((each) => isKnown(each.lastSeen)).sort((a, b) => b.lastSeen - a.lastSeen).slice(0, RECENT);
  const wanting = items.filter((each) => each.problem || each.stale);
  return [title, picker,
    card("", make("div", { class: "figures" },
      figure(count(items.length), "rules"), figure(count(total(items, "loadCount")), "loads"),
      figure(count(total(items, "tokens")), "tokens of all"), figure(most.loadCount ? most.name : "–", most.loadCount ? `most loaded: ${plural(most.loadCount, "load")}` : "most loaded: none yet"))),
    card("Recently used", recent.length ? table([["Rule", "name"], ["Loads", "num"], ["Last seen", "num"]], recent.map((each) => [each.name, count(each.loadCount), age(each.lastSeen)]))
      : make("p", { class: "quiet" }, "No prompt has loaded a rule yet.")),
    wanting.length ? card("Needs attention", table([["Rule", "name"], ["Why", "name"]], wanting.map((each) => [each.rulePath, [tag(each.problem ? "broken" : "stale", each.problem ? "bad" : "warn"), " ", each.problem ?? STALE[each.stale] ?? each.stale]]))) : null,
    card("All rules", table([["Rule", "name"], ["Applies", ""], ["Tokens", "num"], ["Loads", "num"], ["Changed", "num hide-narrow"]], items.map((each) =>
      [[each.rulePath, make("div", { class: "quiet small" }, each.scope)], each.applies, count(each.tokens), count(each.loadCount), age(each.lastChanged)]))),
    tryPrompt(scope)];
}

export function projectPicker(paths) {
  if (!paths.length) return null;
  const choice = make("select", { "aria-label": "Project" }, paths.map((path) => make("option", { value: path, selected: path === chosen }, path)));
  choice.addEventListener("change", () => { chosen = choice.value; choice.blur(); document.dispatchEvent(new Event("sidecar-show")); });
  return make("div", { class: "row" }, make("span", { class: "quiet" }, "Project"), choice);
}
export const chosenProject = () => chosen;

function tryPrompt(scope) {
  const target = make("div");
  return card("Which rules would a prompt load?", searchForm("A prompt", "", async (text) => {
    document.getElementById("main").dataset.searched = text;
    if (!text) { target.replaceChildren(); return; }
    try {
      const { items } = await call("chat/list", { ...scope, limit: 1 });
      if (!items.length) { target.replaceChildren(make("p", { class: "quiet" }, "The project has no chat to try it in.")); return; }
      const { blocks } = await call("chat/context", { sessionId: items[0].sessionId, text });
      const found = blocks.filter((block) => block.kind === "rules");
      target.replaceChildren(found.length ? table([["Rule", "name"], ["Gate", ""], ["Tokens", "num"]], found.map((each) => [[each.label, " ", each.included === "dropped" ? tag("not sent", "warn") : tag("sent", "good")], each.gate, count(each.tokens)]))
        : make("p", { class: "quiet" }, "None."));
    } catch (error) {
      target.replaceChildren(make("p", { class: "error" }, error.message));
    }
  }, "Try"), target);
}
