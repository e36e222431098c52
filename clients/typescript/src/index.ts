/**
 * Talk to Sidecar from Node or Electron's main process: start it, open chats, stream answers.
 *
 *     const app = await Sidecar.spawn({ model: "echo:" });
 *     const chat = await app.chat("tab-7");
 *     for await (const event of chat.prompt("Hello")) {
 *       if (event.type === "message.delta") process.stdout.write(event.data.text);
 *     }
 *     await app.close();
 */
export { Answer } from "./answer.js";
export { Chat, type PatchSelection, type PromptOptions } from "./chat.js";
export { ChatReplaced, RpcError, SidecarDied, SidecarError, TurnFailed } from "./errors.js";
export type { Subscription } from "./feed.js";
export { findSidecar, PLATFORM_PACKAGE } from "./find.js";
export type {
  HandlerOptions,
  InputValues,
  OnInput,
  OnPermission,
  OnReadBuffer,
  OnToolCall,
  Tool,
} from "./handlers.js";
export type { Launch } from "./link.js";
export { ServerProcess, type ProcessOptions, type Transport } from "./process.js";
export * from "./protocol.js";
export { type ChatOptions, type ConnectOptions, Sidecar, type SpawnOptions } from "./sidecar.js";
