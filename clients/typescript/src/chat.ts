/**
 * A chat as an app holds it: open, typed, and the same object across restarts of the sidecar.
 *
 * Every method is one request of the contract with this chat's key. The order of events is `feed`'s, the life of a
 * prompt `answer`'s.
 */
import { randomUUID } from "node:crypto";

import { Answer, Delivery } from "./answer.js";
import type { Connection } from "./connection.js";
import { ChatReplaced, RpcError } from "./errors.js";
import type { Feed, Subscription } from "./feed.js";
import type { Link } from "./link.js";
import type {
  ChatChanged,
  ChatConfigureParams,
  ChatConfigureResult,
  ChatExportParams,
  ChatExportResult,
  ChatHistoryResult,
  ChatOpenParams,
  ChatOpenResult,
  ChatRewindResult,
  ContentBlock,
  Cursor,
  Event,
  FilesResult,
  OpenFile,
  Patch,
  PatchesChanged,
  PatchesListParams,
  PatchesListResult,
  PromptSendParams,
  Queue,
  TurnCancelParams,
  TurnCancelResult,
} from "./protocol.js";

/** What a chat needs of the app. */
export interface Home {
  /** The chat that was opened; the same object for the same session. */
  adopt(params: ChatOpenParams, opened: ChatOpenResult): Chat;
}

export interface PromptOptions {
  /** Ends the loop and cancels the turn. */
  signal?: AbortSignal | undefined;
  /** Images, files and text, in place of the text. */
  content?: ContentBlock[] | undefined;
  /** An id of your own: a prompt that is sent again with it never runs twice. */
  promptId?: string | undefined;
  /** What to do while a turn runs. */
  delivery?: PromptSendParams["delivery"] | undefined;
  /** The turn to edit and send again. */
  replace?: string | undefined;
  /** `off` sends a text that begins with a slash to the model. */
  commands?: PromptSendParams["commands"] | undefined;
  model?: string | undefined;
  effort?: string | undefined;
}

/** The changes that a request is about: one, those of a file, or those of a turn. */
export interface PatchSelection {
  id?: string | undefined;
  path?: string | undefined;
  turnId?: string | undefined;
}

/** An open chat. `title`, `state` and `access` follow the events. */
export class Chat {
  readonly sessionId: string;
  readonly chatId: string | null;
  /** What `chat/open` answered last. */
  opened: ChatOpenResult;
  title: string | null;
  state: ChatOpenResult["state"];
  /** `reader` while another process runs a turn of the chat. */
  access: ChatOpenResult["access"];
  readonly #home: Home;
  readonly #link: Link;
  readonly #feed: Feed;
  readonly #params: ChatOpenParams;

  constructor(home: Home, link: Link, feed: Feed, params: ChatOpenParams, opened: ChatOpenResult) {
    this.sessionId = opened.sessionId;
    this.chatId = opened.chatId;
    this.opened = opened;
    this.title = opened.title ?? null;
    this.state = opened.state;
    this.access = opened.access;
    this.#home = home;
    this.#link = link;
    this.#feed = feed;
    this.#params = params;
    feed.watch = (event) => this.#watch(event);
    feed.open(opened.epoch, opened.asOf.seq);
  }

  /** `created`, `resumed`, `attached` or `recovered`. */
  get status(): ChatOpenResult["status"] {
    return this.opened.status;
  }

  /** The newest turns when the chat was opened; `history` has all as they are now. */
  get turns(): ChatOpenResult["turns"] {
    return this.opened.turns;
  }

  get projectPath(): string | undefined {
    return this.opened.projectPath;
  }

