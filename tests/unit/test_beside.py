"""Both models beside a run: for the workers, the dispatch, the key and the assignment that it really had."""

import pytest
from observations import Scene
from streams import state_event

from analysis.beside import Beside, models_beside, owners
from lanes.dispatch import Dispatch
from lanes.event import HistoryEvent
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.partitioner import Partitioner
from lanes.schedule import Work

ZERO_US = 1_700_000_000_000_000


def lesson_scene(key: KeyChoice, partitions: int, **options: object) -> Scene:
    """The lesson's events in a topic, each where murmur2 puts its key; nothing is applied yet."""
    scene = Scene(partitions=partitions, **{"workers": 4, **options})  # type: ignore[arg-type]
    for event in lesson_events():
        value = key.value_of(event)
        place = Partitioner.MURMUR2.partition_of(value.encode(), partitions) if value else 0
        assert place is not None
        scene.write(event, place, key=value)
    return scene


def beside(scene: Scene, lane_key: str, *, selective: bool = False) -> Beside:
    made = models_beside(scene.seen(), lane_key, selective=selective)
    assert made is not None
    return made


def test_before_the_first_run_there_is_nothing_to_stand_beside() -> None:
    assert models_beside(Scene().seen(runs=[]), "tracking-no", selective=False) is None


@pytest.mark.parametrize(
    ("key", "partitions", "lesson_ticks", "kafka_ticks"),
    [(KeyChoice.TRACKING_NO, 5, 13, 11), (KeyChoice.LINE, 8, 19, 14), (KeyChoice.LINE, 3, 19, 32)],
)
def test_in_group_dispatch_the_kafka_model_predicts_and_the_lessons_stands_beside_it(
    key: KeyChoice, partitions: int, lesson_ticks: int, kafka_ticks: int
) -> None:
    made = beside(lesson_scene(key, partitions), key.value)
    assert made.lesson is not None
    assert made.kafka is not None
    assert (made.lesson.tick, made.kafka.tick) == (lesson_ticks, kafka_ticks)
    assert made.predicted is made.kafka
    assert (made.kafka.backward_writes, made.kafka.wrong_final_state, made.kafka.skipped) == (0, 0, 0)


@pytest.mark.parametrize(
    ("gate", "ticks", "backward_writes"), [("none", 8, 5), ("tracking-no", 13, 0), ("line", 19, 0)]
)
def test_in_share_dispatch_the_lessons_dispatcher_predicts_and_nobody_owns_a_partition(
    gate: str, ticks: int, backward_writes: int
) -> None:
    scene = lesson_scene(KeyChoice.TRACKING_NO, 1, dispatch=Dispatch.SHARE, gate=KeyChoice(gate))
    made = beside(scene, gate)
    assert made.kafka is None
    assert made.lesson is not None
    assert made.predicted is made.lesson
    assert (made.lesson.tick, made.lesson.backward_writes) == (ticks, backward_writes)


def test_the_free_share_run_of_the_lesson_leaves_one_shipment_wrong_and_ties_could_make_it_four() -> None:
    made = beside(lesson_scene(KeyChoice.NONE, 1, dispatch=Dispatch.SHARE), "none")
    assert made.lesson is not None
    assert made.lesson.wrong == ["TR-4821"]
    assert made.lesson.wrong_over_ties == (1, 4)
    assert len(made.lesson.schedule) == 20


def test_the_models_check_the_version_where_the_run_did() -> None:
    scene = lesson_scene(KeyChoice.NONE, 1, dispatch=Dispatch.SHARE, version_check=True)
    made = beside(scene, "none")
    assert made.lesson is not None
    assert (made.lesson.backward_writes, made.lesson.wrong, made.lesson.skipped) == (5, [], 5)


def test_where_keys_are_mixed_no_lesson_lanes_can_be_told() -> None:
    made = beside(lesson_scene(KeyChoice.TRACKING_NO, 5), "mixed")
    assert made.lesson is None
    assert made.kafka is not None


