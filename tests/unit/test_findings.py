"""From an observation to findings: each invariant once kept and once broken, and what keys and lanes show."""

import pytest
from observations import Scene, record_at
from streams import state_event

from analysis.findings import WrongFinal, find, key_of
from broker.topics import OffsetRange
from lanes.dispatch import Dispatch
from lanes.event import HistoryEvent
from lanes.key import KeyChoice
from state.records import Progress, ShipmentRow


def scan(order: int, *, shipment: str = "TR-1", line: str = "L1") -> HistoryEvent:
    return HistoryEvent(tracking_no=shipment, line=line, duration=1, order=order, scan="gate")


def orderly() -> Scene:
    """Two shipments in two partitions, all applied in order: nothing to find."""
    scene = Scene(partitions=2)
    scene.write_and_apply(state_event(0, shipment="A", version=1), partition=0)
    scene.write_and_apply(state_event(1, shipment="B", version=1, line="L2", duration=3), partition=1)
    scene.write_and_apply(state_event(2, shipment="A", version=2, duration=2), partition=0)
    return scene


def test_an_orderly_run_shows_nothing_wrong() -> None:
    found = find(orderly().seen())
    assert (found.records, found.in_history, found.applied, found.skipped) == (3, 3, 3, 0)
    assert (found.dead_lettered, found.not_yet_applied, found.repeated_orders) == (0, 0, 0)
    assert (found.lost, found.twice, found.fold_differs) == ([], [], [])
    assert (found.backward, found.wrong, found.undecided) == ([], [], [])
    assert (found.skipped_steps, found.reasons) == ({}, {})
    assert (found.serial.backward, found.serial.wrong) == ([], [])


def test_a_topic_that_nothing_was_written_to_shows_nothing() -> None:
    found = find(Scene(partitions=3).seen(runs=[]))
    assert (found.records, found.partition_lanes, found.busiest_key) == (0, 0, None)
    assert (found.busiest_lane.partition, found.busiest_lane.ticks) == (0, 0)


def test_each_partition_has_its_offsets_records_and_load() -> None:
    scene = orderly()
    scene.write(state_event(3, shipment="B", version=2, duration=4), partition=1)
    seen = scene.seen(committed={0: 1}, ranges={0: OffsetRange(0, 2), 1: OffsetRange(0, 5)})
    first, second = find(seen).partitions
    assert (first.low, first.high, first.committed, first.next_offset) == (0, 2, 1, 2)
    assert (second.low, second.high, second.committed, second.next_offset) == (0, 5, None, 1)
    assert (first.records, first.not_yet_applied, first.ticks) == (2, 0, 3)
    assert (second.records, second.not_yet_applied, second.ticks) == (2, 1, 7)
    assert find(seen).busiest_lane.partition == 1


def test_records_before_the_databases_offset_that_left_no_trace_are_lost() -> None:
    scene = orderly()
    for order in (3, 4):
        scene.write(state_event(order, shipment="B", version=3), partition=1)
    scene.next_offset[1] = 2
    found = find(scene.seen())
    assert found.lost == [(1, 1)]
    assert found.not_yet_applied == 1


def test_records_behind_the_databases_offset_are_not_yet_applied_and_not_lost() -> None:
    scene = orderly()
    scene.write(state_event(3, shipment="B", version=3), partition=1)
    found = find(scene.seen())
    assert (found.lost, found.not_yet_applied) == ([], 1)


def test_a_partition_that_nobody_owned_yet_has_lost_nothing() -> None:
    scene = Scene(partitions=2)
    scene.write(state_event(0), partition=0)
    scene.write(state_event(1), partition=1)
    unread = {1: Progress(1, next_offset=None, owner_epoch=1, owner="worker 0", end_seen=-1)}
    found = find(scene.seen(progress=unread))
    assert (found.lost, found.not_yet_applied) == ([], 2)


def test_holes_between_offsets_are_no_loss() -> None:
    """2 committed, a marker, an aborted one, its marker, a plain one: offsets 0, 1 and 5 of 0 to 6."""
    scene = Scene()
    for order, offset in enumerate((0, 1, 5)):
        scene.write_and_apply(state_event(order), offset=offset)
    found = find(scene.seen(ranges={0: OffsetRange(0, 6)}))
    assert (found.records, found.lost, found.not_yet_applied) == (3, [], 0)


def test_what_compaction_or_retention_took_after_it_was_applied_is_no_loss() -> None:
    scene = orderly()
    seen = scene.seen()
    found = find(scene.seen(records=seen.records[1:], ranges={0: OffsetRange(1, 2), 1: OffsetRange(0, 1)}))
    assert (found.records, found.in_history, found.lost) == (2, 3, [])


def test_in_share_dispatch_an_open_record_before_a_done_one_is_not_lost() -> None:
    scene = Scene(dispatch=Dispatch.SHARE)
    scene.write(state_event(0))
    scene.write_and_apply(state_event(1, shipment="B"))
    found = find(scene.seen())
    assert (found.lost, found.not_yet_applied) == ([], 1)


