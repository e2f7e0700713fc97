"""Records that are no events: mixed in, first and last, a hundred in a row, and nowhere to send them."""

import time

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from chaos.arena import Arena
from chaos.gang import Gang
from chaos.load import bad_run, with_bad
from chaos.saboteurs import Sabotage
from chaos.scene import Ground, Outcome, Play, conclude

IN_A_ROW = 100


def one_in_a_hundred(ground: Ground, wanted: int) -> Outcome:
    """1 % of six kinds; landed is the number of sources found in the dead-letter topic."""
    arena = ground.arena("bad-one-percent")
    arena.send(list(with_bad(arena.shipments(wanted * 20), 100)))
    return _with_sources(arena, wanted)


def at_both_ends(ground: Ground, wanted: int) -> Outcome:
    """The first and the last record of each partition, and a hundred in a row in the middle of one."""
    arena = ground.arena("bad-ends-and-row")
    first_and_last = [item for partition in range(arena.partitions) for item in bad_run(1, partition)]
    rounds = max(1, wanted // (IN_A_ROW + 2 * arena.partitions))
    for _ in range(rounds):
        arena.send(first_and_last)
        arena.send(arena.shipments(20))
        arena.send(bad_run(IN_A_ROW, partition=3))
        arena.send(arena.shipments(20))
        arena.send(first_and_last)
    return _with_sources(arena, rounds * (IN_A_ROW + 2 * arena.partitions))


def _with_sources(arena: Arena, wanted: int) -> Outcome:
    outcome = conclude(arena, wanted, 0)
    return Outcome(wanted, len(arena.letter_sources()), outcome.judged)


def nowhere_to_send(ground: Ground, wanted: int) -> Outcome:
    """The dead-letter topic refuses everything for a while; lanes go on, and letters arrive later.

    Landed are letters that were kept in the table while their topic refused them.
    """
    arena = ground.arena("dead-letter-topic-refuses")
    topic = f"{arena.name}.dead-letter"
    admin = AdminClient(arena.connection.client())
    admin.create_topics([NewTopic(topic, 1, config={"max.message.bytes": "1"})])[topic].result(10)
    arena.send(list(with_bad(arena.shipments(wanted), 5)))
    with Gang(arena, lambda _: Sabotage(arena.log)) as gang:
        gang.until(lambda: arena.done() == arena.sent and arena.noted("not delivered") >= wanted)
        landed = min(arena.unsent(), arena.noted("not delivered"))
    _allow(admin, topic)
    return conclude(arena, wanted, landed)


def _allow(admin: AdminClient, topic: str) -> None:
    entry = ConfigEntry("max.message.bytes", "1000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(10)
    deadline = time.monotonic() + 10
    while admin.list_topics(topic, timeout=5).topics[topic].error is not None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic} does not show")
        time.sleep(0.05)


BAD_RECORDS: dict[str, Play] = {
    "bad records, 1 % of six kinds": one_in_a_hundred,
    "bad records first, last, 100 in a row": at_both_ends,
    "dead-letter topic refuses": nowhere_to_send,
}