def test_what_is_no_event_is_in_no_model() -> None:
    scene = lesson_scene(KeyChoice.TRACKING_NO, 5)
    for partition in range(5):
        scene.write(None, partition)
    made = beside(scene, "tracking-no")
    assert made.kafka is not None
    assert made.kafka.tick == 11


def scans_after_a_state(key: str | None = "TR-1", **options: object) -> Scene:
    """One state event and two scans of one shipment, two ticks each."""
    scene = Scene(partitions=1, workers=3, **options)  # type: ignore[arg-type]
    scene.write(state_event(0, duration=2))
    for order in (1, 2):
        scan = HistoryEvent(tracking_no="TR-1", line="L1", duration=2, order=order, scan="gate")
        scene.write(scan, key=key)
    return scene


@pytest.mark.parametrize(("selective", "ticks"), [(False, 6), (True, 2)])
def test_a_selective_convoy_holds_only_state_events_in_lanes(selective: bool, ticks: int) -> None:
    made = beside(scans_after_a_state(None), "tracking-no", selective=selective)
    assert made.lesson is not None
    assert made.lesson.tick == ticks


@pytest.mark.parametrize(("selective", "ticks"), [(False, 6), (True, 2)])
def test_in_share_dispatch_the_run_itself_says_whether_its_gate_was_selective(
    selective: bool, ticks: int
) -> None:
    share = {"dispatch": Dispatch.SHARE, "gate": KeyChoice.TRACKING_NO, "selective": selective}
    made = beside(scans_after_a_state(**share), "tracking-no", selective=not selective)
    assert made.lesson is not None
    assert made.lesson.tick == ticks


def test_at_full_speed_partitions_are_dealt_by_range_whoever_applied_them_first() -> None:
    scene = Scene(partitions=2, workers=2)
    for partition in (0, 1):
        scene.apply(scene.write(state_event(partition), partition), worker=0)
    assert owners(scene.seen(), scene.run) == {0: 0, 1: 1}


def test_partitions_belong_to_whoever_applied_them_in_that_paced_run_else_by_range() -> None:
    scene = Scene(partitions=5, workers=2, tick_us=100_000, zero_us=ZERO_US)
    assert owners(scene.seen(), scene.run) == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1}
    scene.apply(scene.write(state_event(0), 0), worker=1)
    scene.apply(scene.write(state_event(1), 4), worker=0)
    scene.apply(scene.write(state_event(2), 3), worker=0, run=9)
    assert owners(scene.seen(), scene.run) == {0: 1, 1: 0, 2: 0, 3: 1, 4: 0}


def test_the_kafka_model_works_with_the_assignment_that_the_run_had() -> None:
    """Two partitions of 3 and 5 ticks: side by side they take 5, by one worker 8."""
    ticks = []
    for second_owner in (1, 0):
        scene = Scene(partitions=2, workers=2, tick_us=100_000, zero_us=ZERO_US)
        for partition, (duration, owner) in enumerate(((3, 0), (5, second_owner))):
            event = state_event(partition, shipment=f"S{partition}", duration=duration)
            scene.apply(scene.write(event, partition), worker=owner)
        made = beside(scene, "tracking-no")
        assert made.kafka is not None
        ticks.append(made.kafka.tick)
    assert ticks == [5, 8]


def test_a_paced_run_is_measured_and_one_at_full_speed_is_not() -> None:
    scene = Scene(tick_us=100_000, zero_us=ZERO_US)
    event = state_event(0, duration=2)
    times = {"started_us": ZERO_US, "finished_us": ZERO_US + 200_000}
    scene.apply(scene.write(event), **times)
    assert beside(scene, "tracking-no").live == [Work(event, 0, 0, 2)]
    at_full_speed = Scene()
    at_full_speed.write_and_apply(event)
    assert beside(at_full_speed, "tracking-no").live is None
