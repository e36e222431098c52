// Shows the page that the address names, again after changes, and moves focus when the page changes.

import { listen } from "./api.js";
import { make } from "./dom.js";
import { overview } from "./views/overview.js";
import { chat, chats } from "./views/chats.js";
import { knowledge, source } from "./views/knowledge.js";
import { rules } from "./views/rules.js";
import { patches } from "./views/patches.js";
import { tools } from "./views/tools.js";
import { agents } from "./views/agents.js";
import { doctor } from "./views/doctor.js";

const SECOND_MS = 1000;
const VIEWS = { "": overview, chats, knowledge, rules, patches, tools, agents, doctor };
const main = document.getElementById("main");
const live = document.getElementById("live");
let shown = 0;
let last = 0;
let waiting = null;

function find(path) {
  const [page, first, second] = path.split("/").filter(Boolean);
  if (page === "chats" && first) return () => chat(first);
  if (page === "knowledge" && second) return () => source(first, second);
  return VIEWS[page ?? ""] ?? (() => [make("h1", {}, "There is no such page"), make("a", { href: "/" }, "Overview")]);
}

async function show({ moved = false } = {}) {
  const mine = ++shown;
  for (const link of document.querySelectorAll("nav a")) {
    const page = link.getAttribute("href").split("/")[1];
    if (page === location.pathname.split("/")[1]) { link.setAttribute("aria-current", "page"); if (moved) link.scrollIntoView({ block: "nearest", inline: "nearest" }); }
    else link.removeAttribute("aria-current");
  }
  let content;
  try {
    content = await find(location.pathname)();
  } catch (error) {
    content = [make("h1", {}, "This could not be read"), make("p", { class: "error" }, error.message)];
  }
  if (mine !== shown) return;
  last = Date.now();
  main.replaceChildren(...[content].flat(Infinity).filter(Boolean));
  document.title = `${main.querySelector("h1")?.textContent ?? "Sidecar"} · Sidecar`;
  if (moved) { window.scrollTo(0, 0); main.focus(); }
}

/** Read again, at most once a second, and never under the user's hands. */
function changed() {
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = null;
    const busy = main.querySelector("details[open], input:focus, select:focus") || document.querySelector("dialog[open]") || main.dataset.searched;
    if (busy) live.textContent = "Changed; reload to see it";
    else show();
  }, Math.max(50, last + SECOND_MS - Date.now()));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
document.addEventListener("sidecar-show", () => show());

export function go(path) {
  history.pushState(null, "", path);
  delete main.dataset.searched;
  show({ moved: true });
}

window.addEventListener("popstate", () => show({ moved: true }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
listen(changed, (on) => {
  live.className = on ? "on" : "";
  live.textContent = on ? "Live" : "Not connected";
});
show();
