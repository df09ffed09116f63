"""`python -m locus_memory` is `locus-memory`."""

from __future__ import annotations

from locus_memory.cli import main

if __name__ == "__main__":
    main()
