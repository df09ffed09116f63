"""The `locus-memory` command."""
