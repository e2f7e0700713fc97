"""Why each backward write happened: one scene a cause."""

from dataclasses import replace

import pytest
from observations import TIME_US, Scene, record_at
from streams import state_event

from analysis.causes import Cause, explain_backward_writes, has_grown
from lanes.dispatch import Dispatch
from lanes.event import HistoryEvent
from lanes.record import Record

LESSON_KEYS = ("TR-4821", "TR-9007", "TR-5533", "TR-2214", "TR-7788")
ON_3_PARTITIONS = (0, 1, 2, 2, 1)
ON_5_PARTITIONS = (4, 0, 3, 2, 1)
ON_5_BY_CRC32 = (4, 1, 2, 1, 3)


def cause_in(scene: Scene) -> Cause:
    """The cause of the one backward write of a scene."""
    (only,) = explain_backward_writes(scene.seen())
    return only.cause


def newer_then_older(scene: Scene, newer_in: int, older_in: int, **keys: str | None) -> Scene:
    """TR-4821 is delivered from one partition, then accepted from another."""
    newer, older = (state_event(order, shipment="TR-4821", version=v) for order, v in ((9, 4), (8, 1)))
    key = {"newer": "TR-4821", "older": "TR-4821", **keys}
    scene.write_and_apply(newer, newer_in, key=key["newer"])
    scene.write_and_apply(older, older_in, key=key["older"])
    return scene


def lesson_records(partitions: tuple[int, ...], first_order: int = 0) -> list[Record]:
    """One record of each lesson key, at these partitions."""
    return [
        record_at(partition, first_order, state_event(first_order + index, shipment=key), key=key)
        for index, (key, partition) in enumerate(zip(LESSON_KEYS, partitions, strict=True))
    ]


def test_an_orderly_run_has_nothing_to_explain() -> None:
    scene = Scene()
    for order, version in enumerate((1, 2, 2, 4)):
        scene.write_and_apply(state_event(order, version=version))
    assert explain_backward_writes(scene.seen()) == []


def test_a_backward_write_is_told_with_the_event_whose_version_it_went_below() -> None:
    scene = Scene(partitions=2)
    first = scene.write_and_apply(state_event(1, version=2), partition=0, key=None)
    scene.write_and_apply(state_event(4, shipment="OTHER", version=4), partition=0, key=None)
    second = scene.write_and_apply(state_event(2, version=4), partition=0, key=None)
    late = scene.write_and_apply(state_event(0, version=1), partition=1, key=None)
    (told,) = explain_backward_writes(scene.seen())
    assert (told.older, told.newer) == (late, second)
    assert first not in (told.older, told.newer)


def test_a_scan_in_between_is_not_what_it_went_below() -> None:
    scene = Scene(partitions=2)
    newer = scene.write_and_apply(state_event(1, version=2), key=None)
    scan = HistoryEvent(tracking_no="TR-1", line="L1", duration=1, order=2, scan="gate")
    scene.write_and_apply(scan, key=None)
    scene.write_and_apply(state_event(0, version=1), partition=1, key=None)
    (told,) = explain_backward_writes(scene.seen())
    assert told.newer == newer


def test_a_skipped_event_is_not_what_a_later_one_went_below() -> None:
    scene = Scene(partitions=3, version_check=True)
    newest = scene.write_and_apply(state_event(2, version=4), 0, key=None)
    scene.write_and_apply(state_event(1, version=3), 1, key=None)
    scene.write_and_apply(state_event(0, version=1), 2, key=None)
    assert [told.newer for told in explain_backward_writes(scene.seen())] == [newest, newest]


def test_the_stream_itself_goes_back() -> None:
    scene = Scene()
    scene.write_and_apply(state_event(0, version=3))
    scene.write_and_apply(state_event(1, version=2))
    assert cause_in(scene) is Cause.STREAM


def test_a_stream_written_twice_is_a_replay() -> None:
    scene = Scene()
    for version in (1, 2, 1, 2):
        scene.write_and_apply(state_event(version, version=version))
    assert cause_in(scene) is Cause.REPLAY


def test_one_producer_sent_them_out_of_order_into_one_partition() -> None:
    assert cause_in(newer_then_older(Scene(), 0, 0)) is Cause.SENT_OUT_OF_ORDER


def test_without_a_key_the_two_lie_in_different_partitions() -> None:
    scene = newer_then_older(Scene(partitions=5), 4, 0, newer=None, older=None)
    assert cause_in(scene) is Cause.NO_KEY


@pytest.mark.parametrize(("newer", "older"), [("L1", "L2"), ("TR-4821", None), (None, "L1"), ("", "L1")])
def test_different_keys_put_the_two_into_different_partitions(newer: str | None, older: str | None) -> None:
    scene = newer_then_older(Scene(partitions=5), 4, 0, newer=newer, older=older)
    assert cause_in(scene) is Cause.OTHER_KEY


@pytest.mark.parametrize(("newer_in", "older_in"), [(3, 6), (6, 3)])
def test_one_key_was_put_by_two_partitioners(newer_in: int, older_in: int) -> None:
    """On 8 partitions murmur2 puts TR-4821 into 3, CRC32 into 6."""
    assert cause_in(newer_then_older(Scene(partitions=8), newer_in, older_in)) is Cause.OTHER_PARTITIONER


def test_partitions_were_added_and_keys_moved() -> None:
    """The lesson's keys on 3 partitions, then grown to 5: 3 of the 5 keys move."""
    scene = Scene(partitions=5)
    scene.records += lesson_records(ON_3_PARTITIONS)
    scene.records += lesson_records(ON_5_PARTITIONS, first_order=5)
    assert cause_in(newer_then_older(scene, 4, 0)) is Cause.PARTITIONS_ADDED


