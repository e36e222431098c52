// Builds elements. Text reaches the page as text nodes only: nothing here or elsewhere parses markup.

/** An element with properties and children; strings become text. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export const heading = (title, lead) => [make("h1", {}, title), make("p", { class: "lead" }, lead)];

export const card = (title, ...children) =>
  make("section", { class: "card" }, title && make("h2", {}, title), children);

export const empty = (title, advice) =>
  make("div", { class: "card empty" }, make("b", {}, title), make("p", {}, advice));

export const tag = (text, mood = "") => make("span", { class: `tag ${mood}` }, text);

export const figure = (value, label) =>
  make("div", { class: "figure" }, make("b", {}, value), make("span", {}, label));

/** A table. A column is [title, "num"?]; a cell is text or an element. */
export function table(columns, rows) {
  const head = columns.map(([title, kind]) => make("th", { class: kind, scope: "col" }, title));
  const body = rows.map((cells) =>
    make("tr", {}, cells.map((cell, at) => make("td", { class: columns[at][1] }, cell))));
  return make("div", { class: "scroll" },
    make("table", {}, make("thead", {}, make("tr", {}, head)), make("tbody", {}, body)));
}

/** Details whose content is made when they are opened for the first time. */
export function unfold(summary, fill) {
  const element = make("details", {}, make("summary", {}, summary));
  element.addEventListener("toggle", async () => {
    if (!element.open || element.dataset.filled) return;
    element.dataset.filled = "1";
    try {
      append(element, [await fill()]);
    } catch (error) {
      append(element, [make("p", { class: "error" }, error.message)]);
    }
  });
  return element;
}

export function diff(text) {
  const mood = (line) =>
    line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@") ? "head"
      : line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : "";
  const lines = text.replace(/\n$/, "").split("\n");
  return make("pre", { class: "diff", tabindex: 0 }, lines.map((line) => make("span", { class: mood(line) }, line || " ")));
}

/** A form with one field for words; `search` gets what was typed. */
export function searchForm(label, value, search, action = "Search") {
  const field = make("input", { type: "search", "aria-label": label, placeholder: label, value });
  const form = make("form", { class: "row", role: "search" }, field, make("button", { class: "main" }, action));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    search(field.value.trim());
  });
  return form;
}

/** A list that grows by a button: `read(cursor)` returns {items, nextCursor}, `show` puts items into the target. */
export function pages(read, show) {
  const target = make("div");
  const button = make("button", { type: "button" }, "Show more");
  let cursor;
  async function more() {
    button.remove();
    const page = await read(cursor);
    target.append(...[show(page.items)].flat());
    cursor = page.nextCursor;
    if (cursor) target.append(button);
    return page;
  }
  button.addEventListener("click", more);
  return { target, more };
}

/** Ask once; resolves to whether the user agreed. */
export function confirm(question, action) {
  const dialog = document.getElementById("ask");
  document.getElementById("ask-text").textContent = question;
  const yes = document.getElementById("ask-yes");
  yes.textContent = action;
  return new Promise((resolve) => {
    const end = (answer) => () => { dialog.returnValue = answer; dialog.close(); };
    yes.onclick = end("yes");
    document.getElementById("ask-no").onclick = end("no");
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
    dialog.returnValue = "no";
    dialog.showModal();
    document.getElementById("ask-no").focus();
  });
}
