"""One module per table, or per group of tables: rows in, values out."""
