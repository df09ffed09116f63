"""Contract 2: checkpoints, the delta engine and what a storage supplies."""
