"""How far the database is behind the topic, and how long a broker may be away."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest
from observations import record_at
from streams import state_event

from broker.errors import BrokerUnreachable
from broker.settings import Connection
from broker.topics import OffsetRange, Topic, Topics
from consumer.watch import OffsetWatch, RecordWatch, reached_offsets, watch_for
from lanes.dispatch import Dispatch
from lanes.record import Record
from state.applying import Applier
from state.errors import OtherSource
from state.records import Progress
from state.store import Store

TOPIC = Topic("shipments", "id-1", 2)
NOWHERE = Connection("localhost:1")


class Offsets:
    """A broker that knows the offsets of one topic; None while it is away."""

    def __init__(self, **ranges: tuple[int, int]) -> None:
        self.ranges: dict[int, OffsetRange] | None = None
        self.topic = TOPIC
        self.set(**ranges)

    def set(self, **ranges: tuple[int, int]) -> None:
        """Partitions as p0, p1, ... to low and high."""
        self.ranges = {int(name[1:]): OffsetRange(*ends) for name, ends in ranges.items()}

    def get(self, name: str) -> Topic:
        assert name == "shipments"
        if self.ranges is None:
            raise BrokerUnreachable("localhost:1", "gone")
        return self.topic

    def offsets(self, _topic: Topic) -> dict[int, OffsetRange]:
        if self.ranges is None:
            raise BrokerUnreachable("localhost:1", "gone")
        return self.ranges


class Clock:
    """A monotonic clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now_s = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("consumer.watch.time.monotonic", lambda: made.now_s)
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "states.db", "shipments", "id-1")
    yield opened
    opened.close()


@pytest.fixture
def applier(store: Store) -> Applier:
    return Applier(store, store.start_run(1, version_check=False), 0, version_check=False)


@pytest.fixture
def told() -> list[tuple[int, int]]:
    """What the progress bar was told."""
    return []


def offset_watch(topics: Offsets, store: Store, told: list[tuple[int, int]]) -> OffsetWatch:
    def progressed(done: int, total: int) -> None:
        told.append((done, total))

    return OffsetWatch(cast("Topics", topics), TOPIC, store, progressed)


@pytest.mark.parametrize(
    ("progress", "low", "reached"),
    [
        (None, 0, 0),
        (None, 7, 7),
        (Progress(0, None, 1, "w", -1), 3, 3),
        (Progress(0, 5, 1, "w", -1), 0, 5),
        (Progress(0, 5, 1, "w", 6), 0, 6),
        (Progress(0, 9, 1, "w", 6), 0, 9),
        (Progress(0, None, 1, "w", 4), 0, 4),
        (Progress(0, 5, 1, "w", -1), 8, 8),
    ],
    ids=[
        "no owner yet",
        "no owner yet and the first records are gone",
        "claimed",
        "applied",
        "the end behind markers was met",
        "applied beyond an end met before",
        "only markers",
        "behind the first offset",
    ],
)
def test_a_partition_is_reached_up_to_its_next_offset_or_the_end_that_its_owner_met(
    progress: Progress | None, low: int, reached: int
) -> None:
    assert reached_offsets([progress] if progress else [], {0: OffsetRange(low, 20)}) == {0: reached}


def test_offsets_are_compared_partition_by_partition(
    clock: Clock, store: Store, applier: Applier, told: list[tuple[int, int]]
) -> None:
    watch = offset_watch(Offsets(p0=(0, 3), p1=(10, 12)), store, told)
    claims = store.claim([0, 1], "worker 0")
    claims = applier.apply_owned([record_at(0, offset, state_event(offset)) for offset in range(3)], claims)
    watch.look(())
    assert told == [(3, 5)]
    assert not watch.caught_up
    assert watch.records_left() == 2
    clock.now_s += 1
    applier.apply_owned([record_at(1, 11, state_event(9))], claims)
    watch.look(())
    assert told == [(3, 5), (5, 5)]
    assert watch.caught_up


