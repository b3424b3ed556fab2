"""SQLite: the tables, the one writer, the read-only readers."""
