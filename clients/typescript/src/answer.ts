/**
 * One prompt and the events of the turn that answers it. Knows neither processes nor the order of events.
 *
 * A prompt on its way (`Delivery`) outlives the loop over its `Answer`: ending the loop withdraws it.
 */
import { ChatReplaced, RpcError, SidecarError, TurnFailed } from "./errors.js";
import type { Feed, Subscription } from "./feed.js";
import type { Link } from "./link.js";
import type {
  Event,
  PromptSendParams,
  PromptSendResult,
  TurnEndedEvent,
  CommandResultEvent,
  TurnRetryParams,
} from "./protocol.js";
import { onAbort, settledWithin } from "./signals.js";

/** How long ending a loop may wait for the sidecar to confirm the cancellation. */
export const WITHDRAW_MS = 2_000;

/** A prompt from the moment it is sent: how it was taken, and how to take it back. */
export class Delivery {
  running = false;
  over = false;
  taken: PromptSendResult | undefined;
  readonly promptId: string;
  readonly #link: Link;
  readonly #send: () => Promise<PromptSendResult>;
  #accepted: Promise<PromptSendResult> | undefined;

  constructor(
    link: Link,
    method: "prompt/send" | "turn/retry",
    params: (PromptSendParams | TurnRetryParams) & { promptId: string },
  ) {
    this.#link = link;
    this.promptId = params.promptId;
    this.#send = async () => (await link.request(method, params)) as PromptSendResult;
  }

  /** Send the prompt, once. */
  accepted(): Promise<PromptSendResult> {
    this.#accepted ??= this.#send().then(
      (taken) => (this.taken = taken),
      (error: unknown) => {
        this.over = true;
        throw error;
      },
    );
    this.#accepted.catch(() => undefined);
    return this.#accepted;
  }

  /** Take a waiting prompt out of the queue; cancel a running turn, unless it is another prompt's. */
  async withdraw(): Promise<void> {
    await this.#accepted?.catch(() => undefined);
    const { taken } = this;
    if (this.over || !taken || taken.disposition === "steered" || taken.disposition === "command") return;
    try {
      const waits = taken.disposition === "queued" && !this.running;
      if (!waits || !(await this.#unqueue(taken))) await this.#cancel(taken);
    } catch (error) {
      if (!(error instanceof RpcError || error instanceof SidecarError)) throw error;
    }
  }

  /** False when it is in the queue no longer. */
  async #unqueue({ sessionId }: PromptSendResult): Promise<boolean> {
    try {
      await this.#link.ask("prompt/remove", { sessionId, promptId: this.promptId });
      return true;
    } catch (error) {
      if (error instanceof RpcError) return false;
      throw error;
    }
  }

  async #cancel({ sessionId, turnId }: PromptSendResult): Promise<void> {
    await this.#link.ask("turn/cancel", { sessionId, ...(turnId !== undefined && { turnId }), queue: "keep" });
  }
}

/**
 * The events of one turn, up to its `turn.ended`; of a command, its `command.result`.
 *
 * The first step of the iteration sends the prompt. Ending the loop, by `break`, an exception or the signal, cancels the
 * turn. Without a loop, call `text()`, or `close()` to cancel.
 */
export class Answer implements AsyncIterableIterator<Event> {
  readonly promptId: string;
  /** The turn that answers, once the prompt is accepted. */
  turnId: string | undefined;
  /** The last event, once it has come. */
  ended: TurnEndedEvent | CommandResultEvent | undefined;
  readonly #delivery: Delivery;
  readonly #feed: Feed;
  readonly #signal: AbortSignal | undefined;
  #subscription: Subscription | undefined;
  #closed = false;

  constructor(delivery: Delivery, feed: Feed, signal?: AbortSignal) {
    this.promptId = delivery.promptId;
    this.#delivery = delivery;
    this.#feed = feed;
    this.#signal = signal;
  }

  /** Why the turn ended; undefined while it has not. */
  get reason(): TurnEndedEvent["data"]["reason"] | undefined {
    return this.ended?.type === "turn.ended" ? this.ended.data.reason : undefined;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async next(): Promise<IteratorResult<Event, undefined>> {
    if (this.#closed) return { value: undefined, done: true };
    const release = onAbort(this.#signal, () => this.#subscription?.close());
    try {
      this.#signal?.throwIfAborted();
      const event = await this.#nextEvent();
      if (this.#delivery.over) await this.close();
      return { value: event, done: false };
    } catch (error) {
      this.#delivery.over ||= error instanceof ChatReplaced;
      await this.close();
      throw error;
    } finally {
      release();
    }
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    await this.close();
    return { value: undefined, done: true };
  }

  /** End the loop: the turn is cancelled unless it is over. Waits for that at most two seconds. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#subscription) return;
    this.#subscription.close();
    if (!this.#delivery.over) await settledWithin(this.#delivery.withdraw(), WITHDRAW_MS);
  }

  /** Cancel the turn and continue: the iteration ends with its `turn.ended`. */
  async cancel(): Promise<void> {
    await this.#delivery.withdraw();
  }

  /** The whole answer, once it has ended. Throws `TurnFailed` when it ended with an error. */
  async text(): Promise<string> {
    let text = "";
    for await (const event of this) {
      if (event.type === "message.delta") text += event.data.text;
      if (event.type === "command.result") text += event.data.markdown;
    }
    if (this.ended?.type === "turn.ended" && this.ended.data.error) throw new TurnFailed(this.ended.data.error, text);
    return text;
  }

  async #nextEvent(): Promise<Event> {
    this.#subscription ??= this.#feed.subscribe();
    if (this.turnId === undefined && !this.#delivery.taken) await this.#accept();
    for (;;) {
      const { value: event, done } = await this.#subscription.next();
      if (done) {
        this.#signal?.throwIfAborted();
        throw new SidecarError("The loop over this answer has ended");
      }
      if (this.#concerns(event)) {
        this.#note(event);
        return event;
      }
    }
  }

  /** Send the prompt, and find where its events begin. */
  async #accept(): Promise<void> {
    const aborted = new Promise<never>((_, reject) => {
      this.#signal?.addEventListener("abort", () => reject(this.#signal?.reason), { once: true });
    });
    const taken = await Promise.race([this.#delivery.accepted(), aborted]);
    this.turnId = taken.turnId;
    if (taken.disposition === "duplicate") this.#subscription?.rewind(taken.seq - 1);
    if (taken.epoch !== this.#subscription?.epoch) {
      // Sent to a process that died with its memory, then accepted by the next one, in a new journal.
      this.#subscription?.close();
      this.#subscription = this.#feed.subscribe(taken.seq - 1);
    }
  }

  #concerns(event: Event): boolean {
    const { turnId, promptId } = idsOf(event);
    if (this.turnId !== undefined && (event.turnId === this.turnId || turnId === this.turnId)) return true;
    if (event.type === "chat.deleted" || event.type === "command.result") {
      return promptId === undefined || promptId === this.promptId;
    }
    return event.type === "queue.updated" && !this.#delivery.running;
  }

  #note(event: Event): void {
    if (event.type === "turn.started") this.#delivery.running = true;
    if (event.type === "turn.ended" || event.type === "command.result") {
      this.ended = event;
      this.#delivery.over = true;
    }
    if (event.type === "chat.deleted") this.#delivery.over = true;
    if (event.type === "prompt.removed" && event.data.promptId === this.promptId) this.#delivery.over = true;
  }
}

/** The turn and the prompt that the event's `data` names, whatever its type. */
function idsOf(event: Event): { turnId?: unknown; promptId?: unknown } {
  return event.data as Record<string, unknown>;
}
