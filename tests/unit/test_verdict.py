"""Do the invariants hold? One run that keeps all of them, and for each one a run that breaks it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from observations import Scene, record_at
from streams import state_event

from analysis.findings import Position, find
from analysis.invariants import INVARIANTS, Evidence, keeps_order
from analysis.observation import Observation
from analysis.verdict import Holds, Verdict, judge_evidence
from broker.topics import OffsetRange
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from state.records import Progress


def verdict_on(seen: Observation, acknowledged: set[Position] | None = None, **how: bool) -> Verdict:
    promised = None if acknowledged is None else frozenset(acknowledged)
    return judge_evidence(Evidence(seen, find(seen), promised), **how)


def broken(verdict: Verdict) -> dict[str, list[str]]:
    """The invariants with something against them."""
    return {name: sentences for name, sentences in verdict.against.items() if sentences}


def orderly() -> Scene:
    """Two shipments with lanes of their own, applied in order."""
    made = Scene(partitions=2)
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
    verdict = verdict_on(orderly().seen(), acknowledged={(0, 0), (0, 1), (1, 0)})
    assert verdict.holds is Holds.TRUE
    assert verdict.reasons == []
    assert set(verdict.against) == set(INVARIANTS)


def test_an_empty_topic_breaks_nothing() -> None:
    assert verdict_on(Scene().seen(runs=[])).holds is Holds.TRUE


def lost() -> Observation:
    scene = orderly()
    scene.write(state_event(3, shipment="B", version=3), partition=1)
    scene.write_and_apply(state_event(4, shipment="B", version=4), partition=1)
    return scene.seen()


def twice() -> Observation:
    scene = orderly()
    scene.apply(scene.records[2])
    return scene.seen()


def both() -> Observation:
    scene = orderly()
    scene.keep(scene.records[1])
    return scene.seen()


def invented() -> Observation:
    scene = orderly()
    scene.apply(record_at(1, 7, state_event(9, shipment="Z")))
    return scene.seen(ranges={0: OffsetRange(0, 2), 1: OffsetRange(0, 8)})


def progress_behind() -> Observation:
    scene = orderly()
    scene.next_offset[0] = 1
    return scene.seen()


def out_of_order() -> Observation:
    scene = Scene()
    first, second = (scene.write(state_event(order, shipment=f"S{order}")) for order in (0, 1))
    scene.apply(second)
    scene.apply(first)
    return scene.seen()


def zombie() -> Observation:
    scene = Scene()
    for order, epoch in enumerate((1, 2, 1)):
        scene.apply(scene.write(state_event(order)), owner_epoch=epoch)
    return scene.seen(progress={0: Progress(0, 3, owner_epoch=2, owner="w", end_seen=-1)})


def other_row() -> Observation:
    scene = orderly()
    scene.rows["A"] = type(scene.rows["A"])("A", "L1", "transferred", 2, arrival_order=0)
    return scene.seen()


def other_event() -> Observation:
    scene = Scene()
    written = scene.write(state_event(0, version=1), key="any")
    scene.apply(record_at(written.partition, written.offset, state_event(0, version=4)))
    return scene.seen()


def backward_and_mended() -> Observation:
    scene = Scene(partitions=2)
    for order, version, partition in ((1, 2, 1), (0, 1, 0), (2, 3, 1)):
        scene.write_and_apply(state_event(order, version=version), partition)
    return scene.seen()


def wrong_at_the_end() -> Observation:
    """The stream falls from 3 to 2; applied the other way round nothing falls, and 3 stays."""
    scene = Scene(partitions=2)
    scene.write_and_apply(state_event(1, version=2), partition=1)
    scene.write_and_apply(state_event(0, version=3), partition=0)
    return scene.seen()


def group_ahead() -> Observation:
    return orderly().seen(committed={0: 2, 1: 9})


BROKEN: dict[str, tuple[Callable[[], Observation], str]] = {
    "no record lost": (lost, "partition 1 offset 1 was passed without a trace"),
    "none applied twice": (twice, "partition 0 offset 1 is in the history 2 times"),
    "none applied and dead letter both": (both, "partition 1 offset 0 is applied and a dead letter"),
    "nothing that the topic does not have": (
        invented,
        "partition 1 offset 7 is in the database and not in the topic",
    ),
    "progress right behind what is done": (
        progress_behind,
        "partition 0 goes on at offset 1, its last record done is 1",
    ),
    "partitions in offset order": (out_of_order, "partition 0 offset 0 was applied after 1"),
    "no write by a stale owner": (zombie, "partition 0 offset 2 was written under epoch 1, after epoch 2"),
    "rows as their history gives": (other_row, "A's row is not what its history gives"),
    "rows as the topic gives": (other_event, "TR-1 is delivered, the topic gives accepted"),
    "lanes keep their order": (
        backward_and_mended,
        "1 backward writes in lanes by tracking-no, first TR-1 to accepted at partition 0 offset 0",
    ),
    "final states right in lanes": (wrong_at_the_end, "TR-1 is outForDelivery, should be transferred"),
    "group offset not ahead of database": (group_ahead, "partition 1: group at 9, database at 1"),
}

ALSO_BROKEN = {"none applied twice": {"partitions in offset order"}}


def test_every_invariant_has_a_run_here_that_breaks_it() -> None:
    assert set(BROKEN) == set(INVARIANTS)


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_that_breaks_an_invariant_breaks_the_verdict_and_is_told_by_it_alone(name: str) -> None:
    run, sentence = BROKEN[name]
    verdict = verdict_on(run())
    assert verdict.holds is Holds.FALSE
    found = broken(verdict)
    assert found[name] == [sentence]
    assert set(found) - {name} == ALSO_BROKEN.get(name, set())
    assert f"{name}: {sentence}" in verdict.reasons


def test_what_a_producer_was_promised_must_be_in_the_topic() -> None:
    verdict = verdict_on(orderly().seen(), acknowledged={(0, 0), (1, 5)})
    assert verdict.reasons == [
        "no record lost: partition 1 offset 5 was acknowledged and is not in the topic"
    ]


def test_what_was_promised_and_is_deleted_by_now_is_not_missed() -> None:
    seen = orderly().seen()
    later = orderly().seen(records=seen.records[1:], ranges={0: OffsetRange(1, 2), 1: OffsetRange(0, 1)})
    assert verdict_on(later, acknowledged={(0, 0), (0, 1)}).holds is Holds.TRUE


def test_holes_between_offsets_break_nothing() -> None:
    scene = Scene()
    for order, offset in enumerate((0, 1, 5)):
        scene.write_and_apply(state_event(order), offset=offset)
    assert verdict_on(scene.seen(ranges={0: OffsetRange(0, 7)})).holds is Holds.TRUE


def test_a_dead_letter_breaks_nothing_and_neither_does_one_that_was_retried() -> None:
    scene = orderly()
    scene.keep(scene.write())
    retried = scene.write(state_event(3, shipment="B", version=2), partition=1)
    scene.keep(retried, resolved_us=1)
    scene.apply(retried)
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def test_progress_beyond_the_topics_end_breaks_the_verdict() -> None:
    seen = orderly().seen(ranges={0: OffsetRange(0, 1), 1: OffsetRange(0, 1)})
    assert broken(verdict_on(seen)) == {
        "progress right behind what is done": ["partition 0 goes on at offset 2, beyond the topic's end"]
    }


def test_an_epoch_that_was_never_given_breaks_the_verdict() -> None:
    scene = Scene()
    scene.apply(scene.write(state_event(0)), owner_epoch=9)
    assert broken(verdict_on(scene.seen())) == {
        "no write by a stale owner": ["partition 0 offset 0 was written under epoch 9, never given"]
    }


def test_more_than_five_sentences_against_one_invariant_are_counted() -> None:
    scene = Scene()
    for order in range(8):
        scene.write(state_event(order))
    scene.write_and_apply(state_event(8))
    reasons = verdict_on(scene.seen()).reasons
    assert len(reasons) == 6
    assert reasons[4:] == [
        "no record lost: partition 0 offset 4 was passed without a trace",
        "no record lost: and 3 more",
    ]


def test_a_backward_write_in_lanes_by_tracking_number_or_by_line_breaks_the_verdict() -> None:
    for key in ("TR-1", "L1"):
        assert set(broken(verdict_on(backward(key).seen()))) == {
            "lanes keep their order",
            "final states right in lanes",
        }


@pytest.mark.parametrize("key", [None, "anything"], ids=["no key", "mixed keys"])
def test_a_backward_write_where_no_key_promises_an_order_breaks_nothing(key: str | None) -> None:
    assert verdict_on(backward(key).seen()).holds is Holds.TRUE


@pytest.mark.parametrize(
    ("gate", "holds"),
    [(KeyChoice.NONE, Holds.TRUE), (KeyChoice.TRACKING_NO, Holds.FALSE), (KeyChoice.LINE, Holds.FALSE)],
)
def test_in_share_dispatch_only_a_gate_promises_an_order(gate: KeyChoice, holds: Holds) -> None:
    scene = Scene(dispatch=Dispatch.SHARE, gate=gate)
    older, newer = (scene.write(state_event(order, version=version)) for order, version in ((0, 1), (1, 4)))
    scene.apply(newer)
    scene.apply(older)
    assert verdict_on(scene.seen()).holds is holds


def test_a_gate_promises_no_order_to_a_shipment_over_several_partitions() -> None:
    seen = backward("TR-1", dispatch=Dispatch.SHARE, gate=KeyChoice.TRACKING_NO).seen()
    assert verdict_on(seen).holds is Holds.TRUE


def test_runs_of_different_promises_are_not_judged_by_the_last_ones() -> None:
    scene = backward("TR-1")
    later = replace(scene.run, run=2, version_check=True)
    assert verdict_on(scene.seen(runs=[scene.run, later])).holds is Holds.FALSE
    scene.history[-1] = replace(scene.history[-1], run=2)
    assert verdict_on(scene.seen(runs=[scene.run, later])).against["lanes keep their order"] == []


def test_what_the_topic_has_deleted_is_not_held_against_a_fall_of_its_shipment() -> None:
    scene = Scene()
    for order, version in enumerate((3, 2)):
        scene.write_and_apply(state_event(order, version=version))
    seen = scene.seen()
    kept = replace(seen, records=seen.records[1:], ranges={0: OffsetRange(1, 2)})
    assert verdict_on(kept).holds is Holds.TRUE


def test_in_share_dispatch_records_may_be_done_in_any_order() -> None:
    scene = Scene(dispatch=Dispatch.SHARE)
    first, second = (scene.write(state_event(order, shipment=f"S{order}")) for order in (0, 1))
    scene.apply(second)
    scene.apply(first)
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def test_a_fall_of_the_stream_itself_breaks_nothing_because_no_key_prevents_it() -> None:
    scene = Scene()
    for order, version in enumerate((2, 3, 2, 4)):
        scene.write_and_apply(state_event(order, version=version))
    assert len(find(scene.seen()).backward) == 1
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def test_a_backward_write_beyond_those_of_the_stream_is_the_one_that_is_told() -> None:
    scene = Scene()
    for order, version in ((0, 2), (1, 1), (3, 4), (2, 3), (4, 4)):
        scene.write_and_apply(state_event(order, version=version))
    assert broken(verdict_on(scene.seen())) == {
        "lanes keep their order": [
            "1 backward writes in lanes by tracking-no, first TR-1 to outForDelivery at partition 0 offset 3"
        ]
    }


def test_a_backward_write_does_not_hide_behind_one_of_the_stream_that_did_not_happen() -> None:
    """In arrival order 3, 2, 4 falls at order 1; applied 2, 4, 3 it falls at order 0 instead."""
    scene = Scene()
    for order, version in ((1, 2), (2, 4), (0, 3), (3, 4)):
        scene.write_and_apply(state_event(order, version=version))
    found = find(scene.seen())
    assert (len(found.backward), len(found.serial.backward)) == (1, 1)
    assert set(broken(verdict_on(scene.seen()))) == {"lanes keep their order"}


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
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def not_yet_applied() -> Observation:
    scene = orderly()
    scene.write(state_event(3, shipment="B", version=3), partition=1)
    return scene.seen()


def test_while_records_are_not_yet_applied_the_verdict_is_unknown() -> None:
    verdict = verdict_on(not_yet_applied())
    assert verdict.holds is Holds.UNKNOWN
    assert verdict.reasons == ["1 records are not yet applied"]


def test_after_a_drain_records_that_are_not_applied_break_the_verdict() -> None:
    verdict = verdict_on(not_yet_applied(), drained=True)
    assert verdict.holds is Holds.FALSE
    assert broken(verdict) == {"everything applied after the drain": ["1 records are not applied"]}
    assert verdict_on(orderly().seen(), drained=True).holds is Holds.TRUE


def test_what_is_broken_already_is_false_though_records_are_not_yet_applied() -> None:
    scene = backward("TR-1")
    scene.write(state_event(7, version=4))
    verdict = verdict_on(scene.seen())
    assert verdict.holds is Holds.FALSE
    assert set(broken(verdict)) == {"lanes keep their order"}
    assert verdict.reasons[-1] == "1 records are not yet applied"


def test_parked_records_are_not_applied_and_not_lost_so_the_verdict_is_unknown() -> None:
    scene = orderly()
    scene.keep(scene.write(key="A"))
    scene.keep(scene.write(state_event(3, shipment="A", version=3)), parked=1)
    verdict = verdict_on(scene.seen())
    assert verdict.holds is Holds.UNKNOWN
    assert verdict.reasons == ["1 records are parked behind dead letters of their keys"]


def test_repeated_orders_that_leave_the_last_state_open_are_unknown() -> None:
    scene = Scene()
    scene.write_and_apply(state_event(5, version=2))
    scene.write_and_apply(state_event(5, version=3))
    verdict = verdict_on(scene.seen())
    assert verdict.holds is Holds.UNKNOWN
    assert verdict.reasons == ["arrival orders used twice leave the last state open: TR-1"]


def test_repeated_orders_that_decide_the_last_state_are_fine() -> None:
    scene = Scene()
    for order, version in ((5, 2), (5, 2), (6, 3)):
        scene.write_and_apply(state_event(order, version=version))
    assert verdict_on(scene.seen()).holds is Holds.TRUE


def test_a_topic_that_begins_and_ends_where_the_database_goes_on_is_fine() -> None:
    seen = orderly().seen(records=[], ranges={0: OffsetRange(2, 2), 1: OffsetRange(1, 1)})
    assert verdict_on(seen).holds is Holds.TRUE
