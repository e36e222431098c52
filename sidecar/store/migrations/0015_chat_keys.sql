-- The key of each chat a second time, in pages of its own: when the pages of `chats` are damaged, a chat is found again
-- by the id that the app knows. A deleted chat has no row here. Triggers keep it in step; see store/salvage.py.
CREATE TABLE chat_keys (
  chat       INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL,
  namespace  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  key        TEXT NOT NULL
);
INSERT INTO chat_keys (chat, session_id, namespace, kind, key)
  SELECT id, session_id, namespace, kind, key FROM chats WHERE deleted = 0;

CREATE TRIGGER chat_keys_added AFTER INSERT ON chats WHEN new.deleted = 0 BEGIN
  INSERT OR REPLACE INTO chat_keys (chat, session_id, namespace, kind, key)
    VALUES (new.id, new.session_id, new.namespace, new.kind, new.key);
END;
CREATE TRIGGER chat_keys_changed AFTER UPDATE OF session_id, namespace, kind, key, deleted ON chats BEGIN
  DELETE FROM chat_keys WHERE chat = old.id;
  INSERT INTO chat_keys (chat, session_id, namespace, kind, key)
    SELECT new.id, new.session_id, new.namespace, new.kind, new.key WHERE new.deleted = 0;
END;
CREATE TRIGGER chat_keys_removed AFTER DELETE ON chats BEGIN
  DELETE FROM chat_keys WHERE chat = old.id;
END;
