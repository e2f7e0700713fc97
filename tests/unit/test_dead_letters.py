"""Dead letters inside the apply: parking a key, retrying a record, and what of it is one transaction."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from observations import record_at
from streams import state_event

from lanes.bad_records import OnBadRecord
from lanes.errors import BadEvent
from lanes.event import encode
from lanes.record import Record
from state.applying import Applier
from state.errors import NoDeadLetter, StaleOwner
from state.reading import Reading
from state.store import Store


class Desk:
    """One database whose run treats bad records by one policy."""

    def __init__(self, path: Path, policy: OnBadRecord) -> None:
        self.path = path
        self.store = Store.open(path, "shipments", "id-1")
        run = self.store.start_run(1, version_check=False)
        self.applier = Applier(self.store, run, 0, version_check=False, on_bad_record=policy)
        self.claims = self.store.claim([0, 1], "worker 0")

    def apply(self, *records: Record) -> None:
        self.claims = self.applier.apply_owned(records, self.claims)

    def applied(self) -> list[tuple[int, int]]:
        with Reading(self.path) as reading:
            return [(row.partition, row.offset) for row in reading.history()]

    def kept(self) -> list[tuple[int, int, bool]]:
        """Partition, offset and whether it is parked, of the dead letters that are not applied."""
        with Reading(self.path) as reading:
            letters = list(reading.dead_letters())
        return [(x.partition, x.offset, bool(x.parked)) for x in letters if x.resolved_us is None]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "states.db", OnBadRecord.PARK_KEY)
    yield made
    made.store.close()


@pytest.fixture
def skipping(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "skipping.db", OnBadRecord.SKIP)
    yield made
    made.store.close()


def event_at(offset: int, key: str, *, version: int = 1, partition: int = 0) -> Record:
    return record_at(partition, offset, state_event(offset, shipment=key, version=version))


def bad_at(offset: int, key: str | None, partition: int = 0) -> Record:
    return record_at(partition, offset, key=key)


MENDED = encode(state_event(0, shipment="A", version=1))


def test_later_records_of_a_bad_ones_key_are_parked_and_other_keys_go_on(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"), event_at(1, "A"), event_at(2, "B"), event_at(3, "A"))
    assert desk.applied() == [(0, 2)]
    assert desk.kept() == [(0, 0, False), (0, 1, True), (0, 3, True)]
    assert desk.claims[0].next_offset == 4


def test_records_before_the_bad_one_are_applied(desk: Desk) -> None:
    desk.apply(event_at(0, "A"), bad_at(1, "A"), event_at(2, "A"))
    assert desk.applied() == [(0, 0)]


def test_a_key_stays_parked_in_later_transactions_and_for_later_owners(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"))
    desk.apply(event_at(1, "A"))
    desk.claims = desk.store.claim([0], "worker 1")
    desk.apply(event_at(2, "A"))
    assert desk.applied() == []
    assert desk.kept() == [(0, 0, False), (0, 1, True), (0, 2, True)]


def test_a_key_is_parked_in_its_partition_only(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"), event_at(0, "A", partition=1))
    assert desk.applied() == [(1, 0)]


def test_a_bad_record_without_a_key_parks_nothing(desk: Desk) -> None:
    no_key = record_at(0, 1, state_event(1, shipment="A"), key=None)
    desk.apply(bad_at(0, None), no_key, event_at(2, "A"))
    assert desk.applied() == [(0, 1), (0, 2)]


def test_by_skipping_later_records_of_the_key_are_applied_past_the_gap(skipping: Desk) -> None:
    skipping.apply(bad_at(0, "A"), event_at(1, "A"))
    assert skipping.applied() == [(0, 1)]
    assert skipping.kept() == [(0, 0, False)]


def test_a_refused_write_parks_nothing(desk: Desk) -> None:
    desk.store.claim([0], "rival")
    with pytest.raises(StaleOwner):
        desk.apply(bad_at(0, "A"), event_at(1, "A"))
    assert (desk.applied(), desk.kept()) == ([], [])


def test_a_retry_applies_the_mended_record_and_in_order_what_is_parked_behind_it(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"), event_at(1, "A", version=2), event_at(2, "B"), event_at(3, "A", version=4))
    assert desk.applier.retry(0, 0, MENDED) == ([0, 1, 3], [])
    assert desk.applied() == [(0, 2), (0, 0), (0, 1), (0, 3)]
    assert desk.kept() == []
    with Reading(desk.path) as reading:
        assert [row.backward for row in reading.history()] == [False] * 4
        assert {row.tracking_no: row.state for row in reading.shipments()}["A"] == "delivered"


def test_after_a_retry_the_key_goes_on(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"))
    desk.applier.retry(0, 0, MENDED)
    desk.apply(event_at(1, "A", version=2))
    assert desk.applied() == [(0, 0), (0, 1)]


def test_a_retry_goes_as_far_as_the_next_bad_record_of_the_key(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"), event_at(1, "A"), bad_at(2, "A"), event_at(3, "A"))
    desk.applier.retry(0, 0, MENDED)
    assert desk.applied() == [(0, 0), (0, 1)]
    assert desk.kept() == [(0, 2, False), (0, 3, True)]


@pytest.mark.parametrize("offset", [1, 2])
def test_nothing_parked_is_retried_before_what_it_waits_behind(desk: Desk, offset: int) -> None:
    desk.apply(bad_at(0, "A"), event_at(1, "A"), bad_at(2, "A"))
    with pytest.raises(NoDeadLetter, match="waits behind offset 0: retry that one first"):
        desk.applier.retry(0, offset, MENDED)
    assert desk.applied() == []


def test_by_skipping_bad_records_of_one_key_are_retried_in_any_order(skipping: Desk) -> None:
    skipping.apply(bad_at(0, "A"), bad_at(1, "A"))
    skipping.applier.retry(0, 1, MENDED)
    assert skipping.applied() == [(0, 1)]
    assert skipping.kept() == [(0, 0, False)]


def test_a_retry_with_a_value_that_is_still_no_event_changes_nothing(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"), event_at(1, "A"))
    for value in (None, b"[]"):
        with pytest.raises(BadEvent):
            desk.applier.retry(0, 0, value)
    assert desk.applied() == []
    assert desk.kept() == [(0, 0, False), (0, 1, True)]


def test_a_record_that_is_no_dead_letter_or_no_more_is_not_retried(desk: Desk) -> None:
    desk.apply(event_at(0, "B"), bad_at(1, "A"))
    with pytest.raises(NoDeadLetter, match="partition 0 offset 0 does not exist"):
        desk.applier.retry(0, 0, MENDED)
    desk.applier.retry(0, 1, MENDED)
    with pytest.raises(NoDeadLetter, match="partition 0 offset 1 was applied already"):
        desk.applier.retry(0, 1, MENDED)
    assert desk.applied() == [(0, 0), (0, 1)]


def test_a_dead_letter_keeps_its_bytes_when_its_mended_value_is_applied(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"))
    desk.applier.retry(0, 0, MENDED)
    with Reading(desk.path) as reading:
        (letter,) = reading.dead_letters()
    assert letter.value == b"{not json"
    assert letter.resolved_us is not None


def test_what_waits_to_be_sent_to_the_dead_letter_topic_is_told_until_it_is_acknowledged(desk: Desk) -> None:
    desk.apply(bad_at(0, "A"), bad_at(1, None), bad_at(2, "A"), bad_at(5, "A", partition=1))
    assert [letter.offset for letter in desk.store.unsent_dead_letters(0, most=2)] == [0, 1]
    desk.store.mark_sent(0, 1)
    assert [letter.offset for letter in desk.store.unsent_dead_letters(0, most=9)] == [0, 2]
    (other,) = desk.store.unsent_dead_letters(1, most=9)
    assert (other.partition, other.offset, other.key, other.value) == (1, 5, b"A", b"{not json")


def test_a_retry_past_which_later_events_went_never_writes_backwards(skipping: Desk) -> None:
    skipping.apply(bad_at(0, "A"), event_at(1, "A", version=4))
    assert skipping.applier.retry(0, 0, MENDED) == ([0], [0])
    with Reading(skipping.path) as reading:
        assert [(row.offset, row.backward, row.skipped) for row in reading.history()] == [
            (1, False, False),
            (0, True, True),
        ]
        assert {row.tracking_no: row.state for row in reading.shipments()} == {"A": "delivered"}


def test_a_parked_chain_ends_as_the_stream_does_even_where_that_goes_back(desk: Desk) -> None:
    desk.apply(
        event_at(0, "A", version=3), bad_at(1, "A"), event_at(2, "A", version=4), event_at(3, "A", version=2)
    )
    assert desk.applier.retry(0, 1, encode(state_event(1, shipment="A", version=3))) == ([1, 2, 3], [])
    with Reading(desk.path) as reading:
        assert {row.tracking_no: row.state for row in reading.shipments()} == {"A": "transferred"}
