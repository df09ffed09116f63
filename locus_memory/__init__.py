"""Memory for LLM agents, on the database you already run."""

__version__ = "0.1.0"
