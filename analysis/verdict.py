"""Findings to a verdict: do the invariants of the arrangement hold? True, false, or not known yet."""

from dataclasses import dataclass
from enum import StrEnum

from analysis.findings import Findings
from lanes.key import KeyChoice


class Holds(StrEnum):
    """The three answers."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, with a sentence for each reason against it."""

    holds: Holds
    reasons: list[str]


def judge_findings(found: Findings) -> Verdict:
    """False when an invariant is broken; unknown when none is, but something cannot be told yet.

    Invariants of every arrangement: no record lost, none applied twice, each row what its history gives.
    Where the key keeps a shipment in one lane: no backward write and no wrong final state beyond those
    that the stream has in arrival order.
    """
    broken = []
    if found.lost:
        broken.append(f"{len(found.lost)} records were passed without a trace, first {_at(found.lost[0])}")
    if found.twice:
        broken.append(f"{len(found.twice)} records are applied and dead letters, first {_at(found.twice[0])}")
    if found.fold_differs:
        broken.append(f"rows differ from their history: {_names(found.fold_differs)}")
    if keeps_order(found):
        broken += _order_broken(found)
    if broken:
        return Verdict(Holds.FALSE, broken)
    open_questions = []
    if found.not_yet_applied:
        open_questions.append(f"{found.not_yet_applied} records are not yet applied")
    if found.undecided:
        open_questions.append(
            f"arrival orders used twice leave the last state open: {_names(found.undecided)}"
        )
    return Verdict(Holds.UNKNOWN if open_questions else Holds.TRUE, open_questions)


def keeps_order(found: Findings) -> bool:
    """Whether a shipment has one lane: by tracking number, or by a line that it never changes."""
    if found.lane_key == KeyChoice.LINE:
        return not found.line_changes
    return found.lane_key == KeyChoice.TRACKING_NO


def _order_broken(found: Findings) -> list[str]:
    broken = []
    extra = len(found.backward) - len(found.serial.backward)
    if extra > 0:
        first = found.backward[0]
        broken.append(
            f"{extra} backward writes in lanes by {found.lane_key}, first {first.tracking_no} "
            f"to {first.state} at {_at((first.partition, first.offset))}"
        )
    wrong = [row.tracking_no for row in found.wrong if row.tracking_no not in found.serial.wrong]
    if wrong and not found.not_yet_applied:
        broken.append(f"wrong final states: {_names(wrong)}")
    return broken


def _at(position: tuple[int, int]) -> str:
    return f"partition {position[0]} offset {position[1]}"


def _names(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
