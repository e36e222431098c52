// `await using` closes what it declares.
import { Sidecar } from "@sidecar/client";

export async function ask(text: string): Promise<string> {
  await using app = await Sidecar.spawn({ model: "echo:" });
  await using answer = (await app.chat("tab-7")).prompt(text);
  return await answer.text();
}
