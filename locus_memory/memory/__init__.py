"""The memory manager: what is worth keeping, and when to bring it back."""
