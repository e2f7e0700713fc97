"""Evidence to a verdict: do the invariants hold? True, false, or not known yet."""

from dataclasses import dataclass
from enum import StrEnum

from analysis.invariants import Evidence, by_invariant, open_questions

SHOWN = 5
"""Sentences against one invariant before the rest is counted."""


class Holds(StrEnum):
    """The three answers."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and what stands behind it."""

    holds: Holds
    against: dict[str, list[str]]
    """Invariant to what speaks against it, every invariant in it."""
    unknown: list[str]
    """What cannot be told yet."""

    @property
    def reasons(self) -> list[str]:
        """A sentence for each reason why the answer is not true."""
        reasons = []
        for name, sentences in self.against.items():
            reasons += [f"{name}: {sentence}" for sentence in sentences[:SHOWN]]
            if len(sentences) > SHOWN:
                reasons.append(f"{name}: and {len(sentences) - SHOWN} more")
        return reasons + self.unknown


def judge_evidence(evidence: Evidence, *, drained: bool = False) -> Verdict:
    """False when an invariant is broken; unknown when none is, but something cannot be told yet.

    `drained` says that a run claims to have applied everything: then a record that is not yet applied
    counts as lost.
    """
    against = by_invariant(evidence)
    unknown = open_questions(evidence.found)
    if drained:
        left = evidence.found.not_yet_applied
        against["everything applied after the drain"] = [f"{left} records are not applied"] if left else []
    if any(against.values()):
        return Verdict(Holds.FALSE, against, unknown)
    return Verdict(Holds.UNKNOWN if unknown else Holds.TRUE, against, unknown)