  /** The last event that has arrived. */
  get cursor(): Cursor {
    return { epoch: this.#feed.epoch, seq: this.#feed.last };
  }

  /**
   * Send a prompt and iterate its answer. The answer to a command (`/open src/*.py`) is one event, `command.result`.
   */
  prompt(text: string | null, options: PromptOptions = {}): Answer {
    const { signal, promptId = newPromptId(), replace, model, effort, ...rest } = options;
    const params = {
      ...defined({ ...rest, text: text ?? undefined, replace: turnRef(replace) }),
      ...overrides(model, effort),
      sessionId: this.sessionId,
      promptId,
    };
    return new Answer(new Delivery(this.#link, "prompt/send", params), this.#feed, signal);
  }

  /** Answer the last turn, or `turnId`, again; or continue an unfinished one from `here`. */
  retry(
    turnId?: string,
    options: { start?: "start" | "here"; model?: string; signal?: AbortSignal } = {},
  ): Answer {
    const params = {
      ...defined({ turnId }),
      ...overrides(options.model),
      sessionId: this.sessionId,
      promptId: newPromptId(),
      from: options.start ?? ("start" as const),
    };
    return new Answer(new Delivery(this.#link, "turn/retry", params), this.#feed, options.signal);
  }

  /** Every event of the chat from now on, or after an earlier seq. */
  events(after?: number): Subscription {
    return this.#feed.subscribe(after);
  }

  history(
    page: { before?: string; after?: string; around?: string; limit?: number } = {},
  ): Promise<ChatHistoryResult> {
    const { around, ...rest } = page;
    const params = defined({ ...rest, around: turnRef(around) });
    return this.#link.ask("chat/history", { ...params, sessionId: this.sessionId });
  }

  cancel(turnId?: string, options: { queue?: TurnCancelParams["queue"] } = {}): Promise<TurnCancelResult> {
    return this.#link.ask("turn/cancel", { ...defined({ turnId, ...options }), sessionId: this.sessionId });
  }

  /** Null makes the title automatic again. */
  rename(title: string | null): Promise<ChatChanged> {
    return this.#link.ask("chat/rename", { sessionId: this.sessionId, title });
  }

  archive(archived = true): Promise<ChatChanged> {
    return this.#link.ask("chat/archive", { sessionId: this.sessionId, archived });
  }

  /** Set keys of the chat's configuration, as the contract spells them; null clears one. Returns all. */
  async configure(keys: ChatConfigureParams["set"]): Promise<ChatConfigureResult["config"]> {
    return (await this.#link.ask("chat/configure", { sessionId: this.sessionId, set: keys })).config;
  }

  /** The chat as text, in the result or in a file. */
  export(
    format: NonNullable<ChatExportParams["format"]> = "jsonl",
    options: { path?: string; overwrite?: boolean } = {},
  ): Promise<ChatExportResult> {
    return this.#link.ask("chat/export", { ...options, sessionId: this.sessionId, format });
  }

  async queue(): Promise<Queue> {
    return (await this.#link.ask("prompt/list", { sessionId: this.sessionId })).queue;
  }

  /** Let waiting prompts run again after a restart, a cancel or a failed turn paused them. */
  async resumeQueue(): Promise<Queue> {
    return (await this.#link.ask("prompt/resume", { sessionId: this.sessionId })).queue;
  }

  /** A new chat of this one's turns, up to the turn `at` or the last one that has ended. */
  async fork(newChatId: string, options: { at?: string } = {}): Promise<Chat> {
    const params = { ...defined({ at: turnRef(options.at) }), sessionId: this.sessionId, newChatId };
    const opened = await this.#link.ask("chat/fork", params);
    return this.#home.adopt({ sessionId: opened.sessionId }, opened);
  }

  /** Hide the turn `before` and what follows it, or show the hidden turn `to` again. */
  rewind(
    before: string | null,
    options: { to?: string; files?: "keep" | "restore"; dryRun?: boolean } = {},
  ): Promise<ChatRewindResult> {
    const { to, ...rest } = options;
    const turns = defined({ before: turnRef(before ?? undefined), to: turnRef(to) });
    return this.#link.ask("chat/rewind", { ...turns, ...rest, sessionId: this.sessionId });
  }

  /** The open files of the chat: pinned first, then the most recent. */
  async openFiles(): Promise<OpenFile[]> {
    return (await this.#link.ask("files/list", { sessionId: this.sessionId })).files;
  }

  openFile(path: string | null, options: { glob?: string; pinned?: boolean } = {}): Promise<FilesResult> {
    return this.#link.ask("files/open", {
      ...defined({ path: path ?? undefined, ...options }),
      sessionId: this.sessionId,
    });
  }

  closeFile(path: string | null, options: { glob?: string } = {}): Promise<FilesResult> {
    return this.#link.ask("files/close", {
      ...defined({ path: path ?? undefined, ...options }),
      sessionId: this.sessionId,
    });
  }

  pinFile(path: string, pinned = true): Promise<FilesResult> {
    return this.#link.ask(pinned ? "files/pin" : "files/unpin", { sessionId: this.sessionId, path });
  }

  /** What tools changed, newest first. */
  patches(
    page: Pick<PatchesListParams, "turnId" | "path" | "cursor" | "limit"> = {},
  ): Promise<PatchesListResult> {
    return this.#link.ask("patches/list", { ...page, sessionId: this.sessionId });
  }

  /** Changes with their diffs. */
  async diffs(selection: PatchSelection): Promise<Patch[]> {
    return (await this.#link.ask("patches/show", { ...defined(selection), sessionId: this.sessionId })).items;
  }

  /** Undo changes: all of the selection, or none. */
  revert(selection: PatchSelection & { dryRun?: boolean }): Promise<PatchesChanged> {
    return this.#link.ask("patches/revert", { ...defined(selection), sessionId: this.sessionId });
  }

  /** Attach to a new process and get what was missed. For the app, after a restart. */
  async reopen(connection: Connection): Promise<void> {
    let opened: ChatOpenResult;
    try {
      opened = await this.#reopen(connection);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      this.#feed.fail(error);
      return;
    }
    const replaced = opened.epoch !== this.#feed.epoch || opened.lastSeq < this.#feed.last;
    this.#take(opened);
    if (replaced) {
      this.#feed.fail(new ChatReplaced(this.sessionId));
      this.#feed.open(opened.epoch, opened.asOf.seq);
    } else if (opened.replay.kind !== "events") {
      this.#feed.catchUp(opened.asOf.seq);
    }
  }

  async #reopen(connection: Connection): Promise<ChatOpenResult> {
    const known: ChatOpenParams = { sessionId: this.sessionId, ifMissing: "fail", after: this.cursor };
    try {
      return (await connection.request("chat/open", known)) as ChatOpenResult;
    } catch (error) {
      // A chat that lived in memory ended with its process; one that somebody deleted stays deleted.
      if (!(error instanceof RpcError) || error.errorName !== "not_found") throw error;
      return (await connection.request("chat/open", this.#params)) as ChatOpenResult;
    }
  }

  #take(opened: ChatOpenResult): void {
    this.opened = opened;
    this.title = opened.title ?? null;
    this.state = opened.state;
    this.access = opened.access;
  }

  #watch(event: Event): void {
    if (event.type === "chat.renamed") this.title = event.data.title;
    if (event.type === "chat.state") this.state = event.data.state;
  }
}

export function newPromptId(): string {
  return `p-${randomUUID().replaceAll("-", "")}`;
}

function turnRef(turnId: string | undefined): { turnId: string } | undefined {
  return turnId === undefined ? undefined : { turnId };
}

function overrides(model?: string, effort?: string): Pick<PromptSendParams, "overrides"> {
  return model || effort ? { overrides: defined({ model, effort }) } : {};
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the members that are undefined: absent and undefined are the same to us, but not to the types. */
function defined<T extends object>(members: T): Defined<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>;
}
