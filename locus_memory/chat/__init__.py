"""Chat models: what a model is, and those that ship with the library."""
