// The scenarios of test_chat_ui.py: an app as docs/chat-ui.md builds it, against a real Sidecar.
// It uses what that page exports, and nothing else.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import * as ui from "./chat-app.mjs";

const COMMAND = [".venv/bin/sidecar", "serve"];
const PROJECT = process.cwd() + "/thesis";
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAC0lEQVR4nGNgQAYAAA4AAamRc7EAAAAASUVORK5CYII=";

const opened = [];

function connect(options) {
  const connection = new ui.Connection(COMMAND, options);
  opened.push(connection);
  return connection;
}

async function open(connection = connect(), chatId = "tab-7", saved = undefined) {
  const chat = new ui.Chat(connection, { chatId, projectPath: PROJECT }, saved);
  chat.waiting = [];
  chat.onChange = () => chat.waiting.forEach((check) => check());
  await chat.open();
  return chat;
}

/** Wait until the chat is as `condition` wants it; the test's own time limit ends what never comes. */
function until(chat, condition) {
  return new Promise((resolve) => {
    const check = () => {
      const found = condition(chat);
      if (!found) return;
      chat.waiting = chat.waiting.filter((other) => other !== check);
      resolve(found);
    };
    chat.waiting.push(check);
    check();
  });
}

const ended = (chat, turnId) => until(chat, () => chat.turn(turnId)?.reason && chat.turn(turnId));
const shown = (chat) => chat.turns.map((turn) => turn.items.map((item) => item.text).join(" > "));

async function say(chat, text, more) {
  const { turnId } = await ui.send(chat, text, more);
  return ended(chat, turnId);
}

