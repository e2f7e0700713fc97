"""The root of the project's error tree.

Rooms raise subclasses with the facts as attributes; only the command layer turns them into messages
and exit codes.
"""


class ConvoyError(Exception):
    """Something a user can act on: what happened, where, and what to do about it.

    `hint` is the next step in the user's words. `topic`, `partition`, `offset` and `key` say where in
    Kafka it happened, and are None where that does not apply.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: bytes | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.key = key


class BadEvent(ConvoyError):
    """Bytes or fields that are not a state event. The message is the reason, without a position."""
