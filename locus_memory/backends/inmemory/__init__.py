"""The in-memory backend: exact, fast, gone with the process."""
