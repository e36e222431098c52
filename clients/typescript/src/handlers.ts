/**
 * What the app answers when the sidecar asks: permissions, inputs, calls of the app's own tools, unsaved text.
 *
 * A handler gets the request and a signal, which aborts when its answer is no longer needed: somebody else decided, the
 * turn was cancelled, or the sidecar is gone. A handler that throws never grants anything.
 */
import { RpcError } from "./errors.js";
import { isObject } from "./peer.js";
import type {
  ClientCapabilities,
  ContentBlock,
  Decision,
  InputAnswer,
  InputRequest,
  OfferedTool,
  PermissionAnswer,
  PermissionRequest,
  ReadBufferRequest,
  ReadBufferResult,
  Requests,
  ToolCallRequest,
  ToolCallResult,
} from "./protocol.js";

type Awaitable<T> = T | Promise<T>;

export type OnPermission = (
  request: PermissionRequest,
  signal: AbortSignal,
) => Awaitable<Decision | PermissionAnswer>;

/** Returns the values of the form, a whole answer, or null if the user dismissed it. */
export type OnInput = (
  request: InputRequest,
  signal: AbortSignal,
) => Awaitable<InputValues | InputAnswer | null>;

/** The values of a form by member. A member named `action` with one of its three words needs a whole `InputAnswer`. */
export type InputValues = Record<string, unknown>;

/** Returns the unsaved text of a file, or null if it has none. */
export type OnReadBuffer = (request: ReadBufferRequest, signal: AbortSignal) => Awaitable<string | null>;

/** Returns what the model reads: text, content blocks, or a whole result. What it throws, the model gets as an error. */
export type OnToolCall = (
  request: ToolCallRequest,
  signal: AbortSignal,
) => Awaitable<string | ContentBlock[] | ToolCallResult>;

/** A tool of the app that the model may call. */
export interface Tool extends OfferedTool {
  handler: OnToolCall;
}

export interface HandlerOptions {
  readonly onPermission?: OnPermission | undefined;
  readonly onInput?: OnInput | undefined;
  readonly onReadBuffer?: OnReadBuffer | undefined;
  readonly tools?: readonly Tool[] | undefined;
}

const DECISIONS: readonly Decision[] = ["allow_once", "allow_chat", "allow_always", "deny_once", "deny_always"];

/** The app's handlers. What there is none for is not offered to the sidecar. */
export class Handlers {
  readonly #options: HandlerOptions;
  #tools = new Map<string, Tool>();

  constructor(options: HandlerOptions = {}) {
    this.#options = options;
    this.offer(options.tools ?? []);
  }

  get capabilities(): ClientCapabilities {
    const { onPermission, onInput, onReadBuffer } = this.#options;
    return {
      ...(onPermission && { permissions: true }),
      ...(onInput && { input: true }),
      ...(onReadBuffer && { buffers: true }),
    };
  }

  get tools(): Tool[] {
    return [...this.#tools.values()];
  }

  get offered(): OfferedTool[] {
    return this.tools.map(({ handler: _, ...offer }) => offer);
  }

  /** From now on these are the app's tools. */
  offer(tools: readonly Tool[]): void {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** Answer a request of the sidecar; what this app does not offer is refused by name. */
  async serve(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    const { onPermission, onInput, onReadBuffer } = this.#options;
    if (!isObject(params)) throw RpcError.named("invalid_params", `${method} has no parameters`);
    switch (method as keyof Requests) {
      case "permission/request":
        if (onPermission) return permit(onPermission, params as unknown as PermissionRequest, signal);
        break;
      case "input/request":
        if (onInput) return fillIn(onInput, params as unknown as InputRequest, signal);
        break;
      case "fs/readBuffer":
        if (onReadBuffer) return readBuffer(onReadBuffer, params as unknown as ReadBufferRequest, signal);
        break;
      case "tool/call":
        return this.#call(params as unknown as ToolCallRequest, signal);
    }
    throw RpcError.named("method_not_found", `This client offers no ${method}`);
  }

  async #call(request: ToolCallRequest, signal: AbortSignal): Promise<ToolCallResult> {
    const tool = this.#tools.get(request.name);
    if (!tool) throw RpcError.named("method_not_found", `This client offers no tool ${request.name}`);
    try {
      const given = await tool.handler(request, signal);
      if (typeof given === "string") return { content: textBlocks(given) };
      return Array.isArray(given) ? { content: given } : given;
    } catch (error) {
      return { content: textBlocks(describe(error)), isError: true };
    }
  }
}

async function permit(
  handler: OnPermission,
  request: PermissionRequest,
  signal: AbortSignal,
): Promise<PermissionAnswer> {
  try {
    const given = await handler(request, signal);
    const answer = typeof given === "string" ? { decision: given } : given;
    if (DECISIONS.includes(answer.decision)) return answer;
  } catch {
    // Denied below: a failure never grants anything.
  }
  return { decision: "deny_once", feedback: "The app could not ask its user." };
}

async function fillIn(handler: OnInput, request: InputRequest, signal: AbortSignal): Promise<InputAnswer> {
  try {
    const given = await handler(request, signal);
    if (given === null) return { action: "cancel" };
    return isInputAnswer(given) ? given : { action: "accept", values: given };
  } catch {
    return { action: "cancel" };
  }
}

async function readBuffer(
  handler: OnReadBuffer,
  request: ReadBufferRequest,
  signal: AbortSignal,
): Promise<ReadBufferResult> {
  try {
    return { text: await handler(request, signal) };
  } catch (error) {
    // Not null, which would say that the file on disk is what the user sees.
    throw RpcError.named("internal_error", `The app could not read its editor's text: ${describe(error)}`);
  }
}

function isInputAnswer(given: InputValues | InputAnswer): given is InputAnswer {
  return ["accept", "decline", "cancel"].includes(String(given["action" as keyof typeof given]));
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

function textBlocks(text: string): ContentBlock[] {
  return [{ type: "text", text }];
}
