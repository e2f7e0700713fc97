"""Records of a share group that nobody is given any more: applied by the run itself, from the topic.

A broker hands a record out so often (5 times by default) and no more: when its workers died each time, the
record is passed over, and nobody is told. The topic still has it, so it is not lost to the table.
"""

import logging
import time

from broker.reading import read_records
from broker.settings import Connection
from broker.topics import OffsetRange, Topic
from consumer.watch import RecordWatch
from state.applying import Applier
from state.store import Store

log = logging.getLogger(__name__)

PATIENCE_S = 45.0
"""How long a record may be the first open one of its partition: longer than a broker's lock of 30 s."""

RUN_ITSELF = -1
"""The worker's number in the history, where no worker applied it."""


class Leftovers:
    """Takes over the first open record of a partition when it stays that for PATIENCE_S.

    Every record before it is done, so a lane's order is kept. A worker that still holds it finds it applied.
    """

    def __init__(
        self, connection: Connection, topic: Topic, store: Store, run: int, *, version_check: bool
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._applier = Applier(store, run, RUN_ITSELF, version_check=version_check)
        self._first: dict[int, tuple[int, float]] = {}
        """Partition to its first open offset, and since when it is that."""

    def turn(self, watch: RecordWatch) -> None:
        """Note what is open, and apply what was open for too long. Raises what reading and applying raise."""
        now_s = time.monotonic()
        open_now = watch.first_open()
        self._first = {
            partition: self._first[partition]
            if self._first.get(partition, (None, 0.0))[0] == offset
            else (offset, now_s)
            for partition, offset in open_now.items()
        }
        for partition, (offset, since_s) in self._first.items():
            if now_s - since_s > PATIENCE_S:
                self._apply(partition, offset)
                self._first[partition] = (offset, now_s)

    def _apply(self, partition: int, offset: int) -> None:
        here = {partition: OffsetRange(offset, offset + 1)}
        for record in read_records(self._connection, self._topic, here):
            if self._applier.apply_shared(record):
                log.warning(
                    "%s[%s]@%s was handed to no worker for %.0f s: applied from the topic",
                    *(self._topic.name, partition, offset, PATIENCE_S),
                )
