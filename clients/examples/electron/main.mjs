// Electron's main process: windows and messages. What it does with chats is in `chats.mjs`.
import { app, BrowserWindow, ipcMain } from "electron";
import { fileURLToPath } from "node:url";

import { Chats } from "./chats.mjs";

const chats = new Chats((channel, message) => {
  for (const window of BrowserWindow.getAllWindows()) window.webContents.send(channel, message);
});

const followed = new Map(); // what ends the loop of each window

function openWindow() {
  const window = new BrowserWindow({
    width: 760,
    height: 680,
    webPreferences: {
      preload: fileURLToPath(new URL("preload.cjs", import.meta.url)),
      contextIsolation: true,
      sandbox: true,
      nodeIntegration: false,
    },
  });
  // The page is ours alone: it opens no other page and no window.
  window.webContents.on("will-navigate", (event) => event.preventDefault());
  window.webContents.setWindowOpenHandler(() => ({ action: "deny" }));
  const { id } = window.webContents;
  window.on("closed", () => unfollow(id));
  window.loadFile(fileURLToPath(new URL("index.html", import.meta.url)));
}

function unfollow(id) {
  followed.get(id)?.abort();
  followed.delete(id);
}

ipcMain.handle("chat:open", (_, chatId) => chats.open(chatId));
ipcMain.handle("chat:prompt", (_, chatId, text, promptId) => chats.prompt(chatId, text, promptId));
ipcMain.handle("chat:stop", (_, chatId) => chats.stop(chatId));
ipcMain.handle("permission:answer", (_, id, decision) => chats.answer(id, decision));
ipcMain.on("chat:follow", ({ sender }, chatId, seq) => {
  unfollow(sender.id); // a reloaded page begins again
  const end = new AbortController();
  followed.set(sender.id, end);
  const send = (event) => !sender.isDestroyed() && sender.send("chat:event", event);
  chats.follow(chatId, seq, end.signal, send).catch((error) => !sender.isDestroyed() && sender.send("chat:error", error.message));
});

let closing = false;
app.on("before-quit", async (event) => {
  if (closing) return;
  closing = true;
  event.preventDefault(); // running turns are ended and stored first, which takes at most two seconds
  await chats.close();
  app.quit();
});
app.on("window-all-closed", () => app.quit());

await app.whenReady();
await chats.start({ dataDir: app.getPath("userData") });
openWindow();
