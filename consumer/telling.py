"""What a worker process and the one that started it tell each other, over their pipe."""

from dataclasses import dataclass

from lanes.errors import ConvoyError


@dataclass(frozen=True, slots=True)
class Assigned:
    """A worker's partitions, after each change of its assignment."""

    partitions: list[int]


@dataclass(frozen=True, slots=True)
class Holding:
    """A worker in share dispatch holds its first record and waits for the start."""


@dataclass(frozen=True, slots=True)
class Halted:
    """A partition is halted before a record that is no event."""

    partition: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker ends with an error; its facts, since an exception does not travel well."""

    message: str
    hint: str
    topic: str | None
    partition: int | None
    offset: int | None
    key: bytes | None

    @classmethod
    def of(cls, error: ConvoyError) -> "Failed":
        """The facts of an error."""
        return cls(str(error), error.hint, error.topic, error.partition, error.offset, error.key)


Told = Assigned | Holding | Halted | Failed


@dataclass(frozen=True, slots=True)
class Go:
    """A paced run begins: tick 0 is at `zero_us`, microseconds since 1970."""

    zero_us: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Finish the transaction at hand and leave."""


@dataclass(frozen=True, slots=True)
class CrewmateGone:
    """Another worker of the run ended without being told to; what it held will come back."""


Order = Go | Stop | CrewmateGone
