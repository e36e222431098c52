-- How often each hook has run, in all chats, and how its last run went.
CREATE TABLE hook_figures (
  hook     TEXT PRIMARY KEY,
  runs     INTEGER NOT NULL,
  decision TEXT NOT NULL,
  ms       INTEGER,
  at       INTEGER NOT NULL
) WITHOUT ROWID;
