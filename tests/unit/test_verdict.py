"""Do the invariants hold? One run that keeps each, and one that breaks it."""

import pytest
from observations import Scene
from streams import state_event

from analysis.findings import find
from analysis.observation import Observation
from analysis.verdict import Holds, Verdict, judge_findings, keeps_order
from broker.topics import OffsetRange
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice


def verdict_on(seen: Observation) -> Verdict:
    return judge_findings(find(seen))


def orderly(**scene: object) -> Scene:
    """Two shipments with lanes of their own, applied in order."""
    made = Scene(partitions=2, **scene)  # type: ignore[arg-type]
    made.write_and_apply(state_event(0, shipment="A", version=1), partition=0)
    made.write_and_apply(state_event(1, shipment="B", version=1), partition=1)
    made.write_and_apply(state_event(2, shipment="A", version=2), partition=0)
    return made


def backward(key: str | None, **scene: object) -> Scene:
    """One shipment whose first event is applied after its second, and that keeps its wrong state."""
    made = Scene(partitions=2, **scene)  # type: ignore[arg-type]
    made.write_and_apply(state_event(1, version=4), partition=1, key=key)
    made.write_and_apply(state_event(0, version=1), partition=0, key=key)
    return made


def test_all_invariants_hold_on_an_orderly_run() -> None:
    assert verdict_on(orderly().seen()) == Verdict(Holds.TRUE, [])


def test_an_empty_topic_breaks_nothing() -> None:
    assert verdict_on(Scene().seen()).holds is Holds.TRUE


def test_a_lost_record_breaks_the_verdict() -> None:
    scene = orderly()
    for _ in range(2):
        scene.write(state_event(3, shipment="B", version=3), partition=1)
    scene.next_offset[1] = 3
    assert verdict_on(scene.seen()) == Verdict(
        Holds.FALSE, ["2 records were passed without a trace, first partition 1 offset 1"]
    )


def test_holes_between_offsets_break_nothing() -> None:
    scene = Scene()
    for order, offset in enumerate((0, 1, 5)):
        scene.write_and_apply(state_event(order), offset=offset)
    assert verdict_on(scene.seen(ranges={0: OffsetRange(0, 7)})).holds is Holds.TRUE


def test_a_record_applied_and_a_dead_letter_breaks_the_verdict() -> None:
    scene = orderly()
    scene.keep(scene.records[1])
    assert verdict_on(scene.seen()) == Verdict(
        Holds.FALSE, ["1 records are applied and dead letters, first partition 1 offset 0"]
    )


def test_a_dead_letter_alone_breaks_nothing() -> None:
    scene = orderly()
    scene.keep(scene.write())
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def test_a_row_that_its_history_does_not_give_breaks_the_verdict() -> None:
    scene = orderly()
    assert verdict_on(scene.seen(shipments=[])) == Verdict(
        Holds.FALSE, ["rows differ from their history: A, B"]
    )


def test_more_than_ten_names_are_counted() -> None:
    scene = Scene()
    for order in range(12):
        scene.write_and_apply(state_event(order, shipment=f"S{order:02}"))
    (reason,) = verdict_on(scene.seen(shipments=[])).reasons
    assert reason.endswith(": S00, S01, S02, S03, S04, S05, S06, S07, S08, S09 and 2 more")


def test_a_backward_write_in_lanes_by_tracking_number_breaks_the_verdict() -> None:
    assert verdict_on(backward("TR-1").seen()) == Verdict(
        Holds.FALSE,
        [
            "1 backward writes in lanes by tracking-no, first TR-1 to accepted at partition 0 offset 0",
            "wrong final states: TR-1",
        ],
    )


def test_a_backward_write_in_lanes_by_a_line_that_the_shipment_never_changes_breaks_the_verdict() -> None:
    assert verdict_on(backward("L1").seen()).holds is Holds.FALSE


@pytest.mark.parametrize("key", [None, "anything"], ids=["no key", "mixed keys"])
def test_a_backward_write_where_no_key_promises_an_order_breaks_nothing(key: str | None) -> None:
    assert verdict_on(backward(key).seen()).holds is Holds.TRUE


