-- The session that an engine with a history of its own has for a chat, and the newest turn that this session contains.
-- Losing a row loses no turn: the engine gets a new session, and the history with it.
CREATE TABLE engine_sessions (
  chat    INTEGER NOT NULL,
  engine  TEXT NOT NULL,
  session TEXT NOT NULL,
  turn    TEXT NOT NULL,
  PRIMARY KEY (chat, engine)
);
