"""The rows of the table, by theme. `catalog` puts them together."""
