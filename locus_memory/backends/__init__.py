"""One folder a database; import a backend from its own folder or through the registry."""
