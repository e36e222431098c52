-- What the index of whole words misses in messages: pairs of characters of scripts without spaces, and parts of
-- identifiers. The program computes it (text/search_words.py): for new messages with their rows, for those of before in
-- slices in the background, newest first. The counter is the newest message that still waits. The parts are kept: a
-- full-text table that removes rows without their text needs SQLite 3.43.
CREATE TABLE message_part_texts (
  id   INTEGER PRIMARY KEY,
  text TEXT NOT NULL
);
CREATE VIRTUAL TABLE message_parts USING fts5 (
  text, content = 'message_part_texts', content_rowid = 'id', detail = none, columnsize = 0,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);
CREATE TRIGGER message_parts_added AFTER INSERT ON message_part_texts BEGIN
  INSERT INTO message_parts (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER message_parts_removed AFTER DELETE ON message_part_texts BEGIN
  INSERT INTO message_parts (message_parts, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER messages_unparted AFTER DELETE ON messages BEGIN
  DELETE FROM message_part_texts WHERE id = old.id;
END;
INSERT INTO counters VALUES ('message_parts', (SELECT coalesce(max(id), 0) FROM messages));
