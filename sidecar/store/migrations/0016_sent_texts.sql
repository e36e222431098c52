-- What the model was sent, for reading it later. A text is a tree of pieces that are named by their hash, so that
-- requests, turns and chats share what is the same; `kind` 0 is text, 1 is compressed text, 2 a list of hashes.

CREATE TABLE sent_texts (
  id   INTEGER PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  kind INTEGER NOT NULL,
  data BLOB NOT NULL
);

-- Which chats need a piece, and the last day of a request of theirs that has it.
CREATE TABLE sent_uses (
  chat INTEGER NOT NULL,
  text INTEGER NOT NULL,
  day  INTEGER NOT NULL,
  PRIMARY KEY (chat, text)
) WITHOUT ROWID;
CREATE INDEX sent_uses_by_text ON sent_uses (text);

-- The requests of a turn, from 1: the hashes of the texts of its blocks, one after the other.
CREATE TABLE sent_requests (
  chat   INTEGER NOT NULL,
  turn   TEXT NOT NULL,
  number INTEGER NOT NULL,
  ts     INTEGER NOT NULL,
  texts  BLOB NOT NULL,
  PRIMARY KEY (chat, turn, number)
) WITHOUT ROWID;
CREATE INDEX sent_requests_by_ts ON sent_requests (ts);
