// The main process's half of the chat: one sidecar, any number of windows. Knows no Electron, so that Node can test it.
//
// A renderer may reload at any moment. It says which event it has shown last, and gets what came after it; the prompt
// belongs to this process, so that a reload cancels nothing.
import { Sidecar } from "@sidecar/client";

export class Chats {
  #app;
  #chats = new Map();
  #answers = new Map(); // what runs in each chat, for its stop button
  #questions = new Map(); // permissions that wait for a user, by their id
  #project = {};
  #show;

  /** `show(channel, message)` sends to every window. */
  constructor(show) {
    this.#show = show;
  }

  /** `projectPath` is the folder that tools work in; without one the model gets no file tools. */
  async start({ projectPath, ...options } = {}) {
    this.#project = projectPath === undefined ? {} : { projectPath };
    this.#app = await Sidecar.spawn({
      clientName: "sidecar-electron-example",
      onPermission: (request, signal) => this.#ask(request, signal),
      ...options,
    });
  }

  /** What a window shows first: the newest turns, and where its events begin. */
  async open(chatId) {
    const chat = await this.#chat(chatId);
    const { turns, asOf } = await chat.history({ limit: 30 });
    const questions = [...this.#questions.values()].map(({ request }) => request);
    return { title: chat.title, turns, cursor: asOf, questions };
  }

  /** Every event of the chat after `seq`, until `signal` aborts: one loop for each window. */
  async follow(chatId, seq, signal, onEvent) {
    const events = (await this.#chat(chatId)).events(seq);
    signal.addEventListener("abort", () => events.close(), { once: true });
    if (signal.aborted) events.close();
    for await (const event of events) onEvent(event);
  }

  /** Send a prompt. The window shows it when its events come; a repeat with the same id runs once. */
  async prompt(chatId, text, promptId) {
    const answer = (await this.#chat(chatId)).prompt(text, { promptId });
    this.#answers.set(chatId, answer);
    try {
      for await (const _ of answer); // windows follow the chat's events themselves
    } finally {
      if (this.#answers.get(chatId) === answer) this.#answers.delete(chatId);
    }
    return answer.reason;
  }

  async stop(chatId) {
    await this.#answers.get(chatId)?.cancel();
  }

  /** The user's decision; one that comes late or twice changes nothing. */
  answer(permissionId, decision) {
    this.#questions.get(permissionId)?.decide(decision);
  }

  async close() {
    await this.#app?.close();
  }

  async #chat(chatId) {
    if (!this.#chats.has(chatId)) this.#chats.set(chatId, this.#app.chat(chatId, this.#project));
    return this.#chats.get(chatId);
  }

  #ask(request, signal) {
    return new Promise((resolve) => {
      const done = (decision) => {
        this.#questions.delete(request.permissionId);
        this.#show("permission:done", request.permissionId);
        resolve(decision);
      };
      this.#questions.set(request.permissionId, { request, decide: done });
      signal.addEventListener("abort", () => done("deny_once"), { once: true });
      this.#show("permission:ask", request);
    });
  }
}
