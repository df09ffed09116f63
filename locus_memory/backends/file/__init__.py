"""The file backend: one file a record."""