@pytest.mark.parametrize(("shipment", "before", "now"), [("TR-9007", 1, 0), ("TR-5533", 2, 3)])
def test_a_former_place_that_is_by_chance_the_other_partitioners_is_still_one_of_growth(
    shipment: str, before: int, now: int
) -> None:
    scene = Scene(partitions=5)
    scene.records += lesson_records(ON_3_PARTITIONS)
    scene.records += lesson_records(ON_5_PARTITIONS, first_order=5)
    scene.write_and_apply(state_event(9, shipment=shipment, version=4), now)
    scene.write_and_apply(state_event(8, shipment=shipment, version=1), before)
    assert cause_in(scene) is Cause.PARTITIONS_ADDED


def test_a_place_that_neither_partitioner_nor_growth_explains_is_unknown() -> None:
    assert cause_in(newer_then_older(Scene(partitions=5), 4, 0)) is Cause.UNKNOWN


def test_records_that_the_topic_no_longer_has_leave_the_cause_unknown() -> None:
    scene = newer_then_older(Scene(partitions=8), 3, 6)
    del scene.records[0]
    assert cause_in(scene) is Cause.UNKNOWN


def test_an_older_event_before_the_newer_one_in_one_partition_has_no_known_cause_in_a_group() -> None:
    scene = Scene()
    older, newer = (scene.write(state_event(order, version=order + 1)) for order in (0, 1))
    scene.apply(newer)
    scene.apply(older)
    assert cause_in(scene) is Cause.UNKNOWN


def test_in_share_dispatch_several_workers_or_a_redelivery_are_the_cause() -> None:
    for delivery, cause in ((1, Cause.SEVERAL_WORKERS), (2, Cause.REDELIVERY)):
        scene = Scene(dispatch=Dispatch.SHARE)
        older = scene.write(state_event(0, version=1), delivery=delivery)
        newer = scene.write(state_event(1, version=2))
        scene.apply(newer)
        scene.apply(older)
        assert cause_in(scene) is cause


def test_in_share_dispatch_too_a_stream_or_a_producer_can_be_the_cause() -> None:
    for orders, cause in (((0, 1), Cause.STREAM), ((1, 0), Cause.SENT_OUT_OF_ORDER)):
        scene = Scene(dispatch=Dispatch.SHARE)
        for order, version in zip(orders, (4, 1), strict=True):
            scene.write_and_apply(state_event(order, version=version))
        assert cause_in(scene) is cause


def test_a_retried_dead_letter_that_newer_events_went_past_is_named_as_that() -> None:
    scene = Scene()
    bad = scene.write()
    scene.keep(bad, resolved_us=TIME_US)
    scene.write_and_apply(state_event(1, version=4))
    scene.apply(replace(bad, event=state_event(0, version=1)), owner_epoch=None)
    assert [each.cause for each in explain_backward_writes(scene.seen())] == [Cause.RETRIED]


def test_every_cause_has_a_scene_here() -> None:
    shown = {
        Cause.STREAM,
        Cause.REPLAY,
        Cause.SENT_OUT_OF_ORDER,
        Cause.NO_KEY,
        Cause.OTHER_KEY,
        Cause.OTHER_PARTITIONER,
        Cause.PARTITIONS_ADDED,
        Cause.REDELIVERY,
        Cause.RETRIED,
        Cause.SEVERAL_WORKERS,
        Cause.UNKNOWN,
    }
    assert shown == set(Cause)


def test_a_topic_grew_when_one_smaller_count_explains_every_key_that_is_out_of_place() -> None:
    assert has_grown([*lesson_records(ON_3_PARTITIONS), *lesson_records(ON_5_PARTITIONS, 5)], 5)
    assert has_grown(lesson_records(ON_3_PARTITIONS), 5)


@pytest.mark.parametrize("placed", [ON_5_PARTITIONS, ON_5_BY_CRC32], ids=["murmur2", "CRC32"])
def test_a_topic_whose_keys_are_all_in_place_has_not_grown(placed: tuple[int, ...]) -> None:
    assert not has_grown(lesson_records(placed), 5)


def test_a_topic_written_by_both_partitioners_has_not_grown() -> None:
    assert not has_grown([*lesson_records(ON_5_PARTITIONS), *lesson_records(ON_5_BY_CRC32, 5)], 5)


@pytest.mark.parametrize("strays", [1, 2])
def test_one_or_two_keys_out_of_place_are_no_sign_of_growth_though_a_smaller_count_fits_them(
    strays: int,
) -> None:
    """TR-9007 and TR-5533 where 3 partitions would put them, however many records each has."""
    out_of_place = lesson_records(ON_3_PARTITIONS)[1 : 1 + strays] * 4
    assert not has_grown([*lesson_records(ON_5_PARTITIONS, 5), *out_of_place], 5)


def test_a_key_that_the_smaller_count_does_not_explain_speaks_against_growth() -> None:
    elsewhere = record_at(3, 99, state_event(99, shipment="TR-7788"), key="TR-7788")
    grown = [*lesson_records(ON_3_PARTITIONS), *lesson_records(ON_5_PARTITIONS, 5)]
    assert not has_grown([*grown, elsewhere], 5)


def test_records_without_a_key_and_with_an_empty_one_say_nothing_about_growth() -> None:
    anywhere = [record_at(4, offset, state_event(offset), key=key) for offset, key in enumerate((None, ""))]
    assert not has_grown(anywhere, 5)
    assert has_grown([*anywhere, *lesson_records(ON_3_PARTITIONS)], 5)
