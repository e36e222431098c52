/** One life of a sidecar: a peer over a transport, from `initialize` to its death. Knows no chats. */
import { SidecarDied } from "./errors.js";
import { LineSplitter } from "./framing.js";
import { type Hear, Peer, type Serve } from "./peer.js";
import type { Transport } from "./process.js";
import type { InitializeParams, InitializeResult } from "./protocol.js";
import { type Deferred, deferred, settledWithin } from "./signals.js";

/** `initialize` is answered before the database is opened: what takes this long is no sidecar. */
const GREETING_MS = 30_000;

/** The contract's bound on shutting down; after it the process is terminated. */
const LEAVE_MS = 2_000;

/** Requests to one sidecar process. `over` settles once it is gone, with how it went. */
export class Connection {
  readonly #transport: Transport;
  readonly #peer: Peer;
  readonly #over: Deferred<SidecarDied> = deferred();
  readonly #stop = new AbortController();
  #death: SidecarDied | undefined;

  constructor(transport: Transport, serve: Serve, hear: Hear) {
    this.#transport = transport;
    this.#peer = new Peer((text) => transport.send(text), serve, hear);
    void this.#run();
  }

  get pid(): number | undefined {
    return this.#transport.pid;
  }

  get over(): Promise<SidecarDied> {
    return this.#over.promise;
  }

  get isOver(): boolean {
    return this.#death !== undefined;
  }

  async initialize(hello: InitializeParams): Promise<InitializeResult> {
    const limit = new AbortController();
    const timer = setTimeout(() => {
      limit.abort(new SidecarDied(`The program does not answer \`initialize\` within ${GREETING_MS / 1000} seconds`));
    }, GREETING_MS);
    try {
      return (await this.request("initialize", hello, limit.signal)) as InitializeResult;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The result as it came. Throws `RpcError` for an error, `SidecarDied` when the process goes instead. */
  async request(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    try {
      return await this.#peer.request(method, params, signal);
    } catch (error) {
      throw error === GONE ? (await this.over).again() : error;
    }
  }

  /** `shutdown`, `exit`, and whatever it takes; done when the process is gone. */
  async close(): Promise<void> {
    await settledWithin(this.#sayGoodbye(), LEAVE_MS);
    this.#stop.abort();
    await this.over;
  }

  async #sayGoodbye(): Promise<void> {
    await this.request("shutdown", {}).catch(() => undefined);
    this.#peer.notify("exit", {});
    this.#transport.endInput();
    await this.over;
  }

  /** Read until the process is gone. */
  async #run(): Promise<void> {
    const stopped = deferred<void>();
    this.#stop.signal.addEventListener("abort", () => stopped.resolve());
    let grace = LEAVE_MS;
    try {
      await Promise.race([this.#readAll(), stopped.promise]);
    } catch {
      grace = 0; // a frame of no sidecar
    }
    if (this.#stop.signal.aborted) grace = 0;
    this.#peer.close(GONE);
    this.#death = await this.#transport.finish(grace);
    this.#over.resolve(this.#death);
  }

  async #readAll(): Promise<void> {
    const splitter = new LineSplitter();
    for await (const chunk of this.#transport.receive()) {
      for (const line of splitter.feed(chunk)) this.#peer.receive(line.toString("utf8"));
    }
  }
}

/** What the peer fails waiting requests with; replaced by the process's own end. */
const GONE = new Error("The sidecar is gone");
