// The page of the Tauri example: spawns Sidecar, opens one chat, shows answers as they stream.
const { Command } = window.__TAURI__.shell;

const show = (id) => document.getElementById(id);
const waiting = new Map();
const items = new Map();
let child, sessionId, lastId = 0;

async function start() {
  const command = Command.sidecar("binaries/sidecar", ["serve"]);
  command.stdout.on("data", (line) => receive(JSON.parse(line))); // the plugin splits at line ends
  command.stderr.on("data", (line) => console.debug(line));
  command.on("close", ({ code }) => {
    for (const { reject } of waiting.values()) reject(new Error("Sidecar ended"));
    waiting.clear();
    show("state").textContent = `Sidecar ended with code ${code}. Reload the window to start it again.`;
  });
  child = await command.spawn();
  await ask("initialize", { protocol: "sidecar", versions: [1], client: { name: "tauri-example" } });
  const opened = await ask("chat/open", { chatId: "main", tail: { turns: 30 } });
  sessionId = opened.sessionId;
  for (const turn of opened.turns) for (const item of turn.items) put(item);
}

function ask(method, params) {
  const id = ++lastId;
  const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  child.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  return answer;
}

function receive({ id, method, params, result, error }) {
  if (method === "event" && params.sessionId === sessionId) return follow(params);
  const waiter = method === undefined ? waiting.get(id) : undefined;
  if (!waiter) return;
  waiting.delete(id);
  if (error) waiter.reject(new Error(error.message));
  else waiter.resolve(result);
}

function follow({ type, data }) {
  if (data.item) put(data.item);
  if (type === "message.delta") put({ id: data.itemId, text: (items.get(data.itemId)?.textContent ?? "") + data.text });
  if (type === "turn.ended") show("state").textContent = data.error?.message ?? "";
}

/** The row of an item, made or brought up to date. */
function put({ id, type, text, title, content }) {
  let row = items.get(id);
  if (!row) {
    row = show("messages").appendChild(document.createElement("p"));
    row.dataset.type = type ?? "message";
    items.set(id, row);
  }
  const said = text ?? content?.map((block) => block.text ?? "").join("\n") ?? title;
  if (said !== undefined) row.textContent = said;
}

show("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = show("text").value;
  if (text === "") return;
  show("text").value = "";
  const promptId = `p-${crypto.randomUUID().replaceAll("-", "")}`;
  await ask("prompt/send", { sessionId, promptId, text }).catch((error) => (show("state").textContent = error.message));
});
show("stop").addEventListener("click", () => ask("turn/cancel", { sessionId }).catch(() => undefined));

start().catch((error) => (show("state").textContent = error.message));
