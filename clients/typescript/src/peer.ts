/**
 * One end of a JSON-RPC connection: messages to calls and calls to messages. It has the table of requests that wait for
 * an answer, and that of requests of the other side while they are handled. Knows no method and no transport.
 *
 * Every request of the other side gets exactly one answer, also when its handler fails or is cancelled.
 */
import { RpcError } from "./errors.js";
import type { ErrorObject } from "./protocol.js";
import { type Deferred, deferred, onAbort } from "./signals.js";

type Id = number | string;

/** A message as it is on the wire; members that it must have are checked where they are used. */
interface Message {
  readonly id?: Id | null;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: ErrorObject;
}

/** Answers a request of the other side; `signal` aborts when the answer is no longer needed. */
export type Serve = (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>;

export type Hear = (method: string, params: unknown) => void;

export class Peer {
  readonly #waiting = new Map<Id, Deferred<unknown>>();
  readonly #calls = new Map<Id, AbortController>();
  readonly #write: (text: string) => void;
  readonly #serve: Serve;
  readonly #hear: Hear;
  #nextId = 0;
  #closed: Error | undefined;

  /** `write` takes one message and must not wait. */
  constructor(write: (text: string) => void, serve: Serve, hear: Hear) {
    this.#write = write;
    this.#serve = serve;
    this.#hear = hear;
  }

  /** Take one frame; one that is no message is ignored. */
  receive(frame: string): void {
    const message = parse(frame);
    if (message === undefined) return;
    const { id, method } = message;
    if (method === undefined) this.#settle(message);
    else if (id !== undefined && id !== null) void this.#answer(id, method, message.params);
    else if (method === "$/cancelRequest") this.#cancel(message.params);
    else this.#hear(method, message.params);
  }

  /** Ask the other side; aborting `signal` cancels the request there and rejects with the signal's reason. */
  async request(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.#closed) throw this.#closed;
    signal?.throwIfAborted();
    const id = ++this.#nextId;
    const waiter = deferred<unknown>();
    this.#waiting.set(id, waiter);
    this.#send({ id, method, params });
    const release = onAbort(signal, () => {
      if (this.#waiting.delete(id)) this.notify("$/cancelRequest", { id });
      waiter.reject(signal?.reason);
    });
    try {
      return await waiter.promise;
    } finally {
      release();
    }
  }

  notify(method: string, params: unknown): void {
    this.#send({ method, params });
  }

  /** From now on every request fails with `error`, and what is handled is aborted. */
  close(error: Error): void {
    this.#closed = error;
    for (const waiter of this.#waiting.values()) waiter.reject(error);
    this.#waiting.clear();
    for (const call of this.#calls.values()) call.abort(error);
  }

  async #answer(id: Id, method: string, params: unknown): Promise<void> {
    if (this.#calls.has(id)) return this.#refuse(id, RpcError.named("invalid_request", `The id ${id} is in use`));
    const call = new AbortController();
    this.#calls.set(id, call);
    // A handler that ignores its signal must not delay the answer to the cancellation.
    const cancelled = deferred<never>();
    const release = onAbort(call.signal, () => {
      cancelled.reject(RpcError.named("request_cancelled", "Cancelled by the side that asked"));
    });
    try {
      const result = await Promise.race([this.#serve(method, params, call.signal), cancelled.promise]);
      this.#send({ id, result: result ?? {} });
    } catch (error) {
      this.#refuse(id, error);
    } finally {
      release();
      this.#calls.delete(id);
    }
  }

  #refuse(id: Id, error: unknown): void {
    const known = error instanceof RpcError ? error : RpcError.named("internal_error", String(error));
    const { code, message, data } = known;
    this.#send({ id, error: { code, message, data } });
  }

  #settle({ id, result, error }: Message): void {
    // A late answer finds no waiter and is ignored, instead of reaching the next request.
    if (id === undefined || id === null) return;
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) waiter?.reject(new RpcError(error.code, error.message, error.data ?? {}));
    else waiter?.resolve(result);
  }

  #cancel(params: unknown): void {
    if (isObject(params)) this.#calls.get(params["id"] as Id)?.abort();
  }

  #send(message: object): void {
    this.#write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(frame: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(frame);
    return isObject(message) ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}
