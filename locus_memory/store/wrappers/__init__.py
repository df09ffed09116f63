"""Stores over stores: behaviour that any backend can be given."""
