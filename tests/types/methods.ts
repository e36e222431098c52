// What an app writes with the types of @open-rpc/typings, which names every method and lists its parameters in order.
import type { Event, EventsReadResult, Item, PromptSend, PromptSendResult } from "./generated/methods";

type EventOf<Type extends string> = Extract<Event, { type: Type }>;
type ItemOf<Type extends string> = Extract<Item, { type: Type }>;

export function text(delta: EventOf<"message.delta">, call: ItemOf<"tool">): string {
  return delta.data.text + (call.exitCode ?? "");
}

// @ts-expect-error a misspelt type of event has no members
export const missing = (delta: EventOf<"mesage.delta">): string => delta.data.text;
// @ts-expect-error a misspelt type of item has no members
export const nothing = (call: ItemOf<"tols">): string => call.name;
// @ts-expect-error a misspelt member's value
export const misread = (ended: EventOf<"turn.ended">): boolean => ended.data.reason === "ended";

export async function send(method: PromptSend): Promise<PromptSendResult["disposition"]> {
  return (await method("p-1", "tab-7")).disposition;
}

export function last(read: EventsReadResult): number {
  return read.next.seq;
}
