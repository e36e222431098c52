// The only way from the page to the main process: these functions, and nothing of Node or Electron.
const { contextBridge, ipcRenderer } = require("electron");

const on = (channel) => (listener) => ipcRenderer.on(channel, (_, message) => listener(message));

contextBridge.exposeInMainWorld("chats", {
  open: (chatId) => ipcRenderer.invoke("chat:open", chatId),
  follow: (chatId, seq) => ipcRenderer.send("chat:follow", chatId, seq),
  prompt: (chatId, text, promptId) => ipcRenderer.invoke("chat:prompt", chatId, text, promptId),
  stop: (chatId) => ipcRenderer.invoke("chat:stop", chatId),
  answer: (permissionId, decision) => ipcRenderer.invoke("permission:answer", permissionId, decision),
  onEvent: on("chat:event"),
  onError: on("chat:error"),
  onPermission: on("permission:ask"),
  onPermissionDone: on("permission:done"),
});
