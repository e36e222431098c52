// The client replays the recorded conversations: `sidecar-conformance --play` is the sidecar, and compares what is sent.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { RpcError, Sidecar } from "@sidecar/client";

import { ROOT } from "./support.mjs";

const FOLDER = join(ROOT, "protocol/transcripts");
const PLAYER = [join(ROOT, ".venv/bin/python"), "-m", "sidecar_conformance", "--play"];

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".jsonl"))) {
  const name = file.replace(".jsonl", "");
  processesOf(join(FOLDER, file)).forEach((lines, index) => {
    test(`${name}, process ${index + 1}, is followed`, { timeout: 240_000 }, () => replay(name, index + 1, lines));
  });
}

async function replay(name, number, lines) {
  const conversation = new Conversation(lines);
  const errors = [];
  const app = await Sidecar.spawn({
    command: [...PLAYER, name, "--process", String(number)],
    env: { PYTHONPATH: join(ROOT, "clients/conformance") },
    log: (line) => errors.push(line),
    ...conversation.handlers(),
  });
  try {
    await conversation.follow(app);
  } catch (error) {
    throw new Error(`${error.message}\n${errors.join("\n")}`, { cause: error });
  } finally {
    await app.close();
  }
  assert.deepEqual(errors, []);
}

/** One process of a transcript, from the answer to `initialize` on. */
class Conversation {
  #lines;
  #hello;
  #asked = []; // requests of the sidecar in the order of their lines, each with what the handler waits for

  constructor(lines) {
    const accepted = new Set(lines.filter(({ from, message }) => from === "sidecar" && "result" in message).map(({ message }) => message.id));
    const start = lines.findIndex(({ message }) => message.method === "initialize" && accepted.has(message.id));
    this.#hello = start < 0 ? {} : lines[start].message.params;
    this.#lines = lines.slice(start + 1);
    for (const { from, message } of this.#lines) {
      if (from === "sidecar" && "method" in message && "id" in message) {
        this.#asked.push({ id: message.id, params: message.params, arrived: deferred(), answer: deferred() });
      }
    }
  }

  handlers() {
    let next = 0;
    const take = (params, signal) => {
      const request = this.#asked[next++];
      assert.deepEqual(params, request.params);
      request.arrived.resolve(signal);
      return request.answer.promise;
    };
    const offers = this.#lines.filter(({ message }) => message.method === "tools/offer").map(({ message }) => message.params.tools);
    const tools = [this.#hello.tools ?? [], ...offers].flat().map((tool) => ({ ...tool, handler: take }));
    const { permissions, input, buffers } = this.#hello.capabilities ?? {};
    return {
      tools,
      ...(permissions && { onPermission: take }),
      ...(input && { onInput: take }),
      ...(buffers && { onReadBuffer: async (...given) => (await take(...given)).text }),
    };
  }

  async follow(app) {
    const waiting = [];
    const chats = new Map();
    const signals = new Map();
    for (const { from, message } of this.#lines) {
      if (from !== "client") continue;
      if (message.method === "exit") break;
      if (message.method === "$/cancelRequest") {
        signals.get(message.params.id)?.abort();
      } else if ("method" in message && "id" in message) {
        const cancel = new AbortController();
        signals.set(message.id, cancel);
        const call = app.call(message.method, message.params, { signal: cancel.signal });
        waiting.push(this.#compare(message, call, cancel.signal, (opened) => this.#adopt(app, chats, opened)));
      } else if ("id" in message) {
        await this.#answer(message);
      }
      await new Promise(setImmediate); // what is sent keeps the order of the lines
    }
    await Promise.all(waiting);
    for (const [session, { events, after }] of chats) await this.#compareEvents(session, events, after);
  }

  #adopt(app, chats, opened) {
    const chat = app.adopt({ sessionId: opened.sessionId }, opened);
    if (!chats.has(opened.sessionId)) chats.set(opened.sessionId, { events: chat.events(opened.asOf.seq), after: opened.asOf });
  }

  async #answer({ id, result, error }) {
    const request = this.#asked.find((each) => each.id === id);
    const signal = await request.arrived.promise;
    if (result !== undefined) request.answer.resolve(result);
    else if (error.code !== -32800) request.answer.reject(new Error(error.message));
    else if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  }

  async #compare({ id, method }, call, signal, adopt) {
    const expected = this.#lines.find((line) => line.from === "sidecar" && line.message.id === id && !line.message.method);
    if (signal.aborted) return assert.rejects(call);
    if (expected?.message.error) {
      const { code, data } = expected.message.error;
      return assert.rejects(call, (error) => error instanceof RpcError && error.code === code && error.errorName === data.name);
    }
    const result = await call.catch((error) => {
      if (!signal.aborted) throw error;
    });
    if (result === undefined) return;
    assert.deepEqual(result, expected.message.result);
    if (["chat/open", "chat/fork"].includes(method)) adopt(result);
  }

  /** The events after the chat was opened, in order; a replay of an earlier cursor is of no later ones. */
  async #compareEvents(session, events, after) {
    const all = this.#lines.filter(({ message }) => message.method === "event").map(({ message }) => message.params);
    let last = after.seq;
    const expected = all.filter((event) => {
      const isNext = event.sessionId === session && event.epoch === after.epoch && (event.from ?? event.seq) === last + 1;
      if (isNext) last = event.seq;
      return isNext;
    });
    for (const event of expected) assert.deepEqual((await events.next()).value, event);
    events.close();
  }
}

/** The messages of each process, without those that no client library can send. */
function processesOf(path) {
  const processes = [];
  for (const text of readFileSync(path, "utf8").trimEnd().split("\n")) {
    const line = JSON.parse(text);
    if (line.from === "setup") processes.push([]);
    else if (isValid(line.message)) processes.at(-1).push(line);
  }
  return processes;
}

function isValid(message) {
  if (typeof message !== "object" || message === null || Array.isArray(message)) return false;
  return !("method" in message) || (typeof (message.params ?? {}) === "object" && !Array.isArray(message.params));
}

function deferred() {
  let resolve, reject;
  const promise = new Promise((...settle) => ([resolve, reject] = settle));
  return { promise, resolve, reject };
}
