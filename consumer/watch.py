"""How far the database is behind the topic, looked at now and then while a run goes on."""

import logging
import time
from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from broker.errors import BrokerUnreachable
from broker.reading import read_records
from broker.settings import Connection
from broker.topics import OffsetRange, Topic, Topics
from lanes.dispatch import Dispatch
from state.records import Progress
from state.store import Store, check_source

log = logging.getLogger(__name__)

LOOK_INTERVAL_S = 0.2
TOPIC_INTERVAL_S = 2.0
BROKER_PATIENCE_S = 60.0

Progressed = Callable[[int, int], None]
"""Takes how much is behind us and how much there is."""


class Watch(ABC):
    """Looks when it is time again. A broker may be away for BROKER_PATIENCE_S: workers reconnect."""

    def __init__(self, topics: Topics, topic: Topic, store: Store, on_progress: Progressed) -> None:
        self._topics = topics
        self.topic = topic
        """The topic as it was at the last look: partitions may be added while a run goes on."""
        self._store = store
        self._on_progress = on_progress
        self._next_look = 0.0
        self._next_topic_look = time.monotonic() + TOPIC_INTERVAL_S
        self._answered = time.monotonic()
        self._away = False
        self.caught_up = False

    def look(self, halted: Collection[int]) -> None:
        """Set `caught_up`, with halted partitions left out of account.

        Raises BrokerUnreachable when patience runs out, TopicMissing or OtherSource when the topic is
        deleted or made anew while we run.
        """
        if time.monotonic() < self._next_look:
            return
        try:
            self._look_at_topic()
            offsets = self._topics.offsets(self.topic)
            done, total = self._measure({p: here for p, here in offsets.items() if p not in halted})
        except BrokerUnreachable as error:
            if time.monotonic() - self._answered > BROKER_PATIENCE_S:
                raise
            log.warning("%s; waiting for it", error)
            self._away = True
            return
        self._away = False
        self._answered = time.monotonic()
        self._next_look = self._answered + LOOK_INTERVAL_S
        self.caught_up = done >= total
        self._on_progress(done, total)

    def look_once_more(self, halted: Collection[int]) -> bool:
        """Look at everything now, the topic's partitions too; whether all is applied.

        A broker that is away is not waited for.
        """
        if not self._away:
            self._next_look = self._next_topic_look = 0.0
            self.look(halted)
        return self.caught_up

    def records_left(self) -> int:
        """About how much is left to apply, at this moment."""
        done, total = self._measure(self._topics.offsets(self.topic))
        return total - done

    def _look_at_topic(self) -> None:
        if time.monotonic() < self._next_topic_look:
            return
        self.topic = self._topics.get(self.topic.name)
        source = self._store.source
        check_source(self._store.database.path, source, replace(source, topic_id=self.topic.topic_id))
        self._next_topic_look = time.monotonic() + TOPIC_INTERVAL_S

    @abstractmethod
    def _measure(self, offsets: Mapping[int, OffsetRange]) -> tuple[int, int]:
        """How much is done, and how much there is."""


class OffsetWatch(Watch):
    """Group dispatch: progress is an offset a partition, so offsets are compared."""

    def _measure(self, offsets: Mapping[int, OffsetRange]) -> tuple[int, int]:
        reached = reached_offsets(self._store.progress(), offsets)
        done = sum(min(reached[p], here.high) - here.low for p, here in offsets.items())
        return done, sum(here.high - here.low for here in offsets.values())


class RecordWatch(Watch):
    """Share dispatch: records are done in any order, so each is looked up, from the first open one on.

    The topic is read for it, since offsets have holes; each record is read once. Two counts would not do:
    what is done stays in the database when the topic has long deleted it.
    """

    def __init__(
        self, connection: Connection, topics: Topics, topic: Topic, store: Store, on_progress: Progressed
    ) -> None:
        super().__init__(topics, topic, store, on_progress)
        self._connection = connection
        self._read_to: dict[int, int] = {}
        self._records = 0
        self._open: dict[int, deque[int]] = defaultdict(deque)
        """Partition to the offsets from the first that was not done at the last look."""

    def first_open(self) -> dict[int, int]:
        """Partition to the first offset that was not done at the last look, where there is one."""
        return {partition: waiting[0] for partition, waiting in self._open.items() if waiting}

    def _measure(self, offsets: Mapping[int, OffsetRange]) -> tuple[int, int]:
        unread = {
            partition: OffsetRange(max(here.low, self._read_to.get(partition, 0)), here.high)
            for partition, here in offsets.items()
        }
        records = read_records(self._connection, self.topic, unread)
        for partition, offset in [(record.partition, record.offset) for record in records]:
            self._open[partition].append(offset)
            self._records += 1
        self._read_to = {partition: here.high for partition, here in offsets.items()}
        for partition, waiting in self._open.items():
            low = offsets[partition].low if partition in offsets else 0
            # What the topic has deleted will never be handed out.
            while waiting and (waiting[0] < low or self._store.is_done(partition, waiting[0])):
                waiting.popleft()
        return self._records - sum(map(len, self._open.values())), self._records


def watch_for(
    dispatch: Dispatch,
    connection: Connection,
    topics: Topics,
    topic: Topic,
    store: Store,
    on_progress: Progressed,
) -> Watch:
    """The watch that fits a dispatch."""
    if dispatch is Dispatch.SHARE:
        return RecordWatch(connection, topics, topic, store, on_progress)
    return OffsetWatch(topics, topic, store, on_progress)


def reached_offsets(progress: list[Progress], offsets: Mapping[int, OffsetRange]) -> dict[int, int]:
    """Partition to the offset up to which nothing is left to read.

    An end counts as reached when the owner met it while reading: markers behind the last record have
    offsets of their own, and counting records would never get there.
    """
    applied = {p.partition: p.reached for p in progress}
    return {partition: max(applied.get(partition, 0), here.low) for partition, here in offsets.items()}
