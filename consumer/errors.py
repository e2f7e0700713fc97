"""What can go wrong between the topic and the state."""

from lanes.errors import ConvoyError


class OffsetGone(ConvoyError):
    """The topic no longer has the offset at which the database goes on."""


class WorkerFailed(ConvoyError):
    """A worker ended with an error of its own; the others were stopped."""


class RunStalled(ConvoyError):
    """A wait inside the run came to its deadline."""


class ShareGroupsMissing(ConvoyError):
    """The broker has no share groups."""


def offset_gone(topic: str, partition: int | None, offset: int | None) -> OffsetGone:
    """The refusal to jump over records that are gone."""
    return OffsetGone(
        "the topic no longer has the offset at which the database goes on",
        hint="Records were deleted, or the topic was made anew. Nothing is skipped in silence: name a new "
        "file with --db to read what the topic still has.",
        topic=topic,
        partition=partition,
        offset=offset,
    )
