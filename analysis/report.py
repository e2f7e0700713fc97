"""Findings for people, as tables, and for programs, as one object."""

from dataclasses import asdict

import click

from analysis.beside import Beside, ModelFigures
from analysis.findings import Findings
from analysis.observation import Observation
from analysis.verdict import Verdict
from console.output import print_table

SHOWN = 10
"""Rows of a list that the tables show; --json has all."""


def as_object(
    seen: Observation, found: Findings, beside: Beside | None, verdict: Verdict
) -> dict[str, object]:
    """The whole report as JSON. Positions are [partition, offset], loads are in ticks."""
    busiest = found.busiest_lane
    return {
        "topic": seen.source.topic,
        "topic_id": seen.source.topic_id,
        "group": seen.source.group_id,
        "partitions": [asdict(partition) for partition in found.partitions],
        "records": found.records,
        "applied": found.applied,
        "skipped": found.skipped,
        "dead_lettered": found.dead_lettered,
        "dead_letter_reasons": found.reasons,
        "not_yet_applied": found.not_yet_applied,
        "lost": found.lost,
        "applied_twice": found.twice,
        "key": found.key,
        "records_without_key": found.without_key,
        "records_with_empty_key": found.empty_key,
        "key_lanes": found.lanes.key_lanes,
        "partition_lanes": sum(partition.records > 0 for partition in found.partitions),
        "busiest_lane": {"partition": busiest.partition, "ticks": busiest.ticks},
        "busiest_key": found.busiest_key,
        "collisions": {str(p): keys for p, keys in found.lanes.collisions.items()},
        "split_keys": found.lanes.split,
        "split_shipments": found.split_shipments,
        "look_alike_keys": found.look_alikes,
        "repeated_orders": found.repeated_orders,
        "backward_writes": len(found.backward),
        "backward": [asdict(row) for row in found.backward],
        "wrong_final_state": len(found.wrong),
        "wrong": [wrong.tracking_no for wrong in found.wrong],
        "undecided": found.undecided,
        "skipped_steps": found.skipped_steps,
        "model": _beside_object(beside),
        "check": {"verdict": verdict.holds.value, "reasons": verdict.reasons},
    }


def _beside_object(beside: Beside | None) -> dict[str, object] | None:
    if beside is None:
        return None
    return {
        "workers": beside.workers,
        "version_check": beside.version_check,
        "lesson_model": _model_object(beside.lesson),
        "wrong_final_state_over_ties": beside.wrong_over_ties,
        "kafka_model": _model_object(beside.kafka),
    }


def _model_object(figures: ModelFigures | None) -> dict[str, object] | None:
    return None if figures is None else {**asdict(figures), "wrong_final_state": figures.wrong_final_state}


def print_report(seen: Observation, found: Findings, beside: Beside | None, verdict: Verdict) -> None:
    """Offsets, lanes, figures beside the models, and the verdict."""
    _print_offsets(seen, found)
    _print_lanes(found)
    _print_figures(found, beside)
    _print_details(found)
    click.echo(f"\nInvariants hold: {verdict.holds.value}")
    for reason in verdict.reasons:
        click.echo(f"  {reason}")


def _print_offsets(seen: Observation, found: Findings) -> None:
    print_table(
        f"Topic {seen.source.topic}, group {seen.source.group_id}",
        ["partition", "low", "high", "committed", "next in database", "records", "not yet applied", "ticks"],
        [
            (
                str(p.partition),
                p.low,
                p.high,
                "-" if p.committed is None else p.committed,
                "-" if p.next_offset is None else p.next_offset,
                p.records,
                p.not_yet_applied,
                p.ticks,
            )
            for p in found.partitions
        ],
    )
    click.echo(
        f"{found.records} records: {found.applied} applied, {found.skipped} skipped, {found.dead_lettered} "
        f"dead letters, {found.not_yet_applied} not yet applied, {len(found.lost)} lost."
    )
    for reason, count in list(found.reasons.items())[:SHOWN]:
        click.echo(f"  dead letter: {reason} ({count})")


def _print_lanes(found: Findings) -> None:
    lanes = found.lanes
    used = sum(partition.records > 0 for partition in found.partitions)
    busiest = found.busiest_lane
    click.echo(f"\nKey: {found.key}. {lanes.key_lanes} key lanes, {used} partition lanes.")
    click.echo(f"Busiest lane: partition {busiest.partition} with {busiest.ticks} ticks of work.")
    if found.without_key or found.empty_key:
        click.echo(f"Records without a key: {found.without_key}; with an empty key: {found.empty_key}.")
    for partition, keys in list(lanes.collisions.items())[:SHOWN]:
        click.echo(f"Collision in partition {partition}: {_some(keys)}.")
    for key, partitions in list(lanes.split.items())[:SHOWN]:
        click.echo(f"Key {key} is in partitions {partitions}: its order is not kept.")
    if found.split_shipments:
        click.echo(f"Shipments in several partitions: {_some(list(found.split_shipments))}.")
    for group in found.look_alikes[:SHOWN]:
        click.echo(f"Different keys that look alike, each a lane of its own: {', '.join(map(repr, group))}.")
    if found.repeated_orders:
        click.echo(f"{found.repeated_orders} events repeat an arrival order: was the stream written twice?")


def _print_figures(found: Findings, beside: Beside | None) -> None:
    lesson = beside.lesson if beside else None
    kafka = beside.kafka if beside else None

    def row(name: str, live: object, of: str) -> tuple[object, ...]:
        return name, live, *("-" if model is None else getattr(model, of) for model in (lesson, kafka))

    click.echo("")
    print_table(
        f"Live, beside the models for {beside.workers} workers" if beside else "Live",
        ["figure", "live", "lesson model", "Kafka model"],
        [
            row("backward writes", len(found.backward), "backward_writes"),
            row("wrong final states", len(found.wrong), "wrong_final_state"),
            row("skipped steps", found.skipped, "skipped"),
            row("ticks", "-", "tick"),
        ],
    )
    if beside and beside.wrong_over_ties:
        least, most = beside.wrong_over_ties
        click.echo(
            f"Lesson model, wrong final states over every order of events of one tick: {least} to {most}."
        )


def _print_details(found: Findings) -> None:
    for row in found.backward[:SHOWN]:
        click.echo(
            f"Backward write: {row.tracking_no} from version {row.version_before} to {row.version} "
            f"({row.state}), partition {row.partition} offset {row.offset}, worker {row.worker}"
            f"{', skipped' if row.skipped else ''}."
        )
    if len(found.backward) > SHOWN:
        click.echo(f"... and {len(found.backward) - SHOWN} more (--json lists all)")
    for wrong in found.wrong[:SHOWN]:
        click.echo(f"Wrong final state: {wrong.tracking_no} is {wrong.state}, should be {wrong.expected}.")
    for shipment, states in list(found.skipped_steps.items())[:SHOWN]:
        click.echo(f"Skipped steps: {shipment} lacks {', '.join(states)}.")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