def test_a_position_both_in_the_history_and_among_the_dead_letters_is_done_twice() -> None:
    scene = orderly()
    scene.keep(scene.records[1])
    assert find(scene.seen()).twice == [(1, 0)]


def test_dead_letters_are_counted_by_reason_and_are_no_loss() -> None:
    scene = orderly()
    for value in (b"", b"{not json", b""):
        scene.keep(scene.write(value=value))
    found = find(scene.seen())
    assert (found.dead_lettered, found.lost, found.not_yet_applied) == (3, [], 0)
    assert next(iter(found.reasons.items())) == ("empty value: 0 bytes", 2)
    assert sorted(found.reasons.values()) == [1, 2]


@pytest.mark.parametrize(
    "row",
    [
        ShipmentRow("A", "L1", "delivered", 4, 2),
        ShipmentRow("A", "L1", "transferred", 2, 0),
        None,
        ShipmentRow("C", "L1", "accepted", 1, 9),
    ],
    ids=["other state", "other event", "row missing", "row without history"],
)
def test_a_row_that_its_history_does_not_give_is_named(row: ShipmentRow | None) -> None:
    scene = orderly()
    name = row.tracking_no if row else "A"
    rows = [scene.rows["B"], *([row] if row else []), *([scene.rows["A"]] if name == "C" else [])]
    assert find(scene.seen(shipments=rows)).fold_differs == [name]


def test_a_skipped_event_and_a_scan_are_not_what_a_row_should_be() -> None:
    scene = Scene(version_check=True)
    scene.write_and_apply(state_event(1, version=3))
    scene.write_and_apply(state_event(0, version=2))
    scene.write_and_apply(scan(2))
    assert find(scene.seen()).fold_differs == []


def test_a_backward_write_and_the_wrong_final_state_that_it_leaves_are_found() -> None:
    scene = Scene(partitions=2)
    scene.write_and_apply(state_event(1, version=4), partition=1)
    scene.write_and_apply(state_event(0, version=1), partition=0)
    found = find(scene.seen())
    assert [(row.tracking_no, row.state) for row in found.backward] == [("TR-1", "accepted")]
    assert found.wrong == [WrongFinal("TR-1", state="accepted", expected="delivered")]
    assert found.serial.backward == []


def test_a_backward_write_that_a_later_event_mends_leaves_no_wrong_state() -> None:
    scene = Scene(partitions=2)
    for order, version, partition in ((1, 2, 1), (0, 1, 0), (2, 3, 1)):
        scene.write_and_apply(state_event(order, version=version), partition=partition)
    found = find(scene.seen())
    assert len(found.backward) == 1
    assert found.wrong == []


def test_a_stream_that_falls_by_itself_falls_for_one_worker_in_arrival_order_too() -> None:
    scene = Scene()
    for order, version in enumerate((3, 1)):
        scene.write_and_apply(state_event(order, version=version))
    found = find(scene.seen())
    assert len(found.backward) == 1
    assert [event.order for event in found.serial.backward] == [1]
    assert found.wrong == []


def test_only_what_the_database_has_passed_says_what_a_row_should_be() -> None:
    scene = orderly()
    scene.write(state_event(3, shipment="A", version=4))
    found = find(scene.seen())
    assert found.wrong == []
    assert found.not_yet_applied == 1


def test_with_the_version_check_skipped_steps_are_named_by_shipment() -> None:
    scene = Scene(version_check=True)
    for order, shipment, version in ((3, "B", 4), (1, "B", 2), (2, "A", 3), (0, "A", 1), (4, "B", 1)):
        scene.write_and_apply(state_event(order, shipment=shipment, version=version))
    found = find(scene.seen())
    assert found.skipped_steps == {"A": ["accepted"], "B": ["transferred", "accepted"]}
    assert (found.in_history, found.applied, found.skipped, len(found.backward)) == (5, 2, 3, 3)
    assert list(found.skipped_steps) == ["A", "B"]


def test_arrival_orders_used_twice_are_counted_and_leave_a_shipment_undecided_where_states_differ() -> None:
    scene = Scene()
    for order, shipment, version in ((0, "A", 1), (0, "B", 1), (5, "C", 2), (5, "C", 3), (6, "D", 4)):
        scene.write_and_apply(state_event(order, shipment=shipment, version=version))
    found = find(scene.seen())
    assert found.repeated_orders == 2
    assert found.undecided == ["C"]
    assert found.wrong == []


def test_an_order_used_twice_before_the_last_decides_nothing() -> None:
    scene = Scene()
    for order, version in ((0, 1), (0, 2), (1, 3)):
        scene.write_and_apply(state_event(order, version=version))
    assert find(scene.seen()).undecided == []


