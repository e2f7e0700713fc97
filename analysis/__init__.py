"""Topic offsets and state to findings, next to what the models say."""
