-- What a session had come to, turn by turn: each row can be made again of the journal up to its turn. A row of a turn
-- that has left the view stays, and counts again when that comes back.

CREATE TABLE snapshots (
  chat    INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  id      TEXT NOT NULL,
  turn    TEXT NOT NULL,
  reason  TEXT NOT NULL,
  ts      INTEGER NOT NULL,
  course  TEXT NOT NULL,
  PRIMARY KEY (chat, ordinal)
) WITHOUT ROWID;
CREATE UNIQUE INDEX snapshots_by_id ON snapshots (chat, id);

-- A snapshot that goes along with the next prompt, at somebody's wish; `carried` is the turn that took it along.
CREATE TABLE restored (
  chat    INTEGER PRIMARY KEY,
  id      TEXT NOT NULL,
  turn    TEXT NOT NULL,
  data    TEXT NOT NULL,
  carried TEXT
) WITHOUT ROWID;
