"""`convoy model`: what both tick models say about a stream, without a broker.

State events enter, from a file or the lesson's own; tables or one JSON object leave on stdout.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from console.entry import EXIT_CODES_HELP
from console.options import Decorator, events_file_option, json_option, partitioner_option
from console.output import print_json, print_table
from lanes.cost import ticks_by_workers
from lanes.key import key_text
from lanes.lane_map import LaneMap, lane_map
from lanes.model import FREE, KafkaFigures, LessonFigures, kafka_model, lesson_model
from lanes.partitioner import Partitioner
from producer.reading import events_or_lesson

SWEEP_WORKERS = (1, 2, 4, 8)
"""Numbers of workers whose ticks are set side by side, as the lesson does."""

LARGEST_COUNT = 100_000
"""Most workers or partitions: far beyond any topic, and the models hold each one in memory."""

KEYED_BY = {"tracking_no": "tracking number", "line": "line"}

COUNT = click.IntRange(1, LARGEST_COUNT)

workers_option: Decorator = click.option(
    "--workers", type=COUNT, default=4, show_default=True, help="Workers that share the events."
)


@click.command(epilog=EXIT_CODES_HELP)
@events_file_option
@workers_option
@click.option("--partitions", type=COUNT, default=5, show_default=True, help="Partitions of the topic.")
@partitioner_option
@json_option
def model(path: Path | None, workers: int, partitions: int, partitioner: str, as_json: bool) -> None:
    """Say what each arrangement of the events should give, without a broker.

    Two models stand side by side. In the lesson's dispatcher a lane is a key, and the next event goes to the
    worker that is free first. In Kafka a lane is a partition, and a worker owns its partitions.

    \b
    Examples:
      convoy model
      convoy model --workers 8 --partitions 12
      convoy model --file events.csv --partitioner consistent_random
      convoy model --json | jq .lesson_model.convoy.tick
    """
    events = events_or_lesson(path)
    lesson = lesson_model(events, workers)
    kafka = kafka_model(events, workers, partitions, Partitioner(partitioner))
    sweep = ticks_by_workers(events, SWEEP_WORKERS)
    if as_json:
        print_json(
            {
                "workers": workers,
                "partitions": partitions,
                "partitioner": partitioner,
                "lesson_model": {name: figures.to_json() for name, figures in lesson.items()},
                "kafka_model": {name: figures.to_json() for name, figures in kafka.items()},
                "ticks_by_workers": _sweep_json(sweep),
            }
        )
        return
    stream = f"{len(events)} events, {lesson[FREE.name].workload} ticks of work, {workers} workers"
    _print_lesson(stream, lesson)
    _print_sweep(sweep)
    _print_kafka(f"{stream}, {partitions} partitions, {partitioner}", kafka, lesson[FREE.name])
    _print_partition_map({name: _lane_map(figures) for name, figures in kafka.items()}, partitions)


def names(found: Sequence[str], most: int = 8) -> str:
    """Names for a table's cell, at most `most` of them and the number of the rest; `-` for none."""
    shown = ", ".join(key_text(name.encode()) for name in found[:most]) or "-"
    return shown if len(found) <= most else f"{shown} and {len(found) - most} more"


def _print_lesson(stream: str, lesson: Mapping[str, LessonFigures]) -> None:
    figures = list(lesson.values())
    free_tick = lesson[FREE.name].tick
    print_table(
        f"Lesson's dispatcher, lanes are keys: {stream}",
        ["", *lesson],
        [
            ["backward write", *(f.backward_writes for f in figures)],
            ["wrong final state", *(_wrong(f.wrong) for f in figures)],
            ["  over ties of a tick", *(_range(f.wrong_final_state_over_ties) for f in figures)],
            ["skipped step", *(f.skipped for f in figures)],
            ["tick", *(f.tick for f in figures)],
            ["  ratio to free", *(f"{f.tick / free_tick:.3f}" for f in figures)],
            ["  effective concurrency", *(f"{f.effective_concurrency:.2f}" for f in figures)],
            ["key lanes", *(f.lanes for f in figures)],
            ["busiest key lane, ticks", *(f.busiest_lane for f in figures)],
        ],
    )


def _print_sweep(sweep: Mapping[str, Sequence[int]]) -> None:
    print_table(
        "The same, ticks by workers",
        ["workers", *(str(count) for count in SWEEP_WORKERS)],
        [[name, *tick_counts] for name, tick_counts in sweep.items()],
    )


def _print_kafka(stream: str, kafka: Mapping[str, KafkaFigures], free: LessonFigures) -> None:
    figures = list(kafka.values())
    print_table(
        f"Kafka's ownership, lanes are partitions: {stream}",
        ["key", *(KEYED_BY[name] for name in kafka)],
        [
            ["backward write", *(f.backward_writes for f in figures)],
            ["wrong final state", *(_wrong(f.wrong) for f in figures)],
            ["tick", *(f.tick for f in figures)],
            ["  ratio to free", *(f"{f.tick / free.tick:.3f}" for f in figures)],
            ["  effective concurrency", *(f"{free.workload / f.tick:.2f}" for f in figures)],
            ["key lanes", *(f.keys for f in figures)],
            ["partition lanes", *(f.lanes for f in figures)],
            ["busiest partition lane, ticks", *(f.busiest_lane for f in figures)],
            ["partitions with a collision", *(len(_lane_map(f).collisions) for f in figures)],
        ],
    )


def _print_partition_map(maps: Mapping[str, LaneMap], partitions: int) -> None:
    """Which keys meet where; partitions without a key are left out."""
    keys_in = {name: _keys_by_partition(lanes) for name, lanes in maps.items()}
    used = sorted({partition for keys in keys_in.values() for partition in keys})
    print_table(
        f"Partition map: {len(used)} of {partitions} partitions hold a key",
        ["partition", *(KEYED_BY[name] for name in maps)],
        [
            [partition, *(_meeting(keys.get(partition, [])) for keys in keys_in.values())]
            for partition in used
        ],
    )


def _meeting(keys: Sequence[str]) -> str:
    return f"{names(keys)} (collision)" if len(keys) > 1 else names(keys)


def _keys_by_partition(lanes: LaneMap) -> dict[int, list[str]]:
    keys_in: dict[int, list[str]] = {}
    for key, partitions in lanes.partitions_of.items():
        for partition in partitions:
            keys_in.setdefault(partition, []).append(key)
    return keys_in


def _lane_map(figures: KafkaFigures) -> LaneMap:
    return lane_map({key: {partition} for key, partition in figures.partition_of.items()})


def _wrong(shipments: Sequence[str]) -> str:
    return f"{len(shipments)} ({names(shipments)})" if shipments else "0"


def _range(over_ties: tuple[int, int] | None) -> str:
    return "-" if over_ties is None else f"{over_ties[0]} to {over_ties[1]}"


def _sweep_json(sweep: Mapping[str, Iterable[int]]) -> dict[str, dict[str, int]]:
    """Arrangement to ticks by number of workers, named so that a reader needs no list beside it."""
    return {
        name: {str(workers): tick for workers, tick in zip(SWEEP_WORKERS, counts, strict=True)}
        for name, counts in sweep.items()
    }
