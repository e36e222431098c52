/**
 * What can go wrong between an app and its sidecar. Knows nothing of how it comes about.
 *
 *     Error
 *     ├── RpcError          the sidecar answered with an error
 *     └── SidecarError      the client could not bring something to its end
 *         ├── SidecarDied   the process is gone; has its exit code and the last lines of its stderr
 *         ├── ChatReplaced  the chat was deleted and created again while its events were followed
 *         └── TurnFailed    a turn ended with an error, where only its text was asked for
 */
import { ERROR_CODES, type ErrorDetails, type ErrorName, type ErrorObject } from "./protocol.js";

/** An error of the contract, as it came from the sidecar or as it is sent to it. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: Partial<ErrorDetails>;

  constructor(code: number, message: string, data: Partial<ErrorDetails> = {}) {
    super(message);
    this.code = code;
    this.data = data;
  }

  static named(name: ErrorName, message: string): RpcError {
    return new RpcError(ERROR_CODES[name], message, { name, retryable: false });
  }

  /** The name of the error, such as `not_found`; empty when the sidecar gave none. */
  get errorName(): string {
    return this.data.name ?? "";
  }

  /** What exactly failed; a name of the error's list of reasons. */
  get reason(): string | undefined {
    return this.data.reason;
  }
}

/** The client could not bring something to its end. */
export class SidecarError extends Error {
  override name = "SidecarError";
}

/** The process is gone. `exitCode` is undefined where it never started, and negative for a signal. */
export class SidecarDied extends SidecarError {
  override name = "SidecarDied";
  readonly summary: string;
  readonly exitCode: number | undefined;
  readonly stderr: string;

  constructor(summary: string, exitCode?: number, stderr = "") {
    super(`${summary}\n${stderr}`.trimEnd());
    this.summary = summary;
    this.exitCode = exitCode;
    this.stderr = stderr;
  }

  /** An exception that says the same, with the stack of whoever gets it. */
  again(): SidecarDied {
    return new SidecarDied(this.summary, this.exitCode, this.stderr);
  }
}

/** The journal that a loop followed is no longer there; open the chat again to see what is. */
export class ChatReplaced extends SidecarError {
  override name = "ChatReplaced";
  readonly sessionId: string;

  constructor(sessionId: string) {
    super(`The chat ${sessionId} was deleted and created again while its events were followed`);
    this.sessionId = sessionId;
  }
}

/** The turn ended with `error`; what it had said until then is `text`. */
export class TurnFailed extends SidecarError {
  override name = "TurnFailed";
  readonly error: ErrorObject;
  readonly text: string;

  constructor(error: ErrorObject, text: string) {
    super(error.message);
    this.error = error;
    this.text = text;
  }
}
