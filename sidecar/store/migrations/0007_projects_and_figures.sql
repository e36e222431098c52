-- Whose a chat is, and what was measured of it.

-- A project has an id that is the same however its path is spelled. Its version stands before the colon: v0 is the path
-- itself, which SQL can tell; the program puts the id of its own version in when it meets the project. Whoever looks for a
-- project looks for its ids of all versions. A project that was moved leaves a row that says where to.
ALTER TABLE projects ADD COLUMN hash TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN moved_to TEXT;
UPDATE projects SET hash = 'v0:' || path;
INSERT OR IGNORE INTO projects (path, hash, trusted, changed_at)
  SELECT project_path, 'v0:' || project_path, 0, max(last_activity) FROM chats
  WHERE project_path IS NOT NULL GROUP BY project_path;
CREATE INDEX projects_by_hash ON projects (hash);
CREATE INDEX chats_by_project ON chats (project_path) WHERE project_path IS NOT NULL;

CREATE TRIGGER chats_made_in_project AFTER INSERT ON chats WHEN new.project_path IS NOT NULL BEGIN
  INSERT OR IGNORE INTO projects (path, hash, trusted, changed_at)
    VALUES (new.project_path, 'v0:' || new.project_path, 0, new.created_at);
END;
CREATE TRIGGER chats_moved_to_project AFTER UPDATE OF project_path ON chats WHEN new.project_path IS NOT NULL BEGIN
  INSERT OR IGNORE INTO projects (path, hash, trusted, changed_at)
    VALUES (new.project_path, 'v0:' || new.project_path, 0, new.last_activity);
END;

-- What was measured, by project, day (since 1970, UTC), chat and tool. There is a row only for what was measured. When a
-- chat is purged, its rows are added to those of no chat and no tool: the project's totals stay.
CREATE TABLE figures (
  project TEXT NOT NULL,
  day     INTEGER NOT NULL,
  chat    INTEGER NOT NULL,
  tool    TEXT NOT NULL,
  name    TEXT NOT NULL,
  value   NUMERIC NOT NULL,
  PRIMARY KEY (project, day, chat, tool, name)
) WITHOUT ROWID;
CREATE INDEX figures_of_chat ON figures (chat);

-- What providers have told of the turns so far. A turn that stands in several chats was forked or imported: it was
-- answered once, in the oldest of them.
CREATE TEMP TABLE counted AS
  SELECT coalesce(c.project_path, '') AS project, coalesce(t.ended_at, t.started_at) / 86400000 AS day, t.chat AS chat,
    json_extract(t.usage, '$.inputTokens') AS sent, json_extract(t.usage, '$.outputTokens') AS written,
    json_extract(t.usage, '$.cachedTokens') AS cached
  FROM turns t JOIN (SELECT id, min(chat) AS chat FROM turns GROUP BY id) o ON o.id = t.id AND o.chat = t.chat
  JOIN chats c ON c.id = t.chat WHERE t.usage IS NOT NULL;
INSERT INTO figures
  SELECT project, day, chat, '', 'inputTokens', sum(sent) FROM counted WHERE sent IS NOT NULL GROUP BY 1, 2, 3;
INSERT INTO figures
  SELECT project, day, chat, '', 'outputTokens', sum(written) FROM counted WHERE written IS NOT NULL GROUP BY 1, 2, 3;
INSERT INTO figures
  SELECT project, day, chat, '', 'cachedTokens', sum(cached) FROM counted WHERE cached IS NOT NULL GROUP BY 1, 2, 3;
INSERT INTO figures
  SELECT project, day, chat, '', 'countedTurns', count(*) FROM counted WHERE sent IS NOT NULL GROUP BY 1, 2, 3;
DROP TABLE counted;

-- Finds what is old, and adds up sizes, without reading the bytes.
CREATE INDEX blobs_by_age ON blobs (created_at, id, size);
