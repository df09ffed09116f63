"""Contract 1: the namespaced key-value store, its values, filters, views and wrappers."""
