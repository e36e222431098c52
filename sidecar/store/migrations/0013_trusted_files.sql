-- What a project's settings, hooks and rules said when it was trusted, as JSON; see system/guarded.py. A project that was
-- trusted before has none, and gets it when it is next looked at.
ALTER TABLE projects ADD COLUMN trusted_files TEXT;
