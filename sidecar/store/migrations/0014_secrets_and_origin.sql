-- Secrets of a chat's MCP servers: values of `env` and `headers`, and the query of `url`. They stand here and nowhere
-- else; configurations and events show them as "(set)". store/mcp_secrets.py moves older ones here.
CREATE TABLE mcp_secrets (
  chat   INTEGER NOT NULL,
  server TEXT NOT NULL,
  part   TEXT NOT NULL,
  name   TEXT NOT NULL,
  value  TEXT NOT NULL,
  PRIMARY KEY (chat, server, part, name)
) WITHOUT ROWID;

-- Which installation wrote the database, in one row; see store/origin.py.
CREATE TABLE origin (
  installation TEXT NOT NULL
);
