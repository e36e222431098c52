-- Pages of the web: copies that may be fetched again at any time, so this is no projection of the journal. `bytes` and
-- `used_at` stand before the text, so that counting and making room never read a page.

CREATE TABLE pages (
  key           TEXT PRIMARY KEY,
  url           TEXT NOT NULL,
  bytes         INTEGER NOT NULL,
  used_at       INTEGER NOT NULL,
  hits          INTEGER NOT NULL DEFAULT 0,
  status        INTEGER NOT NULL,
  kind          TEXT NOT NULL,
  fetched_at    INTEGER NOT NULL,
  fresh_until   INTEGER NOT NULL,
  title         TEXT,
  location      TEXT,
  etag          TEXT,
  last_modified TEXT,
  truncated     INTEGER NOT NULL DEFAULT 0,
  text          TEXT NOT NULL
);
CREATE INDEX pages_by_use ON pages (used_at, bytes);

-- How requests went: hits, misses and the like, which outlive the pages.
CREATE TABLE page_counts (
  name  TEXT PRIMARY KEY,
  count INTEGER NOT NULL
) WITHOUT ROWID;
