-- Compactions: a row stands for the turns up to one of them. None is erased; an undone one no longer counts, and one
-- whose last turn has left the view counts again when that comes back.

CREATE TABLE compactions (
  chat       INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  id         TEXT NOT NULL,
  summarised TEXT,
  masked     TEXT,
  summary    TEXT,
  data       TEXT NOT NULL,
  undone     INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (chat, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX compactions_by_id ON compactions (chat, id);

-- How far a provider's own counts lie from ours, by model.
CREATE TABLE calibrations (
  model  TEXT PRIMARY KEY,
  factor REAL NOT NULL
) WITHOUT ROWID;

-- How often the instruction rules of a project were read, and when they changed.
CREATE TABLE rule_figures (
  project TEXT PRIMARY KEY,
  data    TEXT NOT NULL
) WITHOUT ROWID;

-- What the user wants always, in the user's words: rules of the chat that are sent with every prompt.
CREATE TABLE standing (
  chat INTEGER NOT NULL,
  turn TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (chat, text)
) WITHOUT ROWID;