def test_one_partition_that_is_ahead_does_not_make_up_for_one_that_is_behind(
    store: Store, applier: Applier, told: list[tuple[int, int]]
) -> None:
    applier.apply_owned([record_at(0, 9, state_event())], store.claim([0, 1], "worker 0"))
    watch = offset_watch(Offsets(p0=(0, 3), p1=(0, 3)), store, told)
    watch.look(())
    assert told == [(3, 6)]
    assert not watch.caught_up


def test_markers_behind_the_last_record_do_not_keep_the_run_from_ending(
    store: Store, applier: Applier, told: list[tuple[int, int]]
) -> None:
    """Committed, marker, aborted, marker, plain, marker: offsets 0, 1 and 5 of 0 to 6, and the end is met."""
    records = [record_at(0, offset, state_event(offset)) for offset in (0, 1, 4)]
    claims = applier.apply_owned(records, store.claim([0], "worker 0"))
    watch = offset_watch(Offsets(p0=(0, 6)), store, told)
    assert watch.records_left() == 1
    store.note_end(claims[0], 6)
    watch.look(())
    assert watch.caught_up


def test_new_records_end_the_state_of_being_caught_up(
    clock: Clock, store: Store, told: list[tuple[int, int]]
) -> None:
    topics = Offsets(p0=(0, 0))
    watch = offset_watch(topics, store, told)
    watch.look(())
    assert watch.caught_up
    topics.set(p0=(0, 1))
    clock.now_s += 0.1
    watch.look(())
    assert watch.caught_up  # not looked again so soon
    clock.now_s += 0.2
    watch.look(())
    assert not watch.caught_up


def test_a_broker_that_is_away_for_a_minute_is_waited_for_and_not_longer(
    clock: Clock, store: Store, told: list[tuple[int, int]]
) -> None:
    topics = Offsets(p0=(0, 1))
    watch = offset_watch(topics, store, told)
    watch.look(())
    topics.ranges = None
    clock.now_s += 59
    watch.look(())
    topics.set(p0=(0, 1))
    watch.look(())
    topics.ranges = None
    clock.now_s += 60
    watch.look(())
    clock.now_s += 1
    with pytest.raises(BrokerUnreachable):
        watch.look(())
    assert told == [(0, 1), (0, 1)]


def test_a_halted_partition_is_left_out_of_account(store: Store, told: list[tuple[int, int]]) -> None:
    watch = offset_watch(Offsets(p0=(0, 3), p1=(2, 2)), store, told)
    watch.look({0})
    assert told == [(0, 0)]
    assert watch.caught_up


def test_a_last_look_is_taken_at_once_unless_the_broker_is_away(
    clock: Clock, store: Store, applier: Applier, told: list[tuple[int, int]]
) -> None:
    topics = Offsets(p0=(0, 1))
    watch = offset_watch(topics, store, told)
    watch.look(())
    applier.apply_owned([record_at(0, 0, state_event())], store.claim([0], "worker 0"))
    watch.look_once_more(())
    assert watch.caught_up
    assert told == [(0, 1), (1, 1)]
    topics.set(p0=(0, 2))
    clock.now_s += 1
    watch.look(())
    topics.ranges = None
    clock.now_s += 1
    watch.look(())
    watch.look_once_more(())
    assert not watch.caught_up


def test_partitions_that_are_added_while_the_run_goes_on_are_seen(
    clock: Clock, store: Store, told: list[tuple[int, int]]
) -> None:
    topics = Offsets(p0=(0, 0))
    watch = offset_watch(topics, store, told)
    topics.topic = Topic("shipments", "id-1", 5)
    watch.look(())
    assert watch.topic.partitions == 2
    clock.now_s += 2
    watch.look(())
    assert watch.topic.partitions == 5


def test_a_topic_made_anew_while_the_run_goes_on_ends_it(
    clock: Clock, store: Store, told: list[tuple[int, int]]
) -> None:
    topics = Offsets(p0=(0, 0))
    watch = offset_watch(topics, store, told)
    topics.topic = Topic("shipments", "id-2", 2)
    clock.now_s += 2
    with pytest.raises(OtherSource, match="deleted and made anew"):
        watch.look(())


