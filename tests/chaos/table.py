"""The end of a run: a row for each fault, and one line with the verdict."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from analysis.verdict import Holds
from chaos.scene import Outcome

COLUMNS = [
    "fault",
    "landed",
    "records",
    "lost",
    "duplicated",
    "stale commits refused",
    "recovery time",
    "verdict",
]
EXIT_CODE = {Holds.TRUE: 0, Holds.FALSE: 3, Holds.UNKNOWN: 4}


@dataclass(slots=True)
class Row:
    """Everything that one fault came to over a run."""

    fault: str
    landed: int = 0
    records: int = 0
    lost: int = 0
    duplicated: int = 0
    refused: int = 0
    recovery_s: float = 0.0
    """The longest."""
    accused: bool = False
    """Its workers are broken on purpose: the checker has to say false, and its losses are not ours."""
    verdicts: list[Holds] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Take in one more try."""
        judged = outcome.judged
        self.accused = not outcome.counts
        self.landed += outcome.landed
        self.records += judged.records
        self.lost += judged.lost
        self.duplicated += judged.duplicated
        self.refused += judged.refused
        self.recovery_s = max(self.recovery_s, judged.recovery_s)
        if self.accused:
            # Caught as often as wanted is right; never caught says that the checker is blind.
            caught = outcome.landed >= outcome.wanted
            self.verdicts.append(Holds.TRUE if caught else Holds.UNKNOWN)
            self.reasons += [] if caught else ["not caught by the checker"]
        else:
            self.verdicts.append(outcome.holds)
            self.reasons += outcome.reasons

    def fail(self, reason: str) -> None:
        """A try that came to no judgement."""
        self.verdicts.append(Holds.UNKNOWN)
        self.reasons.append(reason)

    @property
    def holds(self) -> Holds:
        """False once is false; a fault that never landed, or was not judged once, is unknown."""
        if Holds.FALSE in self.verdicts:
            return Holds.FALSE
        if not self.landed or Holds.UNKNOWN in self.verdicts:
            return Holds.UNKNOWN
        return Holds.TRUE

    def cells(self) -> tuple[str | int, ...]:
        """The row as it is printed."""
        return (
            self.fault,
            f"{self.landed:,}",
            f"{self.records:,}",
            "by design" if self.accused else self.lost,
            "by design" if self.accused else self.duplicated,
            self.refused,
            f"{self.recovery_s:.1f} s",
            "caught" if self.accused and self.holds is Holds.TRUE else self.holds.value,
        )


def verdict_of(rows: Iterable[Row]) -> Holds:
    """False beats unknown beats true; no fault at all is unknown."""
    said = {row.holds for row in rows}
    if Holds.FALSE in said:
        return Holds.FALSE
    return Holds.TRUE if said == {Holds.TRUE} else Holds.UNKNOWN


def last_line(rows: list[Row]) -> str:
    """The verdict with its counts; what broken workers lost by design is left out."""
    ours = [row for row in rows if not row.accused]
    landed = sum(row.landed for row in rows)
    records = sum(row.records for row in ours)
    lost = sum(row.lost for row in ours)
    duplicated = sum(row.duplicated for row in ours)
    return (
        f"verdict {verdict_of(rows).value}: {len(rows)} faults, {landed:,} landed, {records:,} records, "
        f"{lost:,} lost, {duplicated:,} duplicated"
    )
