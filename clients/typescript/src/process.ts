/**
 * The sidecar's process and its three pipes. Starts it and makes sure that it is gone; knows no JSON-RPC.
 *
 * The process gets a group of its own, so that a Ctrl-C in the terminal reaches the app alone, and its stderr is always
 * read, so that a long log cannot fill the pipe.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import { constants } from "node:os";

import { SidecarDied } from "./errors.js";
import { type Deferred, deferred, settledWithin } from "./signals.js";

/** How much of stderr an error quotes: a traceback, not a log. */
const TAIL_CHARACTERS = 8 * 1024;

/** How long the process may take for each step of its end: by itself, after SIGTERM, after SIGKILL. */
const STEP_MS = 2_000;

/** A grandchild may hold a pipe open for ever; what the process itself wrote is there at once. */
const DRAIN_MS = 500;

const POSIX = process.platform !== "win32";

/** Bytes to a sidecar and back. Tests put one in memory in the place of a process. */
export interface Transport {
  readonly pid: number | undefined;
  send(data: string): void;
  endInput(): void;
  /** Chunks until the process is gone. */
  receive(): AsyncIterable<Buffer>;
  /** Make sure that it is gone after `grace` milliseconds, and say how it went. */
  finish(grace: number): Promise<SidecarDied>;
}

export interface ProcessOptions {
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd?: string | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

/** A sidecar as a child process. */
export class ServerProcess implements Transport {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #ended: Deferred<void> = deferred();
  readonly #drained: Deferred<void> = deferred();
  #tail = "";

  private constructor(child: ChildProcessWithoutNullStreams, log: ((line: string) => void) | undefined) {
    this.#child = child;
    child.once("exit", () => {
      this.#ended.resolve();
      // What it wrote is read first; a grandchild that holds the pipe does not keep us waiting.
      setTimeout(() => child.stdout.destroy(), DRAIN_MS).unref();
    });
    child.stdin.on("error", () => undefined); // a broken pipe: `exit` says more
    child.stderr.on("error", () => this.#drained.resolve());
    child.stderr.on("close", () => this.#drained.resolve());
    this.#drain(log);
  }

  /** Start the command; throws `SidecarDied` if it cannot be started. */
  static async start(options: ProcessOptions): Promise<ServerProcess> {
    const [program = "", ...words] = options.command;
    const child = spawn(program, words, {
      env: options.env,
      cwd: options.cwd,
      stdio: "pipe",
      detached: POSIX,
      windowsHide: true,
    });
    const started = new ServerProcess(child, options.log);
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => reject(new SidecarDied(`Could not start ${program}: ${error.message}`)));
    });
    child.on("error", () => undefined);
    return started;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(data: string): void {
    if (this.#child.stdin.writable) this.#child.stdin.write(data);
  }

  endInput(): void {
    this.#child.stdin.end();
  }

  async *receive(): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of this.#child.stdout) yield chunk as Buffer;
    } catch {
      // Destroyed after the process ended, or a broken pipe: either way there is no more.
    }
  }

  async finish(grace: number): Promise<SidecarDied> {
    this.endInput();
    const steps: [number, NodeJS.Signals | undefined][] = [
      [grace, undefined],
      [STEP_MS, "SIGTERM"],
      [STEP_MS, "SIGKILL"],
    ];
    for (const [milliseconds, signal] of steps) {
      if (signal) this.#signal(signal);
      if (await settledWithin(this.#ended.promise, milliseconds)) break;
    }
    await settledWithin(this.#drained.promise, DRAIN_MS);
    for (const stream of [this.#child.stdout, this.#child.stderr, this.#child.stdin]) stream.destroy();
    this.#child.unref();
    return new SidecarDied(`The sidecar ${this.#ending()}`, this.#exitCode(), this.#tail);
  }

  /** To the whole group: the command may be a wrapper that does not pass signals on. */
  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    try {
      if (POSIX && pid !== undefined) process.kill(-pid, name);
      else this.#child.kill(name);
    } catch {
      // It has just ended.
    }
  }

  #exitCode(): number | undefined {
    const { exitCode, signalCode } = this.#child;
    if (signalCode !== null) return -constants.signals[signalCode];
    return exitCode ?? undefined;
  }

  #ending(): string {
    const { exitCode, signalCode } = this.#child;
    if (signalCode !== null) return `was killed by ${signalCode}`;
    return exitCode === null ? "does not end" : `ended with exit code ${exitCode}`;
  }

  #drain(log: ((line: string) => void) | undefined): void {
    const decoder = new StringDecoder("utf8");
    let unfinished = "";
    this.#child.stderr.on("data", (chunk: Buffer) => {
      const text = decoder.write(chunk);
      this.#tail = (this.#tail + text).slice(-TAIL_CHARACTERS);
      const lines = (unfinished + text).split("\n");
      unfinished = (lines.pop() ?? "").slice(-TAIL_CHARACTERS);
      if (log) for (const line of lines) log(line.slice(-TAIL_CHARACTERS));
    });
  }
}
