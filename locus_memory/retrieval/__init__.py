"""Ranking and embedding: pure functions of values, and the models that users bring."""
