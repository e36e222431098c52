// What an app writes. Below each `@ts-expect-error` is a mistake that the compiler must find.
import { type Event, type Item, Sidecar, type Tool } from "@sidecar/client";

export function shown(event: Event): string {
  switch (event.type) {
    case "message.delta":
      return event.data.text;
    case "tool.ended":
      return event.data.item.output?.text ?? event.data.item.title ?? "";
    case "turn.ended":
      return event.data.error ? event.data.error.message : event.data.reason;
    // @ts-expect-error a misspelt type of event
    case "mesage.delta":
      return "";
    default:
      return event.type;
  }
}

export function misreads(event: Event, item: Item): string | undefined {
  // @ts-expect-error a reason that does not exist
  if (event.type === "turn.ended" && event.data.reason === "ended") return "";
  // @ts-expect-error a member that this type does not have
  if (event.type === "message.delta") return event.data.txt;
  // @ts-expect-error a misspelt type of item
  if (item.type === "tols") return "";
  // @ts-expect-error a status that does not exist
  if (item.status === "complete") return "";
  return item.title;
}

export async function chat(): Promise<void> {
  const tools: Tool[] = [
    { name: "now", description: "The time.", inputSchema: {}, handler: () => new Date().toISOString() },
  ];
  const app = await Sidecar.spawn({ model: "echo:", tools, onPermission: ({ kind }) => (kind === "read" ? "allow_once" : "deny_once") });
  // @ts-expect-error a decision that does not exist
  await Sidecar.spawn({ onPermission: () => "yes" });
  const opened = await app.chat("tab-7", { projectPath: "/tmp" });
  for await (const event of opened.prompt("Hello", { signal: AbortSignal.timeout(1000) })) console.log(shown(event));
  const { turns } = await app.call("chat/history", { chatId: "tab-7", limit: 3 });
  console.log(turns.flatMap((turn) => turn.items.map((item) => item.title)));
  // @ts-expect-error a method that does not exist
  await app.call("chat/opne", {});
  // @ts-expect-error a parameter that does not exist
  await app.call("chat/open", { chatID: "tab-7" });
  // @ts-expect-error a way of delivery that does not exist
  opened.prompt("Hello", { delivery: "later" });
  await app.close();
}
