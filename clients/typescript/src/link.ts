/**
 * A link to a sidecar that may die: starts it again, and repeats what may be repeated. Knows no chat.
 *
 * Whoever uses the link attaches again (`reattach`) before any other request goes to a new process.
 */
import { Connection } from "./connection.js";
import { SidecarDied, RpcError } from "./errors.js";
import type { Hear, Serve } from "./peer.js";
import type { Transport } from "./process.js";
import type { InitializeParams, InitializeResult, Methods } from "./protocol.js";
import { type Deferred, deferred, sleep } from "./signals.js";

/** The first restart is at once, as most deaths are single; one delay for each of the tries in a row. */
export const RESTART_DELAYS_MS = [0, 100, 500, 1_000, 2_000];

/** A process that lived this long did not die of starting: the tries count from the first again. */
const STABLE_MS = 10_000;

/** A request that outlives two processes is likely what kills them. */
const MAX_SENDS = 3;

/** Methods whose repetition changes something, so that they fail when the process dies with them. */
const NOT_REPEATABLE: ReadonlySet<string> = new Set<keyof Methods>([
  "initialize",
  "chat/fork",
  "chat/import",
  "input/answer",
  "patches/apply",
  "patches/revert",
  "permission/answer",
  "prompt/edit",
  "prompt/remove",
  "settings/write",
  "shutdown",
]);

export type Launch = () => Promise<Transport>;

export interface LinkOptions {
  readonly launch: Launch;
  readonly serve: Serve;
  readonly hear: Hear;
  readonly reattach: (connection: Connection) => Promise<void>;
  /** There will be no other process. */
  readonly ended: (death: SidecarDied) => void;
}

/** Requests that survive the process. `start` it, use it, `stop` it. */
export class Link {
  hello: InitializeParams;
  restarts = 0;
  readonly #options: LinkOptions;
  #failures = 0;
  #born = 0;
  #changed: Deferred<void> = deferred();
  #connection: Connection | undefined;
  #server: InitializeResult | undefined;
  #end: SidecarDied | undefined;

  constructor(hello: InitializeParams, options: LinkOptions) {
    this.hello = hello;
    this.#options = options;
  }

  /** What the present process answered to `initialize`. */
  get server(): InitializeResult {
    if (this.#server === undefined) throw new SidecarDied("The sidecar was never started");
    return this.#server;
  }

  get pid(): number | undefined {
    return this.#connection?.pid;
  }

  /** The first life. What fails here is thrown: a program that never ran is not started again. */
  async start(): Promise<void> {
    this.#connection = await this.#connect();
    void this.#supervise();
  }

  async stop(): Promise<void> {
    this.#giveUp(new SidecarDied("The connection to the sidecar is closed"));
    await this.#connection?.close();
  }

  /** The result as it came, from this process or, for what may be repeated, from a later one. */
  async request(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    for (let left = MAX_SENDS - 1; ; left--) {
      const connection = await this.#live();
      try {
        return await connection.request(method, params, signal);
      } catch (error) {
        if (!(error instanceof SidecarDied) || left === 0 || NOT_REPEATABLE.has(method)) throw error;
      }
    }
  }

  /** A method of the contract, with its types. */
  async ask<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    signal?: AbortSignal,
  ): Promise<Methods[M]["result"]> {
    return (await this.request(method, params, signal)) as Methods[M]["result"];
  }

  async #live(): Promise<Connection> {
    while (this.#end === undefined) {
      if (this.#connection && !this.#connection.isOver) return this.#connection;
      await this.#changed.promise;
    }
    throw this.#end.again();
  }

  async #connect(): Promise<Connection> {
    const connection = new Connection(await this.#options.launch(), this.#options.serve, this.#options.hear);
    try {
      this.#server = await connection.initialize(this.hello);
    } catch (error) {
      await connection.close();
      throw error;
    }
    this.#born = performance.now();
    return connection;
  }

  async #supervise(): Promise<void> {
    while (this.#end === undefined && this.#connection) {
      const death = await this.#connection.over;
      if (this.#end === undefined) await this.#revive(death);
    }
  }

  /** A new process with every chat attached, or the end of the link. */
  async #revive(first: SidecarDied): Promise<void> {
    let death = first;
    if (performance.now() - this.#born > STABLE_MS) this.#failures = 0;
    while (this.#failures < RESTART_DELAYS_MS.length && this.#end === undefined) {
      await sleep(RESTART_DELAYS_MS[this.#failures++] ?? 0);
      try {
        if (this.#end === undefined) await this.#beginNewLife();
        return;
      } catch (error) {
        if (error instanceof SidecarDied) {
          death = error;
          continue;
        }
        if (!(error instanceof RpcError)) throw error;
        death = new SidecarDied(`A new sidecar refused to start: ${error.message}`);
        break;
      }
    }
    this.#giveUp(death);
  }

  async #beginNewLife(): Promise<void> {
    const connection = await this.#connect();
    if (this.#end !== undefined) return connection.close();
    await this.#options.reattach(connection);
    this.#connection = connection;
    this.restarts += 1;
    this.#tell();
  }

  #giveUp(death: SidecarDied): void {
    if (this.#end === undefined) {
      this.#end = death;
      this.#options.ended(death);
    }
    this.#tell();
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }
}
