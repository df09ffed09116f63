"""The conversation that `locus-memory demo` plays with."""
