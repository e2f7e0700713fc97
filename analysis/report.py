"""Findings for people, as tables, and for programs, as one object."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import click
from rich.text import Text

from analysis.beside import Beside, ModelFigures, models_beside
from analysis.causes import BackwardWrite, explain_backward_writes
from analysis.findings import Findings, find
from analysis.invariants import Evidence, keeps_order
from analysis.observation import Observation
from analysis.swimlanes import fits_terminal, swimlanes_of
from analysis.verdict import Verdict, judge_evidence
from console.output import print_table, stdout
from lanes.outcome import wrong_over_ties
from lanes.schedule import ticks
from state.records import HistoryRow

SHOWN = 10
"""Rows of a list that the tables show; --json has all."""


@dataclass(frozen=True, slots=True)
class Report:
    """All that an analysis found, before it is put into words."""

    seen: Observation
    found: Findings
    backward: list[BackwardWrite]
    beside: Beside | None
    verdict: Verdict

    @property
    def swimlanes(self) -> Text | None:
        """Model above live, where the last run was paced."""
        return swimlanes_of(self.beside, {row.arrival_order for row in self.found.backward})

    @classmethod
    def of(cls, seen: Observation) -> "Report":
        """The whole analysis of an observation."""
        found = find(seen)
        beside = models_beside(seen, found.lane_key, selective=found.selective)
        return cls(seen, found, explain_backward_writes(seen), beside, judge_evidence(Evidence(seen, found)))


def as_object(report: Report) -> dict[str, object]:
    """The whole report as JSON. Positions are [partition, offset], loads are in ticks."""
    seen, found = report.seen, report.found
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
        "parked": found.parked,
        "dead_letter_reasons": found.reasons,
        "not_yet_applied": found.not_yet_applied,
        "lost": found.lost,
        "applied_twice": found.twice,
        "key": found.key,
        "lane_key": found.lane_key,
        "records_without_key": found.without_key,
        "records_with_empty_key": found.empty_key,
        "key_lanes": found.lanes.key_lanes,
        "partition_lanes": found.partition_lanes,
        "busiest_lane": {"partition": busiest.partition, "ticks": busiest.ticks},
        "busiest_key": found.busiest_key,
        "collisions": {str(p): keys for p, keys in found.lanes.collisions.items()},
        "split_keys": found.lanes.split,
        "split_shipments": found.split_shipments,
        "line_changes": found.line_changes,
        "look_alike_keys": found.look_alikes,
        "repeated_orders": found.repeated_orders,
        "backward_writes": len(found.backward),
        "backward": [
            {"older": asdict(b.older), "newer": asdict(b.newer), "cause": b.cause.name.lower()}
            for b in report.backward
        ],
        "wrong_final_state": len(found.wrong),
        "wrong": [wrong.tracking_no for wrong in found.wrong],
        "undecided": found.undecided,
        "skipped_steps": found.skipped_steps,
        "model": _beside_object(report.beside),
        "check": {
            "verdict": report.verdict.holds.value,
            "reasons": report.verdict.reasons,
            "invariants": {name: not against for name, against in report.verdict.against.items()},
        },
    }


def _beside_object(beside: Beside | None) -> dict[str, object] | None:
    if beside is None:
        return None
    return {
        "workers": beside.run.workers,
        "dispatch": beside.run.dispatch.value,
        "gate": beside.run.gate.value,
        "version_check": beside.run.version_check,
        "lesson_model": _model_object(beside.lesson),
        "kafka_model": _model_object(beside.kafka),
        "live_tick": None if beside.live is None else ticks(beside.live),
        "live_wrong_over_ties": None if beside.live is None else wrong_over_ties(beside.live),
    }


def _model_object(figures: ModelFigures | None) -> dict[str, object] | None:
    if figures is None:
        return None
    names = ("backward_writes", "skipped", "wrong", "wrong_final_state", "wrong_over_ties", "tick")
    return {name: getattr(figures, name) for name in names}


def print_audit(report: Report) -> None:
    """Each invariant, whether it holds, and what speaks against it."""
    found, verdict = report.found, report.verdict
    print_table(
        f"Audit of {report.seen.source.topic}: {found.records} records, {found.in_history} in the history, "
        f"{found.dead_lettered} dead letters",
        ["invariant", "holds", "against it"],
        [(name, "no" if against else "yes", len(against)) for name, against in verdict.against.items()],
    )


def print_report(report: Report) -> None:
    """Offsets, lanes, figures beside the models, and the verdict."""
    _print_offsets(report.seen, report.found)
    _print_lanes(report.found)
    _print_figures(report.found, report.beside)
    _print_details(report)
    lanes = report.swimlanes
    if lanes is not None and fits_terminal(lanes):
        click.echo("")
        stdout().print(lanes)
    click.echo(f"\nInvariants hold: {report.verdict.holds.value}")
    if not keeps_order(report.found):
        click.echo("  Order is not among them: nothing kept each shipment in one lane.")
    for reason in report.verdict.reasons:
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
    busiest = found.busiest_lane
    click.echo(f"\nKey: {found.key}. {lanes.key_lanes} key lanes, {found.partition_lanes} partition lanes.")
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
    live_ticks = ticks(beside.live) if beside and beside.live is not None else "-"

    def row(name: str, live: object, of: str) -> tuple[object, ...]:
        return name, live, *("-" if model is None else getattr(model, of) for model in (lesson, kafka))

    title = "Live"
    if beside:
        title = f"Live in {beside.run.dispatch} dispatch, beside the models for {beside.run.workers} workers"
    click.echo("")
    print_table(
        title,
        ["figure", "live", "lesson model", "Kafka model"],
        [
            row("backward writes", len(found.backward), "backward_writes"),
            row("wrong final states", len(found.wrong), "wrong_final_state"),
            row("skipped steps", found.skipped, "skipped"),
            row("ticks", live_ticks, "tick"),
        ],
    )
    if beside and not beside.run.version_check:
        _print_ties(beside)


def _print_ties(beside: Beside) -> None:
    """The range over ties, where the order within a tick can change the final states."""
    live = None if beside.live is None else wrong_over_ties(beside.live)
    for name, ties in (
        ("lesson model", beside.lesson.wrong_over_ties if beside.lesson else None),
        ("Kafka model", beside.kafka.wrong_over_ties if beside.kafka else None),
        ("live run", live),
    ):
        if ties and ties[1]:
            click.echo(f"Wrong over every order of events of one tick, {name}: {ties[0]} to {ties[1]}.")


def _print_details(report: Report) -> None:
    for backward in report.backward[:SHOWN]:
        older, newer = backward.older, backward.newer
        click.echo(
            f"Backward write: {older.tracking_no} from {newer.state} ({_where(newer)}) "
            f"to {older.state} ({_where(older)}){', skipped' if older.skipped else ''}."
        )
        click.echo(f"  cause: {backward.cause.value}")
    if len(report.backward) > SHOWN:
        click.echo(f"... and {len(report.backward) - SHOWN} more (--json lists all)")
    for wrong in report.found.wrong[:SHOWN]:
        click.echo(f"Wrong final state: {wrong.tracking_no} is {wrong.state}, should be {wrong.expected}.")
    for shipment, states in list(report.found.skipped_steps.items())[:SHOWN]:
        click.echo(f"Skipped steps: {shipment} lacks {', '.join(states)}.")


def _where(row: HistoryRow) -> str:
    clock = datetime.fromtimestamp(row.applied_us / 1e6, UTC).strftime("%H:%M:%S.%f")[:-3]
    return f"partition {row.partition} offset {row.offset}, worker {row.worker}, {clock}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
