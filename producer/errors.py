"""What can go wrong between a file of events and the topic."""

from dataclasses import dataclass
from pathlib import Path

from lanes.errors import ConvoyError

LISTED = 20
"""Problems that a message shows before it counts the rest."""


def listed(lines: list[str]) -> str:
    """Up to LISTED lines, indented, and how many more there are."""
    shown = [f"\n  {line}" for line in lines[:LISTED]]
    if len(lines) > LISTED:
        shown.append(f"\n  and {len(lines) - LISTED} more")
    return "".join(shown)


class BadFile(ConvoyError):
    """A file of events cannot be used as it is. `problems` names each line."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(
            f"{path} cannot be used: {count}{listed(problems)}",
            hint="A file is taken whole or not at all. Mend it and run the command again.",
        )
        self.path = path
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Failure:
    """An event that did not reach the topic. `size` is its value in bytes."""

    order: int
    key: str | None
    size: int
    reason: str

    def __str__(self) -> str:
        key = "no key" if self.key is None else f"key {self.key[:40]}"
        return f"order {self.order} ({key}, {self.size} bytes): {self.reason}"


class DeliveryFailed(ConvoyError):
    """Events that the broker did not take. `delivered` counts those that it acknowledged."""

    def __init__(self, topic: str, failures: list[Failure], delivered: int, total: int) -> None:
        super().__init__(
            f"{total - delivered} of {total} events were not delivered{listed([str(f) for f in failures])}",
            hint=f"{delivered} events are in the topic. A second run would write those again.",
            topic=topic,
        )
        self.failures = failures
        self.delivered = delivered
