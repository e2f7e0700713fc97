"""Live arrangements in words: figures of model and run side by side, and where they agree."""

from collections.abc import Mapping, Sequence

import click

from analysis.beside import ModelFigures
from console.output import print_table, stdout
from convoy.live import LiveResult
from lanes.cost import selective_ratio
from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from lanes.lesson import lesson_events
from lanes.model import CONVOY, FREE, Arrangement, LaneOf, kafka_figures, lane_loads, lesson_figures
from lanes.outcome import wrong_over_ties
from lanes.schedule import ticks

SELECTIVE_SHARE = 4 / 7
"""The lesson's share of events that erase a state: four of seven."""


def live_ticks(result: LiveResult) -> int:
    """What the clock measured."""
    beside = result.report.beside
    return ticks(beside.live) if beside and beside.live else 0


def predicted(result: LiveResult) -> ModelFigures:
    """The model of the dispatch that the run had."""
    beside = result.report.beside
    if beside is None or beside.predicted is None:
        raise ValueError(f"{result.plan.name} has no run to predict")
    return beside.predicted


def lanes_of(result: LiveResult) -> tuple[object, object, object, object]:
    """Lanes and busiest lane: both as the model has them, then both as the topic shows them.

    In share dispatch lanes are key lanes, kept by the gate. In group dispatch they are partition lanes;
    without a key the model cannot know them beforehand.
    """
    plan, found = result.plan, result.report.found
    if plan.dispatch is Dispatch.GROUP:
        live = found.partition_lanes, found.busiest_lane.ticks
        if plan.key is KeyChoice.NONE:
            return "-", "-", *live
        figures = kafka_figures(plan.events, plan.workers, plan.partitions, plan.key)
        return figures.lanes, figures.busiest_lane, *live
    lane_of = _lane_of(result)
    seen = [record.event for record in result.report.seen.records if record.event is not None]
    model, topic = lane_loads(plan.events, lane_of), lane_loads(seen, lane_of)
    return len(model), max(model.values(), default=0), len(topic), max(topic.values(), default=0)


def _lane_of(result: LiveResult) -> LaneOf:

    return Arrangement("", result.plan.key, selective=result.plan.selective).lane_of


def print_section(title: str, results: Sequence[LiveResult]) -> None:
    """One table: a figure a row, model and live of each arrangement side by side."""
    columns = ["figure"]
    for result in results:
        columns += [f"{_short(result)}\nmodel", "\nlive"]
    print_table(f"{title} ({results[0].plan.workers} workers)", columns, _rows(results))
    for result in results:
        _print_wrong(result)
    click.echo("")


def _short(result: LiveResult) -> str:
    plan = result.plan
    if plan.dispatch is Dispatch.SHARE:
        return plan.name
    return f"{plan.name}, {plan.partitions}p"


def _rows(results: Sequence[LiveResult]) -> list[list[object]]:
    rows: dict[str, list[object]] = {
        name: []
        for name in (
            "backward writes",
            "wrong final states",
            "skipped steps",
            "ticks",
            "lanes",
            "busiest lane",
        )
    }
    for result in results:
        model, found = predicted(result), result.report.found
        rows["backward writes"] += [model.backward_writes, len(found.backward)]
        rows["wrong final states"] += [model.wrong_final_state, len(found.wrong)]
        rows["skipped steps"] += [model.skipped, found.skipped]
        rows["ticks"] += [model.tick, live_ticks(result)]
        lanes, busiest, live_lanes, live_busiest = lanes_of(result)
        rows["lanes"] += [lanes, live_lanes]
        rows["busiest lane"] += [busiest, live_busiest]
    return [[name, *cells] for name, cells in rows.items()]


