"""The writing side of the database: what a file follows, its runs, and who owns which partition."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from observations import record_at
from streams import state_event

from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from state.applying import Applier
from state.database import open_database
from state.errors import OtherDispatch, OtherSource
from state.reading import Reading
from state.records import Claim, Progress, Run, Totals
from state.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "states.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store.open(path, "shipments", "id-1", "workers")
    yield opened
    opened.close()


def refusal(path: Path, topic: str, topic_id: str, group: str | None = None) -> OtherSource:
    with pytest.raises(OtherSource) as refused:
        Store.open(path, topic, topic_id, group)
    return refused.value


def test_a_new_file_follows_the_topic_and_the_group_that_it_was_opened_with(store: Store) -> None:
    source = store.source
    assert (source.topic, source.topic_id, source.group_id) == ("shipments", "id-1", "workers")


def test_two_new_files_get_groups_of_their_own_so_that_they_never_share_out_one_topic(tmp_path: Path) -> None:
    groups = []
    for name in ("one.db", "two.db"):
        store = Store.open(tmp_path / name, "shipments", "id-1")
        groups.append(store.source.group_id)
        store.close()
    assert [bool(re.fullmatch(r"convoy\.shipments\.[0-9a-f]{8}", group)) for group in groups] == [True, True]
    assert groups[0] != groups[1]


def test_a_file_keeps_its_group_when_it_is_opened_again_without_one(store: Store, path: Path) -> None:
    again = Store.open(path, "shipments", "id-1")
    assert again.source == store.source
    again.close()


def test_another_topic_is_refused_with_both_names_and_what_to_do(store: Store, path: Path) -> None:
    refused = refusal(path, "parcels", "id-1")
    assert str(refused) == f"{path} follows topic {store.source.topic}, not parcels"
    assert refused.hint == "Name another file with --db, or that topic with --topic."
    assert refused.topic == "parcels"


def test_a_topic_made_anew_under_the_same_name_is_refused(store: Store, path: Path) -> None:
    refused = refusal(path, store.source.topic, "id-2")
    assert str(refused) == f"topic shipments was deleted and made anew since {path} was written"
    assert "Name a new file with --db" in refused.hint


def test_another_group_is_refused_because_both_would_bring_every_record(store: Store, path: Path) -> None:
    refused = refusal(path, store.source.topic, "id-1", "others")
    assert str(refused) == f"{path} belongs to consumer group workers, not others"
    assert "Leave --group out" in refused.hint


def test_a_refused_opening_leaves_the_file_to_the_one_that_it_follows(store: Store, path: Path) -> None:
    refusal(path, "parcels", "id-9", "others")
    assert store.claim([0], "worker 0") == {0: Claim(0, epoch=1, next_offset=None)}
    again = Store.open(path, "shipments", "id-1", "workers")
    assert again.source == store.source
    again.close()


def test_a_first_claim_goes_on_at_the_first_record_and_a_later_one_at_the_databases_offset(
    store: Store,
) -> None:
    first = store.claim([0, 1], "worker 0")
    assert first == {0: Claim(0, 1, None), 1: Claim(1, 1, None)}
    applier = Applier(store, store.start_run(1, version_check=False), 0, version_check=False)
    applier.apply_owned([record_at(1, 41, state_event())], first)
    assert store.claim([0, 1], "worker 1") == {0: Claim(0, 2, None), 1: Claim(1, 2, 42)}


def test_a_claim_raises_the_epochs_of_its_own_partitions_only(store: Store) -> None:
    store.claim([0, 1], "worker 0")
    store.claim([1], "worker 1")
    assert store.progress() == [
        Progress(0, next_offset=None, owner_epoch=1, owner="worker 0", end_seen=-1),
        Progress(1, next_offset=None, owner_epoch=2, owner="worker 1", end_seen=-1),
    ]


def test_a_claim_of_no_partition_changes_nothing(store: Store) -> None:
    assert store.claim([], "worker 7") == {}
    assert store.progress() == []


def test_runs_are_numbered_from_one_and_read_back_as_they_were_started(store: Store, path: Path) -> None:
    assert store.start_run(4, version_check=True, dispatch=Dispatch.SHARE) == 1
    shared = store.start_run(
        2,
        version_check=False,
        dispatch=Dispatch.SHARE,
        gate=KeyChoice.LINE,
        selective=True,
        tick_us=100_000,
    )
    assert shared == 2
    with Reading(path) as reading:
        first, second = reading.runs()
    assert first == Run(
        1, first.started_us, 4, True, Dispatch.SHARE, KeyChoice.NONE, False, tick_us=None, zero_us=None
    )
    assert second == Run(
        2, second.started_us, 2, False, Dispatch.SHARE, KeyChoice.LINE, True, tick_us=100_000, zero_us=None
    )
    assert first.started_us <= second.started_us


@pytest.mark.parametrize(
    ("before", "wanted"), [(Dispatch.GROUP, Dispatch.SHARE), (Dispatch.SHARE, Dispatch.GROUP)]
)
def test_a_database_goes_on_only_in_the_dispatch_that_wrote_it(
    store: Store, before: Dispatch, wanted: Dispatch
) -> None:
    store.start_run(1, version_check=False, dispatch=before)
    with pytest.raises(OtherDispatch, match=f"written in {before} dispatch and cannot go on in {wanted}"):
        store.start_run(1, version_check=False, dispatch=wanted)
    assert store.start_run(1, version_check=False, dispatch=before) == 2


def test_tick_zero_is_set_once_and_for_that_run_only(store: Store) -> None:
    runs = [store.start_run(1, version_check=False, tick_us=1000) for _ in range(2)]
    assert store.set_zero(runs[0], 5_000) == 5_000
    assert store.set_zero(runs[0], 9_000) == 5_000
    assert store.set_zero(runs[1], 7_000) == 7_000


def test_an_end_that_the_owner_met_is_noted_in_the_database_and_in_the_claim(store: Store) -> None:
    claim = store.claim([3], "worker 0")[3]
    assert claim.end_noted == -1
    noted = store.note_end(claim, 12)
    assert noted == Claim(3, epoch=1, next_offset=None, end_noted=12)
    assert [p.end_seen for p in store.progress()] == [12]


def test_the_note_of_an_end_by_a_stale_owner_changes_nothing(store: Store) -> None:
    stale = store.claim([0], "worker 0")[0]
    current = store.claim([0], "worker 1")[0]
    store.note_end(stale, 99)
    assert [p.end_seen for p in store.progress()] == [-1]
    store.note_end(current, 5)
    assert [p.end_seen for p in store.progress()] == [5]


def test_a_record_is_done_when_it_is_in_the_history_or_among_the_dead_letters(store: Store) -> None:
    applier = Applier(store, store.start_run(1, version_check=False), 0, version_check=False)
    applier.apply_owned([record_at(0, 5, state_event()), record_at(0, 7)], store.claim([0], "worker 0"))
    assert [store.is_done(0, offset) for offset in (4, 5, 6, 7, 8)] == [False, True, False, True, False]
    assert not store.is_done(1, 5)


def test_totals_count_what_one_run_wrote(store: Store) -> None:
    runs = [store.start_run(1, version_check=check) for check in (False, True)]
    appliers = [
        Applier(store, run, 0, version_check=check) for run, check in zip(runs, (False, True), strict=True)
    ]
    claims = store.claim([0], "worker 0")
    back_and_forth = [
        record_at(0, offset, state_event(offset, version=v)) for offset, v in enumerate((2, 1, 3))
    ]
    claims = appliers[0].apply_owned([*back_and_forth, record_at(0, 3)], claims)
    appliers[1].apply_owned([record_at(0, 4, state_event(4, version=1))], claims)
    assert store.totals(runs[0]) == Totals(in_history=3, backward=1, skipped=0, dead_letters=1, parked=0)
    assert store.totals(runs[1]) == Totals(in_history=1, backward=1, skipped=1, dead_letters=0, parked=0)


def test_a_store_whose_source_was_never_set_is_bound_by_the_next_opening(path: Path) -> None:
    open_database(path, create=True).close()
    store = Store.open(path, "shipments", "id-1", "workers")
    assert store.source.topic_id == "id-1"
    store.close()
