"""Records of a share group that no worker is given any more are applied by the run, and only those."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest
from observations import record_at
from streams import state_event

from broker.settings import Connection
from broker.topics import OffsetRange, Topic
from consumer.leftovers import PATIENCE_S, RUN_ITSELF, Leftovers
from consumer.watch import RecordWatch
from lanes.record import Record
from state.applying import Applier
from state.store import Store

TOPIC = Topic("shipments", "id-1", 2)


class Watched:
    """A watch that knows what is open because a test says so."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}

    def first_open(self) -> dict[int, int]:
        return self.open


class Scene:
    """Leftovers of an empty table, on a clock that a test moves."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.open(folder / "states.db", "shipments", "id-1")
        self.run = self.store.start_run(1, version_check=False)
        self.watched = Watched()
        self.now_s = 1000.0
        connection = Connection("localhost:1")
        self.leftovers = Leftovers(connection, TOPIC, self.store, self.run, version_check=False)

    def after(self, seconds: float, **first_open: int) -> list[tuple[int, int, int]]:
        """Time goes by, and this is open; partition, offset and worker of what is in the history then."""
        self.now_s += seconds
        self.watched.open = {int(name[1:]): offset for name, offset in first_open.items()}
        self.leftovers.turn(cast(RecordWatch, self.watched))
        query = "select partition, offset, worker from history order by step"
        return self.store.database.connection.execute(query).fetchall()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path)

    def read(_connection: object, _topic: Topic, ranges: Mapping[int, OffsetRange]) -> Iterator[Record]:
        for partition, here in ranges.items():
            for offset in range(here.low, here.high):
                yield record_at(partition, offset, state_event(offset))

    monkeypatch.setattr("consumer.leftovers.read_records", read)
    monkeypatch.setattr("consumer.leftovers.time.monotonic", lambda: made.now_s)
    yield made
    made.store.close()


def test_a_record_that_stays_open_is_applied_by_the_run_itself(scene: Scene) -> None:
    assert scene.after(0, p0=4) == []
    assert scene.after(PATIENCE_S, p0=4) == []

    assert scene.after(1, p0=4) == [(0, 4, RUN_ITSELF)]


def test_a_partition_that_moves_on_is_left_to_the_workers(scene: Scene) -> None:
    assert scene.after(0, p0=4, p1=9) == []
    assert scene.after(PATIENCE_S, p0=5, p1=9) == []

    assert scene.after(PATIENCE_S, p0=6) == []


def test_a_record_that_a_worker_applied_meanwhile_is_not_applied_again(scene: Scene) -> None:
    scene.after(0, p0=4)
    Applier(scene.store, scene.run, 3, version_check=False).apply_shared(record_at(0, 4, state_event(4)))

    assert scene.after(PATIENCE_S + 1, p0=4) == [(0, 4, 3)]
