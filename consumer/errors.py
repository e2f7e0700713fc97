"""What can go wrong between the topic and the state."""

from lanes.errors import ConvoyError


class OffsetGone(ConvoyError):
    """The topic no longer has the offset at which the database goes on."""


class WorkerFailed(ConvoyError):
    """A worker ended with an error of its own; the others were stopped."""


class RunStalled(ConvoyError):
    """A wait inside the run came to its deadline."""
