-- Texts kept out of the window, and how they are found again. A text lies in `index_texts`, packed, a fixed number of
-- code points a row; chunks and lines are stretches of it. Their words are entered and removed with the chunks' rows.

-- Whose texts they are. Every code point of an owner's texts has a place of its own (id << 40 and on), and what is found
-- is known by its place: so a search within a chat, or within a text, is one within a range, and meets nobody else's words.
CREATE TABLE index_owners (
  id      INTEGER PRIMARY KEY AUTOINCREMENT,
  chat    INTEGER,
  project TEXT,
  used    INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX index_owners_by_name ON index_owners (ifnull(chat, -1), ifnull(project, ''));
CREATE INDEX index_owners_by_project ON index_owners (project);

-- `base` is the place of the text's first code point, `size` how many it has; `done` of them have been indexed, and
-- `pending` says that there are more.
CREATE TABLE index_sources (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  key       TEXT NOT NULL UNIQUE,
  owner     INTEGER NOT NULL,
  base      INTEGER NOT NULL,
  size      INTEGER NOT NULL,
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
CREATE INDEX index_sources_by_owner ON index_sources (owner, base, size, lines);
CREATE INDEX index_sources_by_label ON index_sources (label);
CREATE INDEX index_sources_by_path ON index_sources (path) WHERE path IS NOT NULL;
CREATE INDEX index_sources_by_use ON index_sources (used_at);
CREATE INDEX index_sources_pending ON index_sources (id) WHERE pending = 1;

-- The id is source << 16 and the number of the part.
CREATE TABLE index_texts (
  id   INTEGER PRIMARY KEY,
  data BLOB NOT NULL
);

-- The id is the place of the first code point. Lines count from 1 and both ends are included.
CREATE TABLE index_chunks (
  id         INTEGER PRIMARY KEY,
  source     INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  first_line INTEGER NOT NULL,
  last_line  INTEGER NOT NULL,
  title      TEXT NOT NULL
);

-- The different words of a text, some thousand a row; the id is the place where their stretch begins.
CREATE TABLE index_spelled (
  id    INTEGER PRIMARY KEY,
  words TEXT NOT NULL
);

-- The words of chunks and of single lines by their stem; the id is the place of the first code point. They only say
-- which chunk or line holds a word, not where: ranking is done by the program, and it is what keeps them small.
CREATE VIRTUAL TABLE index_words USING fts5 (
  text, content = '', detail = none, columnsize = 0, tokenize = "porter unicode61 remove_diacritics 2"
);
CREATE VIRTUAL TABLE index_lines USING fts5 (
  text, content = '', detail = none, columnsize = 0, tokenize = "porter unicode61 remove_diacritics 2"
);

-- Three letters at a time: parts of words, and misspelt ones.
CREATE VIRTUAL TABLE index_letters USING fts5 (
  words, content = 'index_spelled', content_rowid = 'id', detail = none, columnsize = 0, tokenize = "trigram"
);

-- Whether deleted words still stand in pages of the full-text tables, to be merged away.
INSERT INTO counters VALUES ('index_residue', 0);