def _print_wrong(result: LiveResult) -> None:
    beside = result.report.beside
    wrong = [each.tracking_no for each in result.report.found.wrong]
    if wrong:
        click.echo(f"{_short(result)}: wrong at the end: {', '.join(wrong)}.")
    if (
        beside is None
        or not beside.live
        or result.plan.version_check
        or result.plan.key is not KeyChoice.NONE
    ):
        return
    model, live = predicted(result).wrong_over_ties, wrong_over_ties(beside.live)
    click.echo(
        f"{_short(result)}: wrong over every order of events of one tick: model {model[0]} to {model[1]}, "
        f"live {live[0]} to {live[1]}."
    )


def print_selective(results: Sequence[LiveResult]) -> None:
    """The measured ratio of the selective convoy beside the lesson's computed one."""
    free, whole, selective = (live_ticks(result) for result in results)
    events = lesson_events()
    workers = results[0].plan.workers
    ratio = lesson_figures(events, workers, CONVOY).tick / lesson_figures(events, workers, FREE).tick
    computed = selective_ratio(SELECTIVE_SHARE, ratio)
    click.echo(
        f"Selective beside free, measured: {selective}/{free} = {selective / free:.3f}; everything in the "
        f"convoy: {whole}/{free} = {whole / free:.3f}. The lesson computes {computed:.3f} from its ratio "
        f"{ratio:.3f} and a share of 4/7: it weighs events by number, the clock weighs them by work, and "
        "events without a lane fill the gaps that waiting leaves.\n"
    )


def print_agreement(results: Sequence[LiveResult]) -> None:
    """Swimlanes of the first arrangement, each difference, and the count of figures that agree."""
    lanes = results[0].report.swimlanes
    if lanes is not None:
        plan = results[0].plan
        click.echo(f"{plan.name} in {plan.dispatch} dispatch, tick by tick:")
        stdout().print(lanes)
    for result in results:
        if result.difference:
            click.echo(f"{_short(result)} differs: {result.difference}")
    agreeing, total = agreement(results)
    click.echo(f"Model and live agree in {agreeing} of {total} figures.")


def agreement(results: Sequence[LiveResult]) -> tuple[int, int]:
    """Figures that agree, and all figures compared."""
    compared = [figure for result in results for figure in result.compared]
    return sum(figure.agrees for figure in compared), len(compared)


def as_object(results: Mapping[str, Sequence[LiveResult]]) -> dict[str, object]:
    """The comparison as JSON."""
    everything = [result for section in results.values() for result in section]
    agreeing, total = agreement(everything)
    return {
        "arrangements": [_result_object(result) for result in everything],
        "figures_agreeing": agreeing,
        "figures": total,
    }


def _result_object(result: LiveResult) -> dict[str, object]:
    plan, model, found = result.plan, predicted(result), result.report.found
    beside = result.report.beside
    lanes, busiest, live_lanes, live_busiest = lanes_of(result)
    return {
        "name": plan.name,
        "dispatch": plan.dispatch.value,
        "key": plan.key.value,
        "partitions": plan.partitions,
        "workers": plan.workers,
        "selective": plan.selective,
        "version_check": plan.version_check,
        "seed": plan.seed,
        "assignment": {str(worker): owned for worker, owned in result.run.assignment.items()},
        "model": {
            "backward_writes": model.backward_writes,
            "wrong_final_state": model.wrong_final_state,
            "wrong": model.wrong,
            "skipped": model.skipped,
            "tick": model.tick,
            "lanes": None if lanes == "-" else lanes,
            "busiest_lane": None if busiest == "-" else busiest,
            "wrong_final_state_over_ties": model.wrong_over_ties,
        },
        "live": {
            "backward_writes": len(found.backward),
            "wrong_final_state": len(found.wrong),
            "wrong": [wrong.tracking_no for wrong in found.wrong],
            "skipped": found.skipped,
            "tick": live_ticks(result),
            "lanes": live_lanes,
            "busiest_lane": live_busiest,
            "wrong_final_state_over_ties": wrong_over_ties(beside.live) if beside and beside.live else None,
        },
        "difference": result.difference,
    }
