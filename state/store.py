"""Records go in, state comes out: the one transaction that applies a batch exactly once."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from sqlite3 import Connection

from lanes.outcome import judge
from lanes.record import Record
from state.database import BUSY_TIMEOUT_S, Database, open_database
from state.errors import OtherSource, StaleOwner
from state.queries import QUERIES
from state.records import Claim, Progress, Source, Totals


class Store:
    """The writing side of the database, for one run of one process."""

    def __init__(self, database: Database, source: Source) -> None:
        self._database = database
        self._connection = database.connection
        self.source = source

    @classmethod
    def open(
        cls,
        path: Path,
        topic: str,
        topic_id: str,
        group_id: str | None = None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> "Store":
        """Open the file, made where it is missing, and bind it to what it follows.

        Without a `group_id` it takes the file's own, made up for a new file: each file has a consumer
        group of its own, so that two files never share out one topic's records. Raises OtherSource when
        the file already follows something else, DatabaseError and DatabaseBusy as `open_database` does.
        """
        database = open_database(path, create=True, busy_timeout_s=busy_timeout_s)
        try:
            with database.transaction() as connection:
                found = connection.execute(QUERIES["get_source"]).fetchone()
                if found:
                    bound = Source(*found)
                    check_source(path, bound, Source(topic, topic_id, group_id or bound.group_id))
                else:
                    bound = Source(topic, topic_id, group_id or f"convoy.{topic}.{secrets.token_hex(4)}")
                    connection.execute(QUERIES["set_source"], asdict(bound))
        except BaseException:
            database.close()
            raise
        return cls(database, bound)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def start_run(self, workers: int, *, version_check: bool) -> int:
        """Note the start of a run; its number, from 1."""
        with self._database.transaction() as connection:
            row = connection.execute(
                QUERIES["start_run"],
                {"started_us": _now_us(), "workers": workers, "version_check": version_check},
            ).fetchone()
        return int(row[0])

    def claim(self, partitions: Sequence[int], owner: str) -> dict[int, Claim]:
        """Become the owner of partitions: raise their epochs and learn where to go on.

        Every earlier owner's claim is void from here on.
        """
        claims = {}
        with self._database.transaction() as connection:
            for partition in partitions:
                epoch, next_offset = connection.execute(
                    QUERIES["claim"], {"partition": partition, "owner": owner}
                ).fetchone()
                claims[partition] = Claim(partition, epoch, next_offset)
        return claims

    def apply(
        self,
        records: Sequence[Record],
        claims: Mapping[int, Claim],
        *,
        run: int,
        worker: int,
        version_check: bool,
    ) -> dict[int, Claim]:
        """Apply records in the order given, all or none; returns the claims with their new offsets.

        Each record's partition must be in `claims`, its offset at or after the claim's. Raises StaleOwner,
        with nothing changed, when a partition has a newer owner or another next offset than its claim.

        1. begin, taking the write lock
        2. fence: every claim is still the newest and its offset is the stored one
        3. read the version of each shipment, write state and history, record by record
        4. keep dead letters
        5. write each partition's next offset
        6. commit
        """
        with self._database.transaction() as connection:  # 1, 6
            touched = {record.partition for record in records}
            for partition in touched:  # 2
                self._check_claim(connection, claims[partition])
            context = {"run": run, "worker": worker}
            self._write_events(connection, records, context, version_check=version_check)  # 3
            self._keep_dead_letters(connection, records, context)  # 4
            moved = dict(claims)
            for record in records:
                moved[record.partition] = Claim(
                    record.partition, claims[record.partition].epoch, record.offset + 1
                )
            connection.executemany(  # 5
                QUERIES["set_next_offset"],
                [{"partition": p, "next_offset": moved[p].next_offset} for p in touched],
            )
        return moved

    def _check_claim(self, connection: Connection, claim: Claim) -> None:
        epoch, next_offset = connection.execute(QUERIES["fence"], {"partition": claim.partition}).fetchone()
        if epoch != claim.epoch:
            reason = f"owner epoch {claim.epoch} is stale: {epoch} owns the partition now"
            raise StaleOwner(self.source.topic, claim.partition, reason)
        if next_offset != claim.next_offset:
            reason = f"expected to go on at offset {claim.next_offset}, the database is at {next_offset}"
            raise StaleOwner(self.source.topic, claim.partition, reason)

    def _write_events(
        self,
        connection: Connection,
        records: Sequence[Record],
        context: Mapping[str, int],
        *,
        version_check: bool,
    ) -> None:
        versions: dict[str, int | None] = {}
        rows = {}
        history = []
        for record in records:
            event = record.event
            if event is None:
                continue
            shipment = event.tracking_no
            if shipment not in versions:
                found = connection.execute(QUERIES["get_version"], (shipment,)).fetchone()
                versions[shipment] = found[0] if found else None
            before = versions[shipment]
            backward, skipped = judge(event.version, before, version_check=version_check)
            row = {
                "tracking_no": shipment,
                "line": event.line,
                "state": event.state.value,
                "version": event.version,
                "arrival_order": event.order,
            }
            if not skipped:
                versions[shipment] = event.version
                rows[shipment] = row
            history.append(
                {
                    **row,
                    **context,
                    "partition": record.partition,
                    "offset": record.offset,
                    "duration": event.duration,
                    "version_before": before,
                    "version_after": versions[shipment],
                    "backward": backward,
                    "skipped": skipped,
                    "applied_us": _now_us(),
                }
            )
        connection.executemany(QUERIES["put_shipment"], rows.values())
        connection.executemany(QUERIES["add_history"], history)

    def _keep_dead_letters(
        self, connection: Connection, records: Sequence[Record], context: Mapping[str, int]
    ) -> None:
        letters = [
            {
                **context,
                "partition": record.partition,
                "offset": record.offset,
                "key": record.key,
                "value": record.value,
                "reason": record.reason,
                "kept_us": _now_us(),
            }
            for record in records
            if record.event is None
        ]
        connection.executemany(QUERIES["add_dead_letter"], letters)

    def note_end(self, claim: Claim, end: int) -> None:
        """Note that the owner of a partition has read to its end, markers included.

        A stale owner's note changes nothing.
        """
        with self._database.transaction() as connection:
            connection.execute(
                QUERIES["set_end_seen"],
                {"partition": claim.partition, "end_seen": end, "epoch": claim.epoch},
            )

    def progress(self) -> list[Progress]:
        """Each partition's progress."""
        return [Progress(*row) for row in self._connection.execute(QUERIES["get_progress"])]

    def totals(self, run: int) -> Totals:
        """Counts over one run."""
        return Totals(*self._connection.execute(QUERIES["get_totals"], {"run": run}).fetchone())


def check_source(path: Path, bound: Source, wanted: Source) -> None:
    """Raise OtherSource when a database does not follow what is wanted."""
    if bound.topic != wanted.topic:
        raise OtherSource(
            f"{path} follows topic {bound.topic}, not {wanted.topic}",
            hint="Name another file with --db, or that topic with --topic.",
            topic=wanted.topic,
        )
    if bound.topic_id != wanted.topic_id:
        raise OtherSource(
            f"topic {bound.topic} was deleted and made anew since {path} was written",
            hint="Its offsets mean other records now. Name a new file with --db to read it from its start.",
            topic=wanted.topic,
        )
    if bound.group_id != wanted.group_id:
        raise OtherSource(
            f"{path} belongs to consumer group {bound.group_id}, not {wanted.group_id}",
            hint="Two groups would each bring every record. Leave --group out, or use another --db.",
            topic=wanted.topic,
        )


def _now_us() -> int:
    return time.time_ns() // 1000
