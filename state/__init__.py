"""The database contract: where state, history and progress live, and how they are read back."""
