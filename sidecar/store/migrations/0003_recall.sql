-- What a chat said earlier, found again by its words. Both indexes only say which message holds a token, not where:
-- ranking is done by the program, and without positions they take a tenth of the room.

-- Words by their stem.
CREATE VIRTUAL TABLE stems USING fts5 (
  text, content = 'messages', content_rowid = 'id', detail = none, columnsize = 0,
  tokenize = "porter unicode61 remove_diacritics 2"
);

-- Three letters at a time: misspelt words, parts of words, and scripts without blanks. The beginning of a long message
-- says what it is about; the triggers must cut it alike, or a deleted message leaves letters behind.
CREATE VIRTUAL TABLE grams USING fts5 (
  text, content = '', detail = none, columnsize = 0, tokenize = "trigram"
);

INSERT INTO stems (stems) VALUES ('rebuild');
INSERT INTO grams (rowid, text) SELECT id, substr(text, 1, 2000) FROM messages;

CREATE TRIGGER messages_recalled AFTER INSERT ON messages BEGIN
  INSERT INTO stems (rowid, text) VALUES (new.id, new.text);
  INSERT INTO grams (rowid, text) VALUES (new.id, substr(new.text, 1, 2000));
END;
CREATE TRIGGER messages_forgotten AFTER DELETE ON messages BEGIN
  INSERT INTO stems (stems, rowid, text) VALUES ('delete', old.id, old.text);
  INSERT INTO grams (grams, rowid, text) VALUES ('delete', old.id, substr(old.text, 1, 2000));
END;

-- Tells whose a found message is without reading it; and does what messages_by_chat did.
CREATE INDEX messages_of_chat ON messages (chat, id, role);
DROP INDEX messages_by_chat;

-- What was said in the turns beside a found one.
CREATE INDEX messages_of_turn ON messages (chat, turn);
