-- Requests for a chat that another process writes to: `sender` put them here, the owner of the chat's lease takes each
-- (`taken`), executes it and stores its `outcome`, and the sender removes the row. `sent` is monotonic milliseconds.
CREATE TABLE handed_requests (
  id      TEXT PRIMARY KEY,
  chat    INTEGER NOT NULL,
  sent    INTEGER NOT NULL,
  request TEXT NOT NULL,
  taken   INTEGER NOT NULL DEFAULT 0,
  outcome TEXT
);
CREATE INDEX handed_requests_by_chat ON handed_requests (chat);
