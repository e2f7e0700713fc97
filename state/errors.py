"""What can go wrong between us and the database."""

from pathlib import Path

from lanes.errors import ConvoyError


class DatabaseError(ConvoyError):
    """The database file cannot be used as it is: missing, read-only, damaged, or not ours."""


class DatabaseBusy(ConvoyError):
    """Another process held the write lock longer than the deadline."""

    def __init__(self, path: Path, waited_s: float) -> None:
        super().__init__(
            f"{path} is locked by another process; waited {waited_s:.0f} s",
            hint="Look for a program that keeps a transaction open on it. Nothing was changed.",
        )


class OtherSource(ConvoyError):
    """The database follows another topic, another incarnation of it, or another consumer group."""


class OtherDispatch(ConvoyError):
    """The database was written in another dispatch, which keeps its progress in another way."""

    def __init__(self, path: Path, before: str, wanted: str) -> None:
        super().__init__(
            f"{path} was written in {before} dispatch and cannot go on in {wanted} dispatch",
            hint="A consumer group goes on at an offset, a share group at records not yet acknowledged. "
            f"Use --dispatch {before}, or name a new file with --db.",
        )


class NoDeadLetter(ConvoyError):
    """There is no such dead letter to retry."""

    def __init__(self, partition: int, offset: int, why: str) -> None:
        super().__init__(
            f"the dead letter of partition {partition} offset {offset} {why}",
            hint="`convoy dead-letters list` shows those that wait.",
        )


class StaleOwner(ConvoyError):
    """A worker tried to write to a partition that has moved on without it; nothing was changed."""

    def __init__(self, topic: str, partition: int, reason: str) -> None:
        super().__init__(reason, topic=topic, partition=partition)
