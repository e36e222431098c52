/**
 * The order of a chat's events: nothing lost, nothing doubled, whatever arrives. Knows no prompt and no process.
 *
 * A `Feed` takes the events of one chat as they arrive; each `Subscription` has a cursor of its own and applies the
 * contract's rule: ignore if seq <= last; apply if from = last + 1; otherwise read the journal. The journal is also the
 * buffer: a slow loop drops what it cannot hold and reads it later.
 */
import { SidecarError } from "./errors.js";
import type { Event } from "./protocol.js";
import { type Deferred, deferred } from "./signals.js";

/** Events that wait in a subscription; one has up to 64 KiB of text, so some 32 MiB at worst. */
export const MAX_QUEUED = 512;

/** Events kept while the result of `chat/open` is on its way; older ones come from the journal. */
const MAX_EARLY = 256;

/** The stored events of the chat after (epoch, seq), at least one if there is any. */
export type Read = (epoch: string, seq: number) => Promise<Event[]>;

/** The first seq that an event stands for: a combined run of deltas has several. */
export function firstSeq(event: Event): number {
  return event.from ?? event.seq;
}

/** What has arrived of one chat. `epoch` is empty until the chat is open. */
export class Feed {
  epoch = "";
  last = 0;
  watch: ((event: Event) => void) | undefined;
  readonly read: Read;
  readonly #subscriptions = new Set<Subscription>();
  #early: Event[] = [];

  constructor(read: Read) {
    this.read = read;
  }

  /** The chat is at `seq`; what arrived before this was known counts from here on. */
  open(epoch: string, seq: number): void {
    this.epoch = epoch;
    this.last = seq;
    const early = this.#early;
    this.#early = [];
    for (const event of early) this.receive(event);
  }

  receive(event: Event): void {
    if (event.epoch !== this.epoch) {
      this.#early.push(event);
      if (this.#early.length > MAX_EARLY) this.#early.shift();
    } else if (event.seq > this.last) {
      this.last = event.seq;
      this.watch?.(event);
      for (const subscription of this.#subscriptions) subscription.push(event);
    }
  }

  /** The journal is known to reach to `seq`, though no event said so. */
  catchUp(seq: number): void {
    this.last = Math.max(this.last, seq);
    for (const subscription of this.#subscriptions) subscription.reach(seq);
  }

  /** Whoever follows gets `error` after what has arrived. */
  fail(error: Error): void {
    for (const subscription of this.#subscriptions) subscription.fail(error);
    this.#subscriptions.clear();
  }

  /** Follow from now on, or from an earlier seq. */
  subscribe(after: number = this.last): Subscription {
    const subscription = new Subscription(this, after);
    this.#subscriptions.add(subscription);
    return subscription;
  }

  unsubscribe(subscription: Subscription): void {
    this.#subscriptions.delete(subscription);
  }
}

/** The events of a chat in order, from a cursor on. Ends with the chat, or when the loop over it ends. */
export class Subscription implements AsyncIterableIterator<Event> {
  last: number;
  readonly epoch: string;
  readonly #feed: Feed;
  #high: number;
  #queue: Event[] = [];
  #failure: Error | undefined;
  #news: Deferred<void> = deferred();
  #closed = false;

  constructor(feed: Feed, after: number) {
    this.#feed = feed;
    this.last = after;
    this.epoch = feed.epoch;
    this.#high = feed.last;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  async next(): Promise<IteratorResult<Event, undefined>> {
    while (!this.#closed) {
      const event = this.#queue[0];
      if (event === undefined) {
        await this.#awaitNews();
      } else if (event.seq <= this.last) {
        this.#queue.shift();
      } else if (firstSeq(event) === this.last + 1) {
        this.#queue.shift();
        this.last = event.seq;
        return { value: event, done: false };
      } else {
        await this.#readJournal();
      }
    }
    return { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<Event, undefined>> {
    this.close();
    return { value: undefined, done: true };
  }

  close(): void {
    this.#closed = true;
    this.#feed.unsubscribe(this);
    this.#news.resolve();
  }

  push(event: Event): void {
    if (this.#queue.length < MAX_QUEUED) this.#queue.push(event);
    this.reach(event.seq);
  }

  reach(seq: number): void {
    this.#high = Math.max(this.#high, seq);
    this.#news.resolve();
  }

  fail(error: Error): void {
    this.#failure = error;
    this.#news.resolve();
  }

  /** Go back to `seq`: what followed it comes again. */
  rewind(seq: number): void {
    this.last = Math.min(this.last, seq);
  }

  async #awaitNews(): Promise<void> {
    if (this.#failure) throw this.#failure;
    if (this.#high > this.last) return this.#readJournal();
    this.#news = deferred();
    return this.#news.promise;
  }

  async #readJournal(): Promise<void> {
    const page = await this.#feed.read(this.epoch, this.last);
    const [first] = page;
    if (first === undefined || firstSeq(first) !== this.last + 1) {
      throw new SidecarError(`The journal does not continue after ${this.last}, though ${this.#high} was announced`);
    }
    this.#queue.unshift(...page);
  }
}
