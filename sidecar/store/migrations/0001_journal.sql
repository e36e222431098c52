-- The journal and what is derived from it. Events are appended, never rewritten; the other tables say what they
-- add up to, and change in the same transaction.

CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', 0);

CREATE TABLE chats (
  id            INTEGER PRIMARY KEY,
  session_id    TEXT NOT NULL UNIQUE,
  namespace     TEXT NOT NULL,
  kind          TEXT NOT NULL,
  key           TEXT NOT NULL,
  epoch         TEXT NOT NULL,
  last_seq      INTEGER NOT NULL DEFAULT 0,
  title         TEXT,
  title_by      TEXT,
  project_path  TEXT,
  config        TEXT NOT NULL DEFAULT '{}',
  archived      INTEGER NOT NULL DEFAULT 0,
  created_at    INTEGER NOT NULL,
  last_activity INTEGER NOT NULL,
  turns         INTEGER NOT NULL DEFAULT 0,
  preview       TEXT,
  state         TEXT NOT NULL DEFAULT 'idle',
  head          TEXT,
  queue_paused  INTEGER NOT NULL DEFAULT 0,
  usage         TEXT NOT NULL DEFAULT '{}',
  model         TEXT,
  deleted       INTEGER NOT NULL DEFAULT 0,
  revision      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX chats_by_activity ON chats (deleted, last_activity DESC, id DESC);
CREATE INDEX chats_by_revision ON chats (revision);

-- A run of deltas is one row: first..seq, and in pieces the length of each delta as a little-endian 32-bit integer.
CREATE TABLE events (
  chat   INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  first  INTEGER NOT NULL,
  ts     INTEGER NOT NULL,
  turn   TEXT,
  type   TEXT NOT NULL,
  data   BLOB NOT NULL,
  pieces BLOB,
  PRIMARY KEY (chat, seq)
) WITHOUT ROWID;

CREATE TABLE turns (
  chat       INTEGER NOT NULL,
  ordinal    INTEGER NOT NULL,
  id         TEXT NOT NULL,
  prompt     TEXT NOT NULL,
  parent     TEXT,
  status     TEXT NOT NULL,
  reason     TEXT,
  error      TEXT,
  usage      TEXT,
  model      TEXT NOT NULL,
  engine     TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at   INTEGER,
  first_seq  INTEGER NOT NULL,
  last_seq   INTEGER,
  hidden     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (chat, ordinal)
) WITHOUT ROWID;
CREATE UNIQUE INDEX turns_by_id ON turns (chat, id);
CREATE INDEX turns_by_parent ON turns (chat, parent);
CREATE INDEX turns_visible ON turns (chat, hidden, ordinal);
CREATE INDEX turns_running ON turns (chat) WHERE status = 'running';

CREATE TABLE prompts (
  chat      INTEGER NOT NULL,
  id        TEXT NOT NULL,
  turn      TEXT NOT NULL,
  status    TEXT NOT NULL,
  position  INTEGER,
  delivery  TEXT NOT NULL,
  content   TEXT,
  overrides TEXT,
  revision  INTEGER NOT NULL DEFAULT 1,
  seq       INTEGER NOT NULL,
  PRIMARY KEY (chat, id)
) WITHOUT ROWID;
CREATE INDEX prompts_waiting ON prompts (chat, position) WHERE status = 'queued';

CREATE TABLE leases (
  chat       INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL,
  instance   TEXT,
  boot       TEXT,
  namespace  TEXT,
  pid        INTEGER,
  started    INTEGER,
  client     TEXT NOT NULL DEFAULT '',
  expires    INTEGER NOT NULL DEFAULT 0,
  closing    INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX leases_by_instance ON leases (instance) WHERE instance IS NOT NULL;

CREATE TABLE blobs (
  id         TEXT PRIMARY KEY,
  data       BLOB NOT NULL,
  size       INTEGER NOT NULL,
  mime_type  TEXT NOT NULL,
  name       TEXT,
  created_at INTEGER NOT NULL
);
CREATE TABLE blob_uses (
  chat INTEGER NOT NULL,
  blob TEXT NOT NULL,
  PRIMARY KEY (chat, blob)
) WITHOUT ROWID;
CREATE INDEX blob_uses_by_blob ON blob_uses (blob);

-- What was said, for search. The triggers keep words and text in one transaction.
CREATE TABLE messages (
  id   INTEGER PRIMARY KEY,
  chat INTEGER NOT NULL,
  turn TEXT NOT NULL,
  item TEXT NOT NULL,
  role TEXT NOT NULL,
  ts   INTEGER NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX messages_by_chat ON messages (chat);
CREATE VIRTUAL TABLE words USING fts5 (
  text, content = 'messages', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);
CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
  INSERT INTO words (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
  INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
END;

CREATE TABLE projects (
  path       TEXT PRIMARY KEY,
  trusted    INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) WITHOUT ROWID;
