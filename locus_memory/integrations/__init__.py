"""Adapters for frameworks, one folder each; only the folder imports its framework."""

from __future__ import annotations

__all__: list[str] = []
