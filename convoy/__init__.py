"""The `convoy` command: it composes the rooms, and nothing imports it."""
