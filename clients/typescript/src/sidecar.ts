/**
 * The app's end of a sidecar: spawn it, open chats, ask anything of the contract.
 *
 * Gives each event to its chat. Death and restart are `link`'s, the order of events is `feed`'s.
 */
import { Chat, type Home } from "./chat.js";
import type { Connection } from "./connection.js";
import { RpcError, type SidecarDied } from "./errors.js";
import { Feed } from "./feed.js";
import { findSidecar } from "./find.js";
import { Handlers, type HandlerOptions, type Tool } from "./handlers.js";
import { type Launch, Link } from "./link.js";
import { isObject } from "./peer.js";
import { ServerProcess } from "./process.js";
import {
  type ChatImportParams,
  type ChatImportResult,
  type ChatListParams,
  type ChatListResult,
  type ChatOpenParams,
  type ChatOpenResult,
  type ChatSearchParams,
  type ChatSearchResult,
  type DoctorRunResult,
  type Event,
  type HistoryImportParams,
  type HistoryImportResult,
  type InitializeParams,
  type InitializeResult,
  type Methods,
  type ModelInfo,
  type SettingsReadResult,
  type Status,
  VERSIONS,
} from "./protocol.js";

/** Events of one `events/read`, about as many as a subscription holds. */
const PAGE_EVENTS = 500;

export interface ConnectOptions extends HandlerOptions {
  /** The app's name; other processes see it as the owner of a chat. */
  readonly clientName?: string | undefined;
  readonly clientVersion?: string | undefined;
  /** Gets what belongs to no chat. */
  readonly status?: ((status: Status) => void) | undefined;
}

export interface SpawnOptions extends ConnectOptions {
  /** The program and its arguments; without it `findSidecar()` and `serve`. */
  readonly command?: readonly string[] | undefined;
  readonly dataDir?: string | undefined;
  readonly model?: string | undefined;
  /** The path of a configuration file. */
  readonly config?: string | undefined;
  /** Added to the present environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  /** Gets each line of stderr. */
  readonly log?: ((line: string) => void) | undefined;
}

export interface ChatOptions {
  projectPath?: string;
  namespace?: string;
  sessionId?: string;
  config?: NonNullable<ChatOpenParams["config"]>;
  ifMissing?: "create" | "fail";
  /** How many of the newest turns `chat.turns` has. */
  turns?: number;
}

/** A running sidecar, made by `spawn`. Close it, or declare it with `await using`. */
export class Sidecar implements Home {
  readonly #link: Link;
  readonly #handlers: Handlers;
  readonly #status: ((status: Status) => void) | undefined;
  readonly #feeds = new Map<string, Feed>();
  readonly #chats = new Map<string, Chat>();

