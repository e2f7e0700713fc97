"""What every way of having a broker has in common: an address, and a beginning and an end."""

from types import TracebackType
from typing import Literal, Protocol, Self

Kind = Literal["named", "local", "native", "embedded"]


class RunningBroker(Protocol):
    """A broker for the length of a `with` block.

    `kind`: named by the user, found on this machine, started from Kafka's own jars, or librdkafka's mock.
    `bootstrap_servers` is host:port, valid inside the block.
    """

    @property
    def kind(self) -> Kind:
        """Who runs it."""

    @property
    def bootstrap_servers(self) -> str:
        """Where clients start."""

    def __enter__(self) -> Self:
        """Start it; returns when it is ready."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""

    def check_running(self) -> None:
        """Raise a ConvoyError if it has stopped by itself since it was started."""


class BorrowedBroker:
    """A broker that somebody else runs: nothing to start, nothing to stop."""

    def __init__(self, kind: Literal["named", "local"], bootstrap_servers: str) -> None:
        self.kind: Kind = kind
        self.bootstrap_servers = bootstrap_servers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def check_running(self) -> None:
        """Nothing of ours to look after."""
