"""The SQLite backend: the embedded default."""
