// The official TypeScript client, in one era: all methods, a form, progress, a cancel; prints what it saw as JSON.
// It checks each message by its own schemas: one that they refuse ends the script.
import { pathToFileURL } from "node:url";

const [modules, python, project, era] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${modules}/@modelcontextprotocol/client/dist/${name}.mjs`));
const [{ Client }, { StdioClientTransport }] = await Promise.all([load("index"), load("stdio")]);

const transport = new StdioClientTransport({
  command: python,
  args: ["-m", "sidecar", "mcp"],
  env: process.env,
  cwd: project,
});
const client = new Client(
  { name: "tests", version: "1" },
  {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : era },
  },
);
const errors = [];
client.onerror = (error) => void errors.push(String(error));
const forms = [];
client.setRequestHandler("elicitation/create", ({ params }) => {
  forms.push(params.message);
  const [field] = Object.keys(params.requestedSchema.properties);
  return { action: "accept", content: { [field]: field === "delete" ? true : "allow_once" } };
});
const call = (name, given, options) => client.callTool({ name, arguments: given }, options);
const shell = (code, options) => call("run_code", { language: "shell", code }, options);

await client.connect(transport);
const { tools } = await client.listTools();
const ran = await shell("echo official");
const wrong = await call("run_code", { language: "shell" });
const unknown = await call("run_cod", {}).catch((error) => ({ code: error.code }));

const steps = [];
await shell("for step in 1 2 3 4; do echo step $step; sleep 0.4; done", { onprogress: (one) => void steps.push(one) });

const stop = new AbortController();
const begun = (one) => one.message?.includes("begun") && stop.abort();
const cancelled = await shell("while true; do echo begun; sleep 0.2; done", { signal: stop.signal, onprogress: begun })
  .then(() => "answered")
  .catch((error) => error.name);

await call("index_path", { path: "notes.txt" });
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
const contents = [];
for (const { uri } of resources) contents.push((await client.readResource({ uri })).contents[0].text);
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name: prompts[0].name, arguments: { topic: "zebras" } });
const purged = await call("purge", { scope: "project" });

const seen = {
  era: client.getProtocolEra(),
  version: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion().name,
  instructions: client.getInstructions(),
  tools: tools.map(({ name }) => name),
  ran: ran.content[0].text,
  wrong: wrong.isError,
  unknown: unknown.code,
  steps: steps.map(({ progress }) => progress),
  cancelled,
  contents,
  templates: resourceTemplates.length,
  prompts: prompts.length,
  prompt: prompt.messages[0].content.text,
  forms,
  purged: purged.content[0].text,
  errors,
};
await client.close();
console.log(JSON.stringify(seen));