const scenarios = {
  async streams_an_answer() {
    const chat = await open();
    const texts = new Set();
    chat.waiting.push(() => texts.add(chat.turns.at(-1)?.items.at(-1)?.text));
    const turn = await say(chat, "stream");
    assert.deepEqual([turn.reason, turn.status], ["end_turn", "completed"]);
    assert.deepEqual(shown(chat), ["stream > I look > one two three"]);
    assert.deepEqual(turn.items.map(({ type }) => type), ["user", "thought", "message"]);
    assert.ok(texts.has("one") && texts.has("one two"), [...texts]);
  },

  async shows_a_failure_with_what_to_do() {
    const chat = await open();
    const turn = await say(chat, "fail");
    assert.deepEqual([turn.reason, turn.status], ["error", "failed"]);
    const { name, reason } = turn.error.data;
    assert.deepEqual([name, reason], ["provider_error", "quota"]);
  },

  async asks_for_permission_with_the_diff() {
    const chat = await open();
    const { turnId } = await ui.send(chat, "edit");
    const asked = await until(chat, () => [...chat.pending.values()][0]);
    await until(chat, () => chat.state === "requires_action");
    assert.deepEqual([asked.type, asked.subject], ["permission", "plan.md"]);
    assert.match(asked.changes[0].unifiedDiff, /-one\n\+two/);
    assert.ok(asked.options.some(({ decision, label }) => decision === "deny_once" && label));
    await ui.decide(chat, asked.permissionId, "deny_once", "Not now");
    const denied = await ended(chat, turnId);
    assert.equal(denied.items.find(({ name }) => name === "edit_file").status, "denied");
    assert.deepEqual([readFileSync(PROJECT + "/plan.md", "utf8"), chat.pending.size], ["one\n", 0]);
  },

  async shows_a_question_as_a_form() {
    const chat = await open();
    const { turnId } = await ui.send(chat, "question");
    const asked = await until(chat, () => [...chat.pending.values()][0]);
    const [field] = ui.fields(asked);
    assert.deepEqual(
      [asked.message, field.type, field.choices, field.required],
      ["Which colour?", "choice", ["green", "brown"], true],
    );
    await ui.fillIn(chat, asked.inputId, "accept", { [field.name]: "green" });
    const turn = await ended(chat, turnId);
    assert.match(turn.items.find(({ name }) => name === "ask_user").output.text, /green/);
  },

  async offers_a_tool_that_returns_an_image() {
    const asked = [];
    const takePng = async (window) => (asked.push(window), Buffer.from(PNG, "base64"));
    const chat = await open(connect({ tools: [ui.screenshot(takePng)] }));
    const turn = await say(chat, "picture");
    const item = turn.items.find(({ name }) => name === "screenshot");
    const [image] = ui.images(item);
    assert.deepEqual([asked, item.status, image.mimeType], [["editor"], "completed", "image/png"]);
    assert.equal(await ui.imageUrl(chat, image), `data:image/png;base64,${PNG}`);
  },

  async reports_a_tool_of_its_own_that_fails() {
    const takePng = async () => { throw new Error("no window"); };
    const chat = await open(connect({ tools: [ui.screenshot(takePng)] }));
    const turn = await say(chat, "picture");
    const item = turn.items.find(({ name }) => name === "screenshot");
    assert.deepEqual([item.status, turn.reason], ["failed", "end_turn"]);
    assert.match(item.output.text, /no window/);
  },

  async shows_the_open_files() {
    const chat = await open();
    await ui.openFile(chat, "plan.md");
    await ui.openFile(chat, "notes.md", true);
    await until(chat, () => chat.files.length === 2);
    const names = () => chat.files.map(({ path, pinned }) => [path.split("/").at(-1), pinned]);
    assert.deepEqual(names(), [["notes.md", true], ["plan.md", false]]);
    await ui.closeFile(chat, "notes.md");
    await until(chat, () => chat.files.length === 1);
    await ui.pinFile(chat, "plan.md");
    await until(chat, () => chat.files[0].pinned);
    assert.deepEqual(names(), [["plan.md", true]]);
  },

  async reverts_a_change_and_applies_it_again() {
    const chat = await open();
    await chat.call("chat/configure", { set: { mode: "accept-edits" } });
    const turn = await say(chat, "edit");
    const [patch] = chat.patches;
    const plan = () => readFileSync(PROJECT + "/plan.md", "utf8");
    assert.deepEqual([plan(), patch.filePath, patch.status], ["two\n", "plan.md", "applied"]);
    assert.match(await ui.diffOf(chat, patch.id), /-one\n\+two/);
    await ui.revert(chat, { turnId: turn.id });
    await until(chat, () => chat.patches[0].status === "reverted");
    assert.equal(plan(), "one\n");
    await ui.apply(chat, { id: patch.id });
    await until(chat, () => chat.patches[0].status === "applied");
    assert.equal(plan(), "two\n");
    writeFileSync(PROJECT + "/plan.md", "by hand\n");
    const refused = await ui.revert(chat, { turnId: turn.id }).catch((error) => error);
    assert.deepEqual([refused.code, plan()], [-32010, "by hand\n"]);
    assert.deepEqual(refused.data.fileChanges.map(({ path, status }) => [path, status]), [["plan.md", "conflict"]]);
    const later = await open(connect());
    await ui.loadPatches(later);
    assert.deepEqual(later.patches.map(({ id }) => id), [patch.id]);
  },

  async shows_how_full_the_context_is() {
    const chat = await open();
    await say(chat, "stream");
    assert.equal(ui.meter(chat), null); // the window of this model is unknown
    await chat.call("chat/configure", { set: { window: 8000 } });
    await say(chat, "stream");
    const share = ui.meter(chat);
    assert.ok(share > 0 && share < 1, share);
  },

  async marks_a_compaction() {
    const chat = await open();
    for (const word of ["a", "b", "c", "d"]) await say(chat, `Tell me of ${word} `.repeat(40));
    const { compactionId } = await ui.compact(chat, "Keep the names");
    await until(chat, () => chat.compactions.length === 1);
    const mark = chat.turns.map(({ id }) => ui.markAfter(chat, id)).find(Boolean);
    assert.deepEqual([mark.compactionId, typeof mark.summary], [compactionId, "string"]);
    const again = await open(connect());
    assert.equal(again.turns.length, 4); // nothing is lost
    await chat.call("chat/uncompact");
    await until(chat, () => chat.compactions.length === 0);
  },

  async queues_edits_and_removes_prompts() {
    const chat = await open();
    const { turnId } = await ui.send(chat, "hang");
    await until(chat, () => chat.turn(turnId)?.items.length === 2);
    const first = await ui.send(chat, "stram");
    await ui.send(chat, "never mind");
    await until(chat, () => chat.queue.length === 2);
    assert.deepEqual([first.disposition, chat.queue[0].content[0].text], ["queued", "stram"]);
    await ui.editQueued(chat, chat.queue[0], "stream");
    await ui.removeQueued(chat, chat.queue[1]);
    await until(chat, () => chat.queue.length === 1 && chat.queue[0].revision === 2);
    await ui.cancel(chat);
    const turn = await ended(chat, first.turnId);
    assert.deepEqual(turn.items.at(-1).text, "one two three");
    assert.deepEqual([chat.turn(turnId).status, chat.queue], ["cancelled", []]);
  },

  async continues_a_paused_queue() {
    const chat = await open();
    await ui.send(chat, "hang");
    const { turnId } = await ui.send(chat, "stream");
    await chat.call("turn/cancel");
    await until(chat, () => chat.paused);
    await ui.resumeQueue(chat);
    await ended(chat, turnId);
    assert.equal(chat.paused, false);
  },

  async steers_the_running_turn() {
    const chat = await open();
    const { turnId } = await ui.send(chat, "question");
    const asked = await until(chat, () => [...chat.pending.values()][0]);
    const { disposition } = await ui.steer(chat, "and hurry");
    await ui.fillIn(chat, asked.inputId, "decline");
    const turn = await ended(chat, turnId);
    const said = turn.items.filter(({ type }) => type === "user").map(({ text }) => text);
    assert.deepEqual([disposition, said], ["steered", ["question", "and hurry"]]);
  },

  async edits_and_resends_with_branch_arrows() {
    const chat = await open();
    await say(chat, "A");
    const old = await say(chat, "B");
    await say(chat, "C");
    const edited = await say(chat, "B2", { replace: { turnId: old.id } });
    const third = await ui.editAndResend(chat, edited.id, "B3").then((sent) => ended(chat, sent.turnId));
    assert.deepEqual(shown(chat), ["A > A", "B3 > B3"]);
    const of = async (id) => {
      const { all, index } = await ui.versions(chat, id);
      return [all.map(({ turnId }) => turnId), index];
    };
    const ids = [old.id, edited.id, third.id];
    assert.deepEqual(await of(third.id), [ids, 2]);
    const { all } = await ui.versions(chat, third.id);
    await ui.showVersion(chat, all[0]);
    await until(chat, () => chat.turns.length === 3);
    assert.deepEqual(shown(chat), ["A > A", "B > B", "C > C"]);
    await say(chat, "D"); // the oldest version is now the one with the newest turn
    assert.deepEqual(await of(old.id), [ids, 0]);
    await ui.showVersion(chat, (await ui.versions(chat, old.id)).all[1]);
    await until(chat, () => chat.turns.at(-1).id === edited.id);
    assert.deepEqual([shown(chat), await of(edited.id)], [["A > A", "B2 > B2"], [ids, 1]]);
  },

  async searches_as_one_types() {
    const chat = await open();
    await say(chat, "Ask about the alphabet 😀 and 東京タワー");
    const answers = [];
    const search = ui.searchAsYouType(chat.connection, (items) => answers.push(items));
    await Promise.all(["a", "al", "alp"].map(search));
    assert.equal(answers.length, 1); // only the newest is shown
    const [hit] = answers[0];
    const marked = ui.pieces(hit).filter(({ match }) => match).map(({ text }) => text);
    assert.equal(ui.pieces(hit).map(({ text }) => text).join(""), hit.snippet);
    assert.ok(marked.some((text) => "alphabet".startsWith(text)), marked);
    await search("タワー");
    const tower = ui.pieces(answers[1][0]).filter(({ match }) => match).map(({ text }) => text);
    assert.deepEqual(tower, ["タワー"]);
    await search("");
    assert.deepEqual(answers[2], []);
  },

  async shows_one_chat_in_two_windows_of_one_process() {
    const chat = await open();
    const window = await open(chat.connection);
    await say(chat, "stream");
    assert.deepEqual(shown(window), shown(chat));
    const { turnId } = await ui.send(window, "once more");
    await ended(chat, turnId);
    assert.deepEqual(shown(window), shown(chat));
  },

  async works_from_the_window_of_another_process() {
    const chat = await open();
    const { turnId } = await ui.send(chat, "question");
    await until(chat, () => chat.pending.size === 1);
    const other = await open(connect());
    assert.deepEqual([other.access, other.pending.size], ["reader", 1]);
    const queued = await ui.send(other, "hang");
    await ui.steer(other, "be quick");
    const refused = await ui.openFile(other, "plan.md").catch((error) => error);
    assert.equal(refused.code, -32011);
    await ui.fillIn(other, [...other.pending.keys()][0], "accept", { choice: "green" });
    await ended(other, turnId);
    await until(other, () => other.turn(queued.turnId)?.items.length === 2);
    await ui.cancel(other);
    await Promise.all([ended(chat, queued.turnId), ended(other, queued.turnId)]);
    assert.deepEqual(shown(other), shown(chat));
    await until(other, () => other.access === "writer"); // the other process has ended its turn
    await say(other, "stream");
    assert.deepEqual(other.turns.at(-1).items.at(-1).text, "one two three");
  },

  async goes_on_after_sidecar_was_killed() {
    const chat = await open();
    await say(chat, "stream");
    const { turnId } = await ui.send(chat, "hang");
    await until(chat, () => chat.turn(turnId)?.items[1]?.text === "One moment");
    process.kill(chat.connection.pid, "SIGKILL");
    const turn = await ended(chat, turnId);
    assert.deepEqual([turn.reason, turn.items[1].text], ["interrupted", "One moment"]);
    assert.equal((await say(chat, "stream")).reason, "end_turn");
    assert.equal(chat.turns.length, 3);
  },

  async replays_what_a_restarted_app_has_missed() {
    const chat = await open();
    await say(chat, "A");
    const saved = chat.save();
    await say(chat, "B"); // the app that is restarted has not stored this
    const later = await open(connect(), "tab-7", saved);
    await until(chat, () => chat.state === "idle");
    await until(later, () => later.cursor.seq === chat.cursor.seq);
    assert.deepEqual([shown(later), later.turns[1].reason], [["A > A", "B > B"], "end_turn"]);
  },

  async sends_a_prompt_once_though_sidecar_dies() {
    const chat = await open();
    const sent = ui.send(chat, "once");
    process.kill(chat.connection.pid, "SIGKILL");
    const { turnId } = await sent;
    await ended(chat, turnId);
    assert.equal(chat.turns.filter(({ items }) => items[0]?.text === "once").length, 1);
  },

  async draws_the_progress_of_long_work() {
    const chat = await open();
    await chat.call("chat/import", { chatId: "copy", data: readFileSync("chat.jsonl", "utf8") });
    const [progress] = chat.connection.progress.values();
    assert.deepEqual([progress.kind, typeof progress.done], ["import", "number"]);
  },
};

try {
  await scenarios[process.argv[2]]();
} finally {
  for (const connection of opened) connection.close();
}
