"""What a worker process tells the one that started it, over its pipe."""

from dataclasses import dataclass

from lanes.errors import ConvoyError


@dataclass(frozen=True, slots=True)
class Assigned:
    """The worker's partitions, after each change of its assignment."""

    partitions: list[int]


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker ends with an error; its facts, since an exception does not travel well."""

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


Told = Assigned | Failed