@pytest.mark.parametrize(
    ("gate", "holds"),
    [(KeyChoice.NONE, Holds.TRUE), (KeyChoice.TRACKING_NO, Holds.FALSE), (KeyChoice.LINE, Holds.FALSE)],
)
def test_in_share_dispatch_only_a_gate_promises_an_order(gate: KeyChoice, holds: Holds) -> None:
    assert verdict_on(backward("TR-1", dispatch=Dispatch.SHARE, gate=gate).seen()).holds is holds


def test_a_fall_of_the_stream_itself_breaks_nothing_because_no_key_prevents_it() -> None:
    scene = Scene()
    for order, version in enumerate((2, 3, 2, 4)):
        scene.write_and_apply(state_event(order, version=version))
    assert len(find(scene.seen()).backward) == 1
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def test_a_backward_write_beyond_those_of_the_stream_breaks_the_verdict() -> None:
    scene = Scene(partitions=2)
    for order, version, partition in ((0, 2, 0), (2, 3, 0), (1, 1, 1), (3, 2, 0), (4, 1, 0)):
        scene.write_and_apply(state_event(order, version=version), partition)
    assert len(find(scene.seen()).serial.backward) == 3
    scene.write_and_apply(state_event(6, version=4))
    scene.write_and_apply(state_event(5, version=3))
    (first, *_) = verdict_on(scene.seen()).reasons
    assert first.startswith("1 backward writes in lanes by tracking-no")


def test_a_wrong_final_state_that_the_stream_has_with_the_version_check_breaks_nothing() -> None:
    """Returned after delivery: the check refuses it, for any arrangement."""
    scene = Scene(version_check=True)
    scene.write_and_apply(state_event(0, version=4))
    scene.write_and_apply(state_event(1, version=2))
    assert [wrong.tracking_no for wrong in find(scene.seen()).wrong] == ["TR-1"]
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def test_a_line_that_shipments_change_promises_no_order() -> None:
    scene = Scene(partitions=2)
    scene.write_and_apply(state_event(1, version=4, line="L2"), partition=1, key="L2")
    scene.write_and_apply(state_event(0, version=1, line="L1"), partition=0, key="L1")
    found = find(scene.seen())
    assert found.key == "line"
    assert not keeps_order(found)
    assert judge_findings(found).holds is Holds.TRUE


def test_while_records_are_not_yet_applied_the_verdict_is_unknown() -> None:
    scene = orderly()
    scene.write(state_event(3, shipment="B", version=3), partition=1)
    assert verdict_on(scene.seen()) == Verdict(Holds.UNKNOWN, ["1 records are not yet applied"])


def test_what_is_broken_already_is_false_though_records_are_not_yet_applied() -> None:
    scene = backward("TR-1")
    scene.write(state_event(7, version=4))
    verdict = verdict_on(scene.seen())
    assert verdict.holds is Holds.FALSE
    assert verdict.reasons == [
        "1 backward writes in lanes by tracking-no, first TR-1 to accepted at partition 0 offset 0"
    ]


def test_repeated_orders_that_leave_the_last_state_open_are_unknown() -> None:
    scene = Scene()
    scene.write_and_apply(state_event(5, version=2))
    scene.write_and_apply(state_event(5, version=3))
    assert verdict_on(scene.seen()) == Verdict(
        Holds.UNKNOWN, ["arrival orders used twice leave the last state open: TR-1"]
    )


def test_repeated_orders_that_decide_the_last_state_are_fine() -> None:
    scene = Scene()
    for order, version in ((5, 2), (5, 2), (6, 3)):
        scene.write_and_apply(state_event(order, version=version))
    assert verdict_on(scene.seen()).holds is Holds.TRUE


@pytest.mark.parametrize(
    ("low", "high", "reason"),
    [
        (3, 9, "begins at 3: records were deleted before they were applied"),
        (0, 1, "ends at 1: it is not the topic that was read"),
    ],
)
def test_an_offset_that_the_topic_no_longer_has_breaks_the_verdict(low: int, high: int, reason: str) -> None:
    seen = orderly().seen(records=[], ranges={0: OffsetRange(low, high), 1: OffsetRange(0, 1)})
    assert verdict_on(seen) == Verdict(
        Holds.FALSE, [f"partition 0: the database goes on at offset 2, the topic {reason}"]
    )


def test_a_topic_that_begins_and_ends_where_the_database_goes_on_is_fine() -> None:
    seen = orderly().seen(records=[], ranges={0: OffsetRange(2, 2), 1: OffsetRange(1, 1)})
    assert verdict_on(seen).holds is Holds.TRUE
