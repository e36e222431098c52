// The page: shows turns and events. A reload opens the chat again and continues after the last event.
const { chats } = window;
const CHAT = "main";
const find = (id) => document.getElementById(id);
const messages = find("messages");
const shown = new Map(); // elements by the ids of their items
let last = 0;
let asked; // the permission that is shown

function show(id, text, kind) {
  const element = shown.get(id) ?? messages.appendChild(document.createElement("div"));
  shown.set(id, element);
  element.className = `message ${kind}`;
  element.textContent = text;
  element.scrollIntoView({ block: "end" });
}

function showItem(item) {
  if (item.type === "user") show(item.id, item.text ?? "", "user");
  else if (item.type === "message") show(item.id, item.text ?? "", "assistant");
  else show(item.id, item.title ?? item.text ?? item.type, "note"); // one that this version does not know has a title
}

function apply(event) {
  if (event.seq <= last) return; // shown before
  last = event.seq;
  if (event.type === "message.delta") {
    show(event.data.itemId, (shown.get(event.data.itemId)?.textContent ?? "") + event.data.text, "assistant");
  } else if (event.data.item) showItem(event.data.item);
  if (event.type === "chat.state") find("stop").disabled = event.data.state === "idle";
  if (event.type === "turn.ended" && event.data.error) show(`error-${event.seq}`, event.data.error.message, "note");
}

function ask(request) {
  asked = request;
  find("question").textContent = [request.title, ...request.changes.map((change) => change.unifiedDiff ?? change.path)].join("\n");
  find("permission").hidden = false;
}

function decide(decision) {
  chats.answer(asked.permissionId, decision);
  find("permission").hidden = true;
}

chats.onEvent(apply);
chats.onError((message) => show(`error-${Date.now()}`, message, "note"));
chats.onPermission(ask);
chats.onPermissionDone((id) => asked?.permissionId === id && (find("permission").hidden = true));
find("allow").onclick = () => decide("allow_once");
find("deny").onclick = () => decide("deny_once");
find("stop").onclick = () => chats.stop(CHAT);
find("form").onsubmit = (submitted) => {
  submitted.preventDefault();
  const text = find("text").value.trim();
  if (text) chats.prompt(CHAT, text, crypto.randomUUID()).catch((error) => show(`error-${Date.now()}`, error.message, "note"));
  find("text").value = "";
};
find("text").onkeydown = (key) => {
  if (key.key === "Enter" && !key.shiftKey && !key.isComposing) {
    key.preventDefault();
    find("form").requestSubmit();
  }
};

const opened = await chats.open(CHAT);
document.title = opened.title ?? "Chat";
for (const turn of opened.turns) turn.items.forEach(showItem);
opened.questions.forEach(ask);
last = opened.cursor.seq;
chats.follow(CHAT, last);
