"""Why each backward write happened, decided from topic and history alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from analysis.observation import Observation
from lanes.dispatch import Dispatch
from lanes.partitioner import Partitioner
from lanes.record import Record
from state.records import HistoryRow

FEWEST_STRAY_KEYS = 3
"""With so many, chance finds a smaller count that fits in about one topic of its partitions squared."""


class Cause(StrEnum):
    """What let an older event be applied after a newer one."""

    STREAM = "the stream itself goes back: the later event has the lower version"
    REPLAY = "replay: the same event was applied before, from another position"
    SENT_OUT_OF_ORDER = "the producer sent them out of order into one partition"
    NO_KEY = "no key: the two lie in different partitions"
    OTHER_KEY = "different keys: the two lie in different partitions"
    OTHER_PARTITIONER = "one key, two partitioners: murmur2 put one, CRC32 the other"
    PARTITIONS_ADDED = "partitions were added: the key moved to another one"
    RETRIED = "a dead letter was retried after newer events had gone past it"
    REDELIVERY = "redelivery: the share group handed it out again, later"
    SEVERAL_WORKERS = "several workers in share dispatch: the newer event was done first"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BackwardWrite:
    """An older event that was applied after a newer one of its shipment. Both are history rows."""

    older: HistoryRow
    newer: HistoryRow
    cause: Cause


def explain_backward_writes(seen: Observation) -> list[BackwardWrite]:
    """Every backward write in the order applied, with the event whose version it went below."""
    evidence = _Evidence(seen)
    row_now: dict[str, HistoryRow] = {}
    applied: set[tuple[str, int]] = set()
    explained = []
    for row in seen.history:
        event = (row.tracking_no, row.arrival_order)
        if row.backward:
            newer = row_now[row.tracking_no]
            cause = Cause.REPLAY if event in applied else evidence.cause(row, newer)
            explained.append(BackwardWrite(row, newer, cause))
        applied.add(event)
        if row.version is not None and not row.skipped:
            row_now[row.tracking_no] = row
    return explained


class _Evidence:
    """What the topic says about where its records are and why."""

    def __init__(self, seen: Observation) -> None:
        self._records = {(record.partition, record.offset): record for record in seen.records}
        self._retried = {
            (letter.partition, letter.offset) for letter in seen.dead_letters if letter.resolved_us
        }
        self._dispatch_of = {run.run: run.dispatch for run in seen.runs}
        self._partitions = seen.partitions
        self._grown = has_grown(seen.records, seen.partitions)

    def cause(self, older: HistoryRow, newer: HistoryRow) -> Cause:
        """Why the older event was applied after the newer one."""
        if (older.partition, older.offset) in self._retried:
            return Cause.RETRIED
        if older.arrival_order > newer.arrival_order:
            return Cause.STREAM
        if older.partition == newer.partition and older.offset > newer.offset:
            return Cause.SENT_OUT_OF_ORDER
        if self._dispatch_of.get(older.run) is Dispatch.SHARE:
            return Cause.REDELIVERY if older.delivery > 1 else Cause.SEVERAL_WORKERS
        pair = [self._records.get((row.partition, row.offset)) for row in (older, newer)]
        if older.partition == newer.partition or pair[0] is None or pair[1] is None:
            return Cause.UNKNOWN
        return self._cause_of_split(pair[0], pair[1])

    def _cause_of_split(self, older: Record, newer: Record) -> Cause:
        """Why two events of one shipment are in different partitions."""
        if older.key is None and newer.key is None:
            return Cause.NO_KEY
        if older.key != newer.key:
            return Cause.OTHER_KEY
        if self._grown:
            # Asked first: where a key was before may by chance be its place under the other rule.
            return Cause.PARTITIONS_ADDED
        if all(
            any(fits(record, rule, self._partitions) for rule in Partitioner) for record in (older, newer)
        ):
            # In different partitions, so not by the same rule.
            return Cause.OTHER_PARTITIONER
        return Cause.UNKNOWN


def has_grown(records: Sequence[Record], partitions: int) -> bool:
    """Whether the topic had fewer partitions before: one smaller count and today's explain every key.

    A key or two that are out of place fit some smaller count by chance, so there must be
    FEWEST_STRAY_KEYS, and all of them must fit the same one.
    """
    keyed = [record for record in records if record.key]
    for rule in Partitioner:
        strays = [record for record in keyed if not fits(record, rule, partitions)]
        if len({record.key for record in strays}) >= FEWEST_STRAY_KEYS and any(
            all(fits(record, rule, fewer) for record in strays) for fewer in range(1, partitions)
        ):
            return True
    return False


def fits(record: Record, rule: Partitioner, partitions: int) -> bool:
    """Whether a rule puts the record's key where it is."""
    return rule.partition_of(record.key, partitions) == record.partition
