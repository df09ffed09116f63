"""Adapters for frameworks, one module each; a framework is imported with its module only."""

from __future__ import annotations

__all__: list[str] = []
