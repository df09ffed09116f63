"""Conversation managers: what the model sees now."""