  private constructor(launch: Launch, options: ConnectOptions) {
    this.#handlers = new Handlers(options);
    this.#status = options.status;
    const hello: InitializeParams = {
      protocol: "sidecar",
      versions: [...VERSIONS],
      client: { name: options.clientName ?? "sidecar-client", version: options.clientVersion ?? "" },
      processId: process.pid,
      capabilities: this.#handlers.capabilities,
      tools: this.#handlers.offered,
    };
    this.#link = new Link(hello, {
      launch,
      serve: (method, params, signal) => this.#handlers.serve(method, params, signal),
      hear: (method, params) => this.#hear(method, params),
      reattach: (connection) => this.#reattach(connection),
      ended: (death) => this.#end(death),
    });
  }

  /** Start a sidecar. A process that dies is started again, and its chats continue after their last event. */
  static spawn(options: SpawnOptions = {}): Promise<Sidecar> {
    const { command, dataDir, model, config, env, cwd, log } = options;
    const variables = { SIDECAR_DATA_DIR: dataDir, SIDECAR_MODEL: model, SIDECAR_CONFIG: config };
    const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined));
    const environment = { ...process.env, ...env, ...given };
    return Sidecar.connect(
      async () =>
        ServerProcess.start({ command: command ?? [findSidecar(environment), "serve"], env: environment, cwd, log }),
      options,
    );
  }

  /** As `spawn`, with anything that makes a transport in place of a command. */
  static async connect(launch: Launch, options: ConnectOptions = {}): Promise<Sidecar> {
    const app = new Sidecar(launch, options);
    await app.#link.start();
    return app;
  }

  /** What the present process answered to `initialize`. */
  get server(): InitializeResult {
    return this.#link.server;
  }

  get pid(): number | undefined {
    return this.#link.pid;
  }

  /** How often the sidecar was started again. */
  get restarts(): number {
    return this.#link.restarts;
  }

  /** Any method of the contract, with its types; aborting `signal` cancels the request. */
  call<M extends keyof Methods>(
    method: M,
    params?: Methods[M]["params"],
    options: { signal?: AbortSignal } = {},
  ): Promise<Methods[M]["result"]> {
    return this.#link.ask(method, params ?? ({} as Methods[M]["params"]), options.signal);
  }

  /** Open a chat: resume it, or create it when there is none. The same object for the same session. */
  async chat(chatId?: string | null, options: ChatOptions = {}): Promise<Chat> {
    const { turns, ...rest } = options;
    const params: ChatOpenParams = { ...rest, ...(chatId != null && { chatId }), tail: { turns: turns ?? 30 } };
    return this.adopt(params, await this.#link.ask("chat/open", params));
  }

  /** Without a chat: shut the sidecar down. With one: no more events of it; a running turn continues. */
  async close(chat?: Chat): Promise<void> {
    if (chat === undefined) return this.#link.stop();
    this.#chats.delete(chat.sessionId);
    this.#feeds.delete(chat.sessionId);
    await this.#link.ask("chat/close", { sessionId: chat.sessionId });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The chats, newest activity first. */
  chats(filters: ChatListParams = {}): Promise<ChatListResult> {
    return this.#link.ask("chat/list", filters);
  }

  search(query: string, filters: Omit<ChatSearchParams, "query"> = {}): Promise<ChatSearchResult> {
    return this.#link.ask("chat/search", { ...filters, query });
  }

  /** Make a chat from an export or from plain turns, given as `path` or as `data`. */
  importChat(chatId: string, source: Omit<ChatImportParams, "chatId">): Promise<ChatImportResult> {
    return this.#link.ask("chat/import", { ...source, chatId });
  }

  /** Import the chats of another program. Aborting `signal` keeps what was imported. */
  importHistory(
    platform: HistoryImportParams["platform"],
    request: Omit<HistoryImportParams, "platform"> = {},
    options: { signal?: AbortSignal } = {},
  ): Promise<HistoryImportResult> {
    return this.#link.ask("history/import", { ...request, platform }, options.signal);
  }

  async models(provider?: string): Promise<ModelInfo[]> {
    return (await this.#link.ask("models/list", provider === undefined ? {} : { provider })).items;
  }

  settings(projectPath?: string): Promise<SettingsReadResult> {
    return this.#link.ask("settings/read", projectPath === undefined ? {} : { projectPath });
  }

  /** Replace the app's tools, for this process and those after it; if they are refused, the old ones stay. */
  async offerTools(tools: readonly Tool[]): Promise<void> {
    const before = this.#handlers.tools;
    this.#replaceTools(tools);
    try {
      await this.#link.ask("tools/offer", { tools: this.#handlers.offered });
    } catch (error) {
      if (error instanceof RpcError) this.#replaceTools(before);
      throw error;
    }
  }

  doctor(): Promise<DoctorRunResult> {
    return this.#link.ask("doctor/run", {});
  }

  /** Part of `chat.Home`. */
  adopt(params: ChatOpenParams, opened: ChatOpenResult): Chat {
    const known = this.#chats.get(opened.sessionId);
    if (known) {
      known.opened = opened;
      return known;
    }
    const chat = new Chat(this, this.#link, this.#feed(opened.sessionId), params, opened);
    this.#chats.set(opened.sessionId, chat);
    return chat;
  }

  #replaceTools(tools: readonly Tool[]): void {
    this.#handlers.offer(tools);
    this.#link.hello = { ...this.#link.hello, tools: this.#handlers.offered };
  }

  async #reattach(connection: Connection): Promise<void> {
    for (const chat of [...this.#chats.values()]) await chat.reopen(connection);
  }

  #end(death: SidecarDied): void {
    for (const feed of this.#feeds.values()) feed.fail(death);
  }

  /** What this version does not understand is ignored. */
  #hear(method: string, params: unknown): void {
    if (!isObject(params) || typeof params["type"] !== "string" || !isObject(params["data"])) return;
    if (method === "event" && typeof params["seq"] === "number" && typeof params["sessionId"] === "string") {
      this.#feed(params["sessionId"]).receive(params as unknown as Event);
    } else if (method === "status") {
      this.#noteStatus(params as unknown as Status);
    }
  }

  #noteStatus(status: Status): void {
    if (status.type === "access") {
      const chat = this.#chats.get(status.data.sessionId);
      if (chat) chat.access = status.data.access;
    }
    this.#status?.(status);
  }

  #feed(sessionId: string): Feed {
    let feed = this.#feeds.get(sessionId);
    if (!feed) {
      feed = new Feed(async (epoch, seq) => {
        const params = { sessionId, after: { epoch, seq }, limit: PAGE_EVENTS };
        return (await this.#link.ask("events/read", params)).events;
      });
      this.#feeds.set(sessionId, feed);
    }
    return feed;
  }
}
