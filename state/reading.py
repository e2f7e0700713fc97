"""Reading a database back, for the analysis."""

from collections.abc import Iterator
from pathlib import Path

from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from state.database import open_for_reading
from state.dead_letters import letter_at
from state.errors import DatabaseError
from state.queries import QUERIES
from state.records import Claimed, DeadLetter, HistoryRow, Progress, Run, ShipmentRow, Source, Totals


class Reading:
    """The reading side of the database, as it was at one moment: a run that goes on does not show.

    All calls read one snapshot, so that rows and history belong together.
    """

    def __init__(self, path: Path) -> None:
        self._database = open_for_reading(path)
        self._connection = self._database.connection
        self._connection.execute("begin")
        source = self._connection.execute(QUERIES["get_source"]).fetchone()
        if source is None:
            self.close()
            raise DatabaseError(f"{path} is empty: no run has started on it")
        self.source = Source(*source)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def runs(self) -> list[Run]:
        """The runs, first to last."""
        rows = self._connection.execute(QUERIES["get_runs"])
        return [
            Run(
                run, started_us, workers, bool(check), Dispatch(by), KeyChoice(gate), bool(sel), tick_us, zero
            )
            for run, started_us, workers, check, by, gate, sel, tick_us, zero in rows
        ]

    def progress(self) -> list[Progress]:
        """Each partition's progress."""
        return [Progress(*row) for row in self._connection.execute(QUERIES["get_progress"])]

    def claims(self) -> list[Claimed]:
        """Every claim that was made, by partition and epoch."""
        return [Claimed(*row) for row in self._connection.execute(QUERIES["get_claims"])]

    def totals(self) -> Totals:
        """Counts over the whole database."""
        return Totals(*self._connection.execute(QUERIES["get_totals"], {"run": None}).fetchone())

    def shipments(self) -> Iterator[ShipmentRow]:
        """Each shipment's row, by tracking number."""
        return (ShipmentRow(*row) for row in self._connection.execute(QUERIES["get_shipments"]))

    def history(self) -> Iterator[HistoryRow]:
        """Every event in the order in which the table saw it."""
        return (HistoryRow(*row) for row in self._connection.execute(QUERIES["get_history"]))

    def dead_letter(self, partition: int, offset: int) -> DeadLetter:
        """The dead letter of a position; raises NoDeadLetter where there is none."""
        return letter_at(self._connection, partition, offset)

    def dead_letters(self) -> Iterator[DeadLetter]:
        """Dead letters by partition and offset."""
        return (DeadLetter(*row) for row in self._connection.execute(QUERIES["get_dead_letters"]))
