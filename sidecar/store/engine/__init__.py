"""SQLite: connections, transactions, opening, locks and the reserve."""
