-- Checksums, so that a row that the disk has altered is known; rows from before have none. See store/checksums.py.
ALTER TABLE events ADD COLUMN sum INTEGER;
ALTER TABLE messages ADD COLUMN sum INTEGER;

-- What was saved of each chat when the database was damaged and made anew. `turns` is how many it had then: as long as
-- none was added, opening the chat tells of it.
CREATE TABLE recoveries (
  chat  INTEGER PRIMARY KEY,
  ts    INTEGER NOT NULL,
  turns INTEGER NOT NULL,
  saved INTEGER NOT NULL,
  lost  INTEGER NOT NULL,
  data  TEXT NOT NULL
);