class ReadTopic:
    """Stands for `read_records`: the records of one topic, and which ranges were asked for."""

    def __init__(self, *records: Record) -> None:
        self.records = list(records)
        self.asked: list[dict[int, tuple[int, int]]] = []
        self.away = False

    def __call__(
        self, _connection: Connection, _topic: Topic, ranges: Mapping[int, OffsetRange]
    ) -> Iterator[Record]:
        self.asked.append({partition: (here.low, here.high) for partition, here in ranges.items()})
        for record in self.records:
            here = ranges[record.partition]
            if here.low <= record.offset < here.high:
                yield record
        if self.away:
            raise BrokerUnreachable("localhost:1", "gone")


@pytest.fixture
def topic_read(monkeypatch: pytest.MonkeyPatch) -> ReadTopic:
    made = ReadTopic()
    monkeypatch.setattr("consumer.watch.read_records", made)
    return made


def record_watch(topics: Offsets, store: Store, told: list[tuple[int, int]]) -> RecordWatch:
    def progressed(done: int, total: int) -> None:
        told.append((done, total))

    return RecordWatch(NOWHERE, cast("Topics", topics), TOPIC, store, progressed)


def test_in_share_dispatch_records_are_counted_and_holes_are_not(
    clock: Clock, store: Store, applier: Applier, told: list[tuple[int, int]], topic_read: ReadTopic
) -> None:
    records = [record_at(0, 0, state_event(0)), record_at(0, 4), record_at(1, 7, state_event(1))]
    topic_read.records = records
    watch = record_watch(Offsets(p0=(0, 6), p1=(5, 9)), store, told)
    applier.apply_shared(records[1])
    watch.look(())
    assert not watch.caught_up
    for record in records:
        applier.apply_shared(record)
    clock.now_s += 1
    watch.look(())
    assert watch.caught_up
    assert told[-1] == (3, 3)


def test_a_record_done_before_the_one_in_front_of_it_leaves_the_run_open(
    store: Store, applier: Applier, told: list[tuple[int, int]], topic_read: ReadTopic
) -> None:
    topic_read.records = [record_at(0, offset, state_event(offset)) for offset in range(3)]
    for record in topic_read.records[1:]:
        applier.apply_shared(record)
    watch = record_watch(Offsets(p0=(0, 3)), store, told)
    watch.look(())
    assert not watch.caught_up
    assert watch.records_left() > 0
    applier.apply_shared(topic_read.records[0])
    assert watch.records_left() == 0


def test_what_the_topic_has_long_deleted_does_not_stand_for_what_is_still_to_do(
    store: Store, applier: Applier, told: list[tuple[int, int]], topic_read: ReadTopic
) -> None:
    for offset in range(5):
        applier.apply_shared(record_at(0, offset, state_event(offset)))
    topic_read.records = [record_at(0, 5, state_event(5))]
    watch = record_watch(Offsets(p0=(5, 6)), store, told)
    watch.look(())
    assert not watch.caught_up
    assert watch.records_left() == 1


def test_each_record_is_read_once_even_when_the_broker_went_away_in_the_middle(
    clock: Clock, store: Store, applier: Applier, told: list[tuple[int, int]], topic_read: ReadTopic
) -> None:
    topics = Offsets(p0=(0, 2))
    topic_read.records = [record_at(0, offset, state_event(offset)) for offset in range(3)]
    watch = record_watch(topics, store, told)
    topic_read.away = True
    watch.look(())
    topic_read.away = False
    watch.look(())
    topics.set(p0=(0, 3))
    clock.now_s += 1
    watch.look(())
    assert topic_read.asked == [{0: (0, 2)}, {0: (0, 2)}, {0: (2, 3)}]
    for record in topic_read.records:
        applier.apply_shared(record)
    clock.now_s += 1
    watch.look(())
    assert told[-1] == (3, 3)


def test_the_watch_fits_the_dispatch(store: Store) -> None:
    topics = cast("Topics", Offsets())
    kinds = [
        type(watch_for(dispatch, NOWHERE, topics, TOPIC, store, lambda _done, _total: None))
        for dispatch in (Dispatch.GROUP, Dispatch.SHARE)
    ]
    assert kinds == [OffsetWatch, RecordWatch]
