"""The facets of the store, one per group of tables: whole operations on values."""
