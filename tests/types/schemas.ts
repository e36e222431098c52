// What an app writes with the types of json-schema-to-typescript. Below each `@ts-expect-error` is a mistake that the
// compiler must find: a line that compiles is an error itself.
import type {
  ChatOpenResult,
  Event,
  EventType,
  Item,
  ItemType,
  OtherEvent,
  PromptSendParams,
  Status,
} from "./generated/schemas";

export function shown(event: Event): string {
  switch (event.type) {
    case "message.delta":
      return event.data.text;
    case "tool.ended":
      return event.data.item.output?.text ?? event.data.item.title ?? "";
    case "turn.ended":
      return event.data.error ? event.data.error.message : event.data.reason;
    case "files.updated":
      return event.data.files.map((file) => `${file.path} ${file.state}`).join();
    // @ts-expect-error a misspelt type of event
    case "mesage.delta":
      return "";
    default:
      return event.type;
  }
}

export function misreads(event: Event): string | undefined {
  // @ts-expect-error another misspelt one
  if (event.type === "turn.end") return "";
  // @ts-expect-error a reason that does not exist
  if (event.type === "turn.ended" && event.data.reason === "ended") return "";
  // @ts-expect-error a member that this type does not have
  if (event.type === "message.delta") return event.data.txt;
  return undefined;
}

export function line(item: Item): string {
  if (item.type === "plan") return (item.entries ?? []).map((entry) => entry.content).join();
  if (item.type === "compaction") return item.summary ?? "";
  // @ts-expect-error a misspelt type of item
  if (item.type === "tols") return "";
  return item.title ?? item.text ?? "";
}

export function progress(status: Status): number {
  if (status.type === "progress") return status.data.done / (status.data.total ?? 1);
  // @ts-expect-error a misspelt type of status
  if (status.type === "progess") return 0;
  return 0;
}

export const known: Record<"event", EventType> & Record<"item", ItemType> = { event: "chat.state", item: "tool" };
// @ts-expect-error a type that is not in the list
export const misspelt: EventType = "chat.stat";
// @ts-expect-error a type that is not in the list
export const misspeltItem: ItemType = "tols";

export function ignored(event: OtherEvent): string {
  return `${event.seq}: ${event.type}`;
}

export const prompt: PromptSendParams = { chatId: "tab-7", promptId: "p-1", text: "Hello", delivery: "queue" };
// @ts-expect-error a way of delivery that does not exist
export const wrong: PromptSendParams = { promptId: "p-1", text: "Hello", delivery: "later" };
// @ts-expect-error `promptId` is required
export const incomplete: PromptSendParams = { text: "Hello" };

export function all(opened: ChatOpenResult): string[] {
  return opened.turns.flatMap((turn) => turn.items.map(line));
}