def test_a_row_in_neither_of_two_undecided_states_is_wrong() -> None:
    scene = Scene(partitions=2)
    scene.write_and_apply(state_event(5, version=3), partition=0)
    scene.write_and_apply(state_event(5, version=4), partition=0)
    scene.write_and_apply(state_event(1, version=1), partition=1)
    assert find(scene.seen()).wrong == [WrongFinal("TR-1", "accepted", "delivered or outForDelivery")]


def test_a_scan_is_neither_a_state_nor_an_expected_one() -> None:
    scene = Scene()
    scene.write_and_apply(state_event(0, version=4))
    scene.write_and_apply(scan(1))
    found = find(scene.seen())
    assert (found.wrong, found.backward, found.in_history) == ([], [], 2)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (("A", "B"), "tracking-no"),
        (("L1", "L2"), "line"),
        ((None, None), "none"),
        (("A", None), "mixed"),
        (("A", "L2"), "mixed"),
        (("A", ""), "mixed"),
        (("a", "B"), "mixed"),
        (("", ""), "mixed"),
    ],
)
def test_the_key_is_what_all_records_show(keys: tuple[str | None, str | None], said: str) -> None:
    events = (state_event(0, shipment="A", line="L1"), state_event(1, shipment="B", line="L2"))
    records = [
        record_at(0, i, event, key=key) for i, (event, key) in enumerate(zip(events, keys, strict=True))
    ]
    assert key_of(records) == said


def test_a_topic_without_events_is_keyed_by_nothing() -> None:
    assert key_of([]) == "none"


def test_records_that_are_no_state_event_say_nothing_about_the_key() -> None:
    records = [
        record_at(0, 0, state_event(0), key="TR-1"),
        record_at(0, 1, key="other"),
        record_at(0, 2, scan(1), key=None),
    ]
    assert key_of(records) == "tracking-no"


def test_where_two_keys_fit_every_event_the_finer_one_counts() -> None:
    assert key_of([record_at(0, 0, state_event(0, shipment="X", line="X"))]) == "tracking-no"


def test_a_convoy_is_selective_when_no_scan_has_a_key_and_every_state_has_one() -> None:
    def selective(state_key: str | None, scan_key: str | None) -> bool:
        scene = Scene()
        scene.write_and_apply(state_event(0), key=state_key)
        scene.write_and_apply(scan(1), key=scan_key)
        return find(scene.seen()).selective

    assert selective("TR-1", None)
    assert not selective("TR-1", "TR-1")
    assert not selective(None, None)
    assert not find(orderly().seen()).selective


def test_in_group_dispatch_lanes_are_by_the_key_and_in_share_dispatch_by_the_gate() -> None:
    lane_keys = []
    for dispatch in Dispatch:
        scene = Scene(dispatch=dispatch, gate=KeyChoice.LINE)
        scene.write_and_apply(state_event(0))
        lane_keys.append(find(scene.seen()).lane_key)
    assert lane_keys == ["tracking-no", "line"]


def test_key_lanes_that_meet_in_one_partition_lane_are_a_collision() -> None:
    scene = Scene(partitions=3)
    for order, (line, partition) in enumerate((("L1", 1), ("L2", 1), ("L3", 2), ("L1", 1))):
        scene.write_and_apply(state_event(order, line=line, duration=order + 1), partition, key=line)
    found = find(scene.seen())
    assert (found.lanes.key_lanes, found.partition_lanes) == (3, 2)
    assert found.lanes.collisions == {1: ["L1", "L2"]}
    assert found.busiest_key == ("L1", 5)
    assert found.busiest_lane.ticks == 7


def test_no_key_and_an_empty_key_are_counted_apart() -> None:
    scene = Scene()
    for order, key in enumerate((None, "", None, "TR-1")):
        scene.write_and_apply(state_event(order), key=key)
    found = find(scene.seen())
    assert (found.without_key, found.empty_key, found.lanes.key_lanes) == (2, 1, 2)


def test_keys_that_look_alike_are_named_as_different_lanes() -> None:
    scene = Scene()
    for order, key in enumerate(("TR-4821", "TR-4821 ", "tr-4821", "TR-9007")):
        scene.write_and_apply(state_event(order, shipment=key))
    assert find(scene.seen()).look_alikes == [["TR-4821", "TR-4821 ", "tr-4821"]]


def test_entities_in_more_than_one_partition_are_named_by_key_and_by_shipment() -> None:
    scene = Scene(partitions=5)
    for order, (shipment, partition) in enumerate((("A", 0), ("A", 4), ("B", 1))):
        scene.write_and_apply(state_event(order, shipment=shipment), partition)
    found = find(scene.seen())
    assert found.split_shipments == {"A": [0, 4]}
    assert found.lanes.split == {"A": [0, 4]}


def test_a_shipment_that_changes_its_line_is_named_with_its_lines() -> None:
    scene = Scene()
    for order, line in enumerate(("L2", "L1", "L2")):
        scene.write_and_apply(state_event(order, line=line))
    scene.write_and_apply(state_event(3, shipment="B", line="L1"))
    assert find(scene.seen()).line_changes == {"TR-1": ["L1", "L2"]}
