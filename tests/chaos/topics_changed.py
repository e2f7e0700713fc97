"""Topics and tables that are not what they were: grown, truncated, made anew, restored from a copy."""

import shutil
import sqlite3
import time
from contextlib import closing

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from analysis.verdict import Holds
from broker.topics import Topics
from chaos.arena import Arena, Judged
from chaos.gang import Gang
from chaos.saboteurs import Sabotage
from chaos.scene import Ground, Outcome, Play, conclude
from consumer.errors import OffsetGone
from lanes.errors import ConvoyError
from state.errors import OtherSource

GROWN = 12
GONE_TIMEOUT_S = 30.0


def grow(ground: Ground, wanted: int) -> Outcome:
    """6 to 12 partitions while workers run; landed where new partitions were applied from offset 0.

    Shipments that straddle the change have no lane of their own, so none does here; the analysis names them.
    """
    landed = 0
    outcomes = []
    for _ in range(wanted):
        arena = ground.arena("grown")
        with Gang(arena, lambda _: Sabotage(arena.log)) as gang:  # noqa: B023
            arena.send(arena.shipments(100))
            gang.until(lambda: arena.done() > 100)  # noqa: B023
            admin = AdminClient(arena.connection.client())
            admin.create_partitions([NewPartitions(arena.name, GROWN)])[arena.name].result(10)
            arena.send(arena.shipments(200))
            new = "select count(distinct partition) from history where offset = 0"
            landed += gang.until(lambda: arena.number(new) == GROWN, 60)  # noqa: B023
        outcomes.append(conclude(arena, 1, 1))
    return _together(outcomes, wanted, landed)


def _together(outcomes: list[Outcome], wanted: int, landed: int) -> Outcome:
    judged = [outcome.judged for outcome in outcomes]
    worst = next((each for each in judged if each.holds is not Holds.TRUE), judged[0])
    total = Judged(
        worst.holds,
        worst.reasons,
        sum(each.records for each in judged),
        sum(each.lost for each in judged),
        sum(each.duplicated for each in judged),
        sum(each.refused for each in judged),
        max(each.recovery_s for each in judged),
    )
    return Outcome(wanted, landed, total)


def truncate_applied(ground: Ground, wanted: int) -> Outcome:
    """Retention deletes what is applied: the next run goes on, with nothing lost."""
    arena = ground.arena("truncated-below")
    landed = 0
    for _ in range(wanted):
        arena.send(arena.shipments(20))
        arena.drain()
        landed += _delete_before(arena, ahead=0)
        arena.send(arena.shipments(20))
    return conclude(arena, wanted, landed)


def truncate_unapplied(ground: Ground, wanted: int) -> Outcome:
    """Retention deletes what was never applied: refused by name, and nothing is written."""
    outcomes = []
    for _ in range(wanted):
        arena = ground.arena("truncated-beyond")
        arena.send(arena.shipments(40))
        outcomes.append(conclude(arena, 1, 1))
        arena.send(arena.shipments(40))
        _delete_before(arena, ahead=3)
        outcomes[-1] = _refused(arena, outcomes[-1], OffsetGone)
    return _together(outcomes, wanted, sum(outcome.landed for outcome in outcomes))


def _delete_before(arena: Arena, ahead: int) -> bool:
    """Let each partition begin at, or so much behind, the table's next offset; whether the log shows it."""
    rows = arena.rows("select partition, next_offset from progress where next_offset is not null")
    progress = {partition: next_offset for partition, next_offset in rows}  # noqa: C416
    places = [TopicPartition(arena.name, p, offset + ahead) for p, offset in progress.items()]
    admin = AdminClient(arena.connection.client())
    answers = admin.delete_records(places)
    return all(answer.result(10).low_watermark >= progress[tp.partition] for tp, answer in answers.items())


def make_anew(ground: Ground, wanted: int) -> Outcome:
    """The topic is deleted and made again under its name, with more records: refused by name."""
    outcomes = []
    for _ in range(wanted):
        arena = ground.arena("made-anew")
        arena.send(arena.shipments(20))
        judged = conclude(arena, 1, 1)
        topics = Topics(arena.connection)
        topics.delete(arena.name)
        deadline = time.monotonic() + GONE_TIMEOUT_S
        while topics.find(arena.name) is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        topics.create(arena.name, arena.partitions)
        arena.send(arena.shipments(40))
        outcomes.append(_refused(arena, judged, OtherSource))
    return _together(outcomes, wanted, sum(outcome.landed for outcome in outcomes))


def _refused(arena: Arena, judged: Outcome, refusal: type[ConvoyError]) -> Outcome:
    """The outcome before, landed where a run refuses to go on, names the topic, and writes nothing."""
    before = arena.done()
    try:
        arena.drain(timeout_s=20)
    except refusal as error:
        named = arena.name in f"{error.topic} {error}"
        return Outcome(1, int(named and arena.done() == before), judged.judged)
    return Outcome(1, 0, judged.judged)


def restore_older(ground: Ground, wanted: int) -> Outcome:
    """The table is put back to an older copy; the next run goes on from there, once more, to the same end."""
    arena = ground.arena("restored")
    landed = 0
    for _ in range(wanted):
        arena.send(arena.shipments(20))
        arena.drain()
        copy = arena.folder / "older.db"
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(arena.db)) as now, closing(sqlite3.connect(copy)) as then:
            now.backup(then)
        older = arena.done()
        arena.send(arena.shipments(40))
        arena.drain()
        newer = arena.done()
        for file in arena.folder.glob("states.db*"):
            file.unlink()
        shutil.copy(copy, arena.db)
        landed += arena.done() == older < newer
    return conclude(arena, wanted, landed)


TOPICS_CHANGED: dict[str, Play] = {
    "partitions 6 to 12 under load": grow,
    "log truncated, all of it applied": truncate_applied,
    "log truncated above the table: refused": truncate_unapplied,
    "topic made anew: refused": make_anew,
    "table restored from an older copy": restore_older,
}
