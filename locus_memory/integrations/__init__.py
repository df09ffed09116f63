"""Adapters for frameworks, one folder each; a framework is imported with its folder only."""

from __future__ import annotations

__all__: list[str] = []
