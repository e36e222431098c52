-- Whether a chat came with the database of another installation, and no app has named its project folder since: until
-- then its tools have none; see store/origin.py.
ALTER TABLE chats ADD COLUMN elsewhere INTEGER NOT NULL DEFAULT 0;
