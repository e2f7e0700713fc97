"""Records go in, state comes out: the one transaction that applies a batch exactly once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from sqlite3 import Connection

from lanes.bad_records import OnBadRecord
from lanes.event import Event, HistoryEvent, StateEvent
from lanes.outcome import judge
from lanes.record import Record
from state.database import now_us
from state.dead_letters import park, records_to_retry, resolve, was_passed
from state.errors import StaleOwner
from state.queries import QUERIES
from state.records import Claim, Timing
from state.store import Store

NOT_PACED = Timing()


class Applier:
    """Applies records for one worker of one run."""

    def __init__(
        self,
        store: Store,
        run: int,
        worker: int,
        *,
        version_check: bool,
        on_bad_record: OnBadRecord = OnBadRecord.SKIP,
    ) -> None:
        self._store = store
        self._context = {"run": run, "worker": worker}
        self._version_check = version_check
        self._park = on_bad_record is OnBadRecord.PARK_KEY

    def apply_owned(
        self, records: Sequence[Record], claims: Mapping[int, Claim], timing: Timing = NOT_PACED
    ) -> dict[int, Claim]:
        """Apply records of owned partitions in the order given, all or none; the claims with new offsets.

        Each record's partition must be in `claims`, its offset at or after the claim's. Raises StaleOwner,
        with nothing changed, when a partition has a newer owner or another next offset than its claim.

        1. begin, taking the write lock
        2. fence: every claim is still the newest and its offset is the stored one
        3. read the version of each shipment, write state and history
        4. keep dead letters, and behind them the later records of a parked key
        5. write each partition's next offset: last offset + 1, whatever holes lie between
        6. commit
        """
        last = {record.partition: record.offset for record in records}
        moved = {**claims, **{p: replace(claims[p], next_offset=last[p] + 1) for p in last}}
        with self._store.database.transaction() as connection:  # 1, 6
            for partition in last:  # 2
                self._check_claim(connection, claims[partition])
            kept = park(connection, records) if self._park else records
            epochs = {partition: claims[partition].epoch for partition in last}
            self._write_events(connection, kept, epochs, timing)  # 3
            self._keep_dead_letters(connection, kept, epochs)  # 4
            connection.executemany(  # 5
                QUERIES["set_next_offset"],
                [{"partition": p, "next_offset": moved[p].next_offset} for p in last],
            )
        return moved

    def apply_shared(self, record: Record, timing: Timing = NOT_PACED) -> bool:
        """Apply a record that a share group handed out; False when it was applied before.

        Nobody owns anything here. The position is the fence: a second delivery changes nothing.
        """
        with self._store.database.transaction() as connection:
            if self._store.is_done(record.partition, record.offset):
                return False
            self._write_events(connection, [record], {}, timing)
            self._keep_dead_letters(connection, [record], {})
        return True

    def retry(self, partition: int, offset: int, value: bytes | None) -> tuple[list[int], list[int]]:
        """Apply a dead letter, with another value where one is given, and what is parked behind it.

        Returns the offsets in the order tried, and those of them that were skipped. What is parked follows
        in offset order, up to the next one that is no event. Where later events of the shipment went past
        the letter, an event older than the row is skipped, whatever the run's version check. Raises
        NoDeadLetter and BadEvent, with nothing changed.
        """
        with self._store.database.transaction() as connection:
            records = records_to_retry(connection, partition, offset, value)
            applier = self
            if was_passed(connection, records[0]):
                applier = Applier(
                    self._store, self._context["run"], self._context["worker"], version_check=True
                )
            entries = applier._write_events(connection, records, {}, NOT_PACED)
            resolve(connection, records)
        return [r.offset for r in records], [
            r.offset for r, e in zip(records, entries, strict=True) if e["skipped"]
        ]

    def _check_claim(self, connection: Connection, claim: Claim) -> None:
        row = connection.execute(QUERIES["fence"], {"partition": claim.partition}).fetchone()
        epoch, next_offset = row
        if epoch != claim.epoch:
            reason = f"owner epoch {claim.epoch} is stale: {epoch} owns the partition now"
            raise StaleOwner(self._store.source.topic, claim.partition, reason)
        if next_offset != claim.next_offset:
            reason = f"expected to go on at offset {claim.next_offset}, the database is at {next_offset}"
            raise StaleOwner(self._store.source.topic, claim.partition, reason)

    def _write_events(
        self,
        connection: Connection,
        records: Sequence[Record],
        epochs: Mapping[int, int],
        timing: Timing,
    ) -> list[dict[str, str | int | None]]:
        """Judge each state event against the row as the events before it left it; the history's entries."""
        versions: dict[str, int | None] = {}
        rows = {}
        history = []
        for record in records:
            event = record.event
            if event is None:
                continue
            entry = self._entry(record, event, epochs.get(record.partition), timing)
            if isinstance(event, StateEvent):
                shipment = event.tracking_no
                if shipment not in versions:
                    found = connection.execute(QUERIES["get_version"], (shipment,)).fetchone()
                    versions[shipment] = found[0] if found else None
                before = versions[shipment]
                backward, skipped = judge(event.version, before, version_check=self._version_check)
                if not skipped:
                    versions[shipment] = event.version
                    rows[shipment] = entry
                entry.update(
                    state=event.state.value,
                    version=event.version,
                    version_before=before,
                    version_after=versions[shipment],
                    backward=backward,
                    skipped=skipped,
                )
            history.append(entry)
        connection.executemany(QUERIES["put_shipment"], rows.values())
        connection.executemany(QUERIES["add_history"], history)
        return history

    def _entry(
        self, record: Record, event: Event, epoch: int | None, timing: Timing
    ) -> dict[str, str | int | None]:
        """The history row of an event that touches no state; a state event fills in the rest."""
        return {
            **self._context,
            "partition": record.partition,
            "offset": record.offset,
            "tracking_no": event.tracking_no,
            "line": event.line,
            "state": event.scan if isinstance(event, HistoryEvent) else None,
            "version": None,
            "duration": event.duration,
            "arrival_order": event.order,
            "version_before": None,
            "version_after": None,
            "backward": False,
            "skipped": False,
            "owner_epoch": epoch,
            "delivery": record.delivery,
            "started_us": timing.started_us,
            "finished_us": timing.finished_us,
            "applied_us": now_us(),
        }

    def _keep_dead_letters(
        self, connection: Connection, records: Sequence[Record], epochs: Mapping[int, int]
    ) -> None:
        letters = [
            {
                **self._context,
                "partition": record.partition,
                "offset": record.offset,
                "key": record.key,
                "value": record.value,
                "reason": record.reason,
                "parked": record.parked,
                "owner_epoch": epochs.get(record.partition),
                "kept_us": now_us(),
            }
            for record in records
            if record.event is None
        ]
        connection.executemany(QUERIES["add_dead_letter"], letters)
