-- What tools leave behind: files in view, changes that were made, what was asked of people, standing rules.

ALTER TABLE chats ADD COLUMN open_files TEXT NOT NULL DEFAULT '[]';

-- A branch's open files are those of the newest such event before its end.
CREATE INDEX events_of_files ON events (chat, seq) WHERE type = 'files.updated';

-- The ledger. An entry is seen while its turn is; a cleared one is only left out of the list.
CREATE TABLE patches (
  chat    INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  id      TEXT NOT NULL,
  turn    TEXT NOT NULL,
  path    TEXT NOT NULL,
  status  TEXT NOT NULL,
  cleared INTEGER NOT NULL DEFAULT 0,
  data    TEXT NOT NULL,
  PRIMARY KEY (chat, ordinal)
) WITHOUT ROWID;
CREATE UNIQUE INDEX patches_by_id ON patches (chat, id);

-- Permissions and questions: each ends once, and a late answer is told how.
CREATE TABLE requests (
  id      TEXT PRIMARY KEY,
  chat    INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  turn    TEXT NOT NULL,
  data    TEXT NOT NULL,
  outcome TEXT
) WITHOUT ROWID;
CREATE INDEX requests_pending ON requests (chat) WHERE outcome IS NULL;

CREATE TABLE permission_rules (
  id         TEXT PRIMARY KEY,
  scope      TEXT NOT NULL,
  chat       INTEGER,
  project    TEXT,
  effect     TEXT NOT NULL,
  kind       TEXT NOT NULL,
  pattern    TEXT NOT NULL,
  folder     TEXT,
  source     TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX permission_rules_by_chat ON permission_rules (chat) WHERE chat IS NOT NULL;

-- Named places in a chat to go back to: its newest turn, and how far the journal reached.
CREATE TABLE checkpoints (
  chat INTEGER NOT NULL,
  name TEXT NOT NULL,
  head TEXT,
  seq  INTEGER NOT NULL,
  ts   INTEGER NOT NULL,
  PRIMARY KEY (chat, name)
) WITHOUT ROWID;

CREATE TABLE tool_uses (
  chat  INTEGER NOT NULL,
  name  TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (chat, name)
) WITHOUT ROWID;
