"""The start of a paced run: who must be ready for it, and for how long."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from broker.topics import Topic
from consumer.barrier import Barrier, is_even
from consumer.crew import Crew
from consumer.errors import RunStalled
from consumer.telling import Go, Order
from lanes.dispatch import Dispatch
from state.store import Store

NOW_US = 5_000_000
EVEN = {0: [0, 1], 1: [2]}
ALONE: dict[int, list[int]] = {0: [0, 1, 2]}
UNEVEN: dict[int, list[int]] = {0: [0, 1, 2], 1: []}


@pytest.mark.parametrize(
    ("assignment", "workers", "partitions"),
    [
        ({0: [0, 1], 1: [2]}, 2, 3),
        ({0: [2], 1: [0, 1]}, 2, 3),
        ({0: [0], 1: [1]}, 2, 2),
        ({0: [0], 1: [1], 2: []}, 3, 2),
        ({0: [0]}, 1, 1),
    ],
)
def test_an_assignment_is_even_when_each_worker_has_its_share_and_each_partition_an_owner(
    assignment: dict[int, list[int]], workers: int, partitions: int
) -> None:
    assert is_even(assignment, workers, partitions)


@pytest.mark.parametrize(
    ("assignment", "workers", "partitions"),
    [
        ({}, 2, 3),
        ({0: [0, 1, 2]}, 2, 3),
        ({0: [0, 1, 2], 1: []}, 2, 3),
        ({0: [0], 1: [1]}, 2, 3),
        ({0: [0, 1], 1: [1, 2]}, 2, 3),
        ({0: [0, 1], 1: [2], 2: []}, 2, 3),
        ({0: [0, 1], 1: [2, 3], 2: []}, 3, 4),
        ({0: [0], 1: [7]}, 2, 2),
    ],
    ids=[
        "nobody yet",
        "one of two has answered",
        "the first member has all",
        "a partition without an owner",
        "a partition with two owners",
        "somebody else",
        "an idle worker beside one with two",
        "a partition that there is not",
    ],
)
def test_an_assignment_is_not_even(assignment: dict[int, list[int]], workers: int, partitions: int) -> None:
    assert not is_even(assignment, workers, partitions)


class PlannedCrew:
    """A crew whose state, listening by listening, is written down beforehand; the last one stays."""

    def __init__(self, *states: Any) -> None:
        self.states = list(states)
        self.now: Any = None
        self.ordered: list[Order] = []
        self.ended: list[str] = []

    def listen(self) -> None:
        self.now = self.states.pop(0) if len(self.states) > 1 else self.states[0]

    @property
    def assignment(self) -> dict[int, list[int]]:
        return cast("dict[int, list[int]]", self.now)

    @property
    def holding(self) -> int:
        return cast("int", self.now)

    def order(self, order: Order) -> None:
        self.ordered.append(order)


class Clock:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("consumer.barrier.time.monotonic", lambda: made.now_s)
    monkeypatch.setattr("consumer.barrier.time.sleep", made.sleep)
    monkeypatch.setattr("consumer.barrier.now_us", lambda: NOW_US)
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "states.db", "shipments", "id-1")
    opened.start_run(2, version_check=False, tick_us=100_000)
    yield opened
    opened.close()


def barrier(
    crew: PlannedCrew, store: Store, dispatch: Dispatch = Dispatch.GROUP, *, records: int = 20
) -> Barrier:
    topic = Topic("shipments", "id-1", 3)
    return Barrier(cast("Crew", crew), store, 1, 2, topic, dispatch, records)


@pytest.mark.usefixtures("clock")
def test_all_are_told_one_tick_zero_a_head_start_from_now(store: Store) -> None:
    crew = PlannedCrew(EVEN)
    barrier(crew, store).start_when_ready(lambda: False)
    assert crew.ordered == [Go(zero_us=NOW_US + 300_000)]
    assert store.set_zero(1, 1) == NOW_US + 300_000


def test_a_group_starts_when_its_assignment_stayed_even_for_half_a_second(clock: Clock, store: Store) -> None:
    barrier(PlannedCrew(EVEN), store).start_when_ready(lambda: False)
    assert 0.5 < clock.now_s < 0.6


def test_a_group_does_not_start_while_its_first_member_owns_everything(clock: Clock, store: Store) -> None:
    states = [ALONE] * 40 + [UNEVEN] * 40 + [EVEN]
    barrier(PlannedCrew(*states), store).start_when_ready(lambda: False)
    assert clock.now_s > 80 * 0.02 + 0.5


def test_an_assignment_that_changes_must_be_even_for_half_a_second_again(clock: Clock, store: Store) -> None:
    states = [*[EVEN] * 20, {}, EVEN]
    barrier(PlannedCrew(*states), store).start_when_ready(lambda: False)
    assert clock.now_s > 21 * 0.02 + 0.5


@pytest.mark.parametrize(("records", "needed"), [(20, 2), (1, 1), (0, 0)])
def test_a_share_group_starts_at_once_when_every_worker_that_can_holds_a_record(
    clock: Clock, store: Store, records: int, needed: int
) -> None:
    crew = PlannedCrew(*range(needed + 1))
    barrier(crew, store, Dispatch.SHARE, records=records).start_when_ready(lambda: False)
    assert crew.holding == needed
    assert clock.now_s < 0.5
    assert len(crew.ordered) == 1


@pytest.mark.parametrize(
    ("dispatch", "state", "shown"),
    [
        (Dispatch.GROUP, UNEVEN, "assignment {0: [0, 1, 2], 1: []}"),
        (Dispatch.SHARE, 1, "1 of 2 workers hold a record"),
    ],
)
def test_a_crew_that_is_not_ready_within_a_minute_is_an_error_that_shows_what_was_there(
    clock: Clock, store: Store, dispatch: Dispatch, state: object, shown: str
) -> None:
    crew = PlannedCrew(state)
    with pytest.raises(RunStalled) as stalled:
        barrier(crew, store, dispatch).start_when_ready(lambda: False)
    assert str(stalled.value) == f"after 60 s not every worker is ready: {shown}"
    assert stalled.value.topic == "shipments"
    assert 60 < clock.now_s < 61
    assert crew.ordered == []


def test_told_to_stop_it_waits_no_longer(clock: Clock, store: Store) -> None:
    barrier(PlannedCrew(ALONE), store).start_when_ready(lambda: clock.now_s > 3)
    assert 3 < clock.now_s < 3.1
