"""Which fault is tried next, and how often, so that all come first and the time box holds."""

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.faults import Fault


@dataclass(slots=True)
class Turn:
    """A fault's share so far, and what it cost."""

    fault: Fault
    tried: int = 0
    """Landings that were asked for."""
    spent_s: float = 0.0

    def next_count(self) -> int:
        """As many landings as the first time, up to what is left of the full run."""
        return min(self.fault.first, self.fault.most - self.tried)

    def expected_s(self, count: int) -> float:
        """What so many landings will take, going by those before."""
        return self.spent_s / self.tried * count if self.tried else 0.0


@dataclass(slots=True)
class Schedule:
    """Every fault once, in order; then, while time is left, the one whose full run is least complete.

    `remaining_s` tells how much of the time box is left. A first turn is taken as long as any is left, a
    later one only where it will fit.
    """

    faults: list[Fault]
    remaining_s: Callable[[], float]
    turns: list[Turn] = field(init=False)

    def __post_init__(self) -> None:
        self.turns = [Turn(fault) for fault in self.faults]

    def next(self) -> tuple[Turn, int] | None:
        """The next turn and its number of landings; None when time, or everything there is to do, is over."""
        remaining_s = self.remaining_s()
        if remaining_s <= 0:
            return None
        for turn in self.turns:
            if not turn.tried:
                return turn, turn.next_count()
        open_turns = [
            turn
            for turn in self.turns
            if turn.next_count() > 0 and turn.expected_s(turn.next_count()) <= remaining_s
        ]
        if not open_turns:
            return None
        turn = min(open_turns, key=lambda turn: turn.tried / turn.fault.most)
        return turn, turn.next_count()
