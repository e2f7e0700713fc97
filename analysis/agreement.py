"""Does a live run agree with the model of its dispatch, and if not, where do they part?"""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.report import Report
from lanes.schedule import Work, ticks


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure, as the model gives it and as the run shows it."""

    figure: str
    model: object
    live: object

    @property
    def agrees(self) -> bool:
        """Whether both are the same."""
        return self.model == self.live


def compare(report: Report) -> list[Compared]:
    """The figures of the run beside those of the model of its dispatch; ticks only where it was paced."""
    beside = report.beside
    if beside is None or beside.predicted is None:
        return []
    model, found = beside.predicted, report.found
    compared = [
        Compared("backward writes", model.backward_writes, len(found.backward)),
        Compared("wrong final states", model.wrong, [wrong.tracking_no for wrong in found.wrong]),
        Compared("skipped steps", model.skipped, found.skipped),
    ]
    if beside.live is not None:
        compared.append(Compared("ticks", model.tick, ticks(beside.live)))
    return compared


def where_they_part(model: Sequence[Work], live: Sequence[Work]) -> str | None:
    """The first event, in arrival order, that did not run in the ticks the model says; None if all did.

    Which worker it was is left out: workers are alike.
    """
    measured = {work.event.order: work for work in live}
    for expected in sorted(model, key=lambda work: work.event.order):
        event = expected.event
        got = measured.get(event.order)
        if got is None:
            return f"event {event.order} ({event.tracking_no}) was not measured"
        if (got.start, got.finish) != (expected.start, expected.finish):
            return (
                f"event {event.order} ({event.tracking_no}): model tick {expected.start} to "
                f"{expected.finish}, live {got.start} to {got.finish}"
            )
    return None
