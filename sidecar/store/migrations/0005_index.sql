-- Texts kept out of the window, and how they are found again. A text lies in `index_texts`, packed, a fixed number of
-- code points a row; a chunk is a stretch of it. The words of a chunk are entered and removed with its row.

-- Whose texts they are. The ids of an owner's chunks and lines lie in a range of their own (id << 40 and on), so that a
-- search within a chat never meets another's words.
CREATE TABLE index_owners (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  chat    INTEGER,
  project TEXT,
  chunks  INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX index_owners_by_name ON index_owners (ifnull(chat, -1), ifnull(project, ''));
CREATE INDEX index_owners_by_project ON index_owners (project);

-- `done` is how many code points have been indexed; `pending` says that there are more.
CREATE TABLE index_sources (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  key       TEXT NOT NULL UNIQUE,
  owner     INTEGER NOT NULL,
  label     TEXT NOT NULL,
  kind      TEXT NOT NULL,
  tool      TEXT,
  path      TEXT,
  hash      TEXT,
  ts        INTEGER NOT NULL,
  used_at   INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  lines     INTEGER NOT NULL,
  tokens    INTEGER NOT NULL,
  chunks    INTEGER NOT NULL DEFAULT 0,
  truncated INTEGER NOT NULL DEFAULT 0,
  stale     INTEGER NOT NULL DEFAULT 0,
  pending   INTEGER NOT NULL DEFAULT 1,
  done      INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX index_sources_by_owner ON index_sources (owner, id);
CREATE INDEX index_sources_by_label ON index_sources (label);
CREATE INDEX index_sources_by_path ON index_sources (path) WHERE path IS NOT NULL;
CREATE INDEX index_sources_pending ON index_sources (id) WHERE pending = 1;

-- The id is source << 16 and the number of the part.
CREATE TABLE index_texts (
  id   INTEGER PRIMARY KEY,
  data BLOB NOT NULL
);

-- `start` and `end` are code points of the text, lines count from 1 and both ends are included.
CREATE TABLE index_chunks (
  id         INTEGER PRIMARY KEY,
  source     INTEGER NOT NULL,
  first_line INTEGER NOT NULL,
  last_line  INTEGER NOT NULL,
  start      INTEGER NOT NULL,
  end        INTEGER NOT NULL,
  title      TEXT NOT NULL
);
CREATE INDEX index_chunks_by_source ON index_chunks (source, start);

CREATE VIRTUAL TABLE index_words USING fts5 (
  title, text, content = '', tokenize = "porter unicode61 remove_diacritics 2"
);
