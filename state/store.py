"""The writing side of the database but for the apply: what it follows, its runs, who owns what."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from state.database import BUSY_TIMEOUT_S, Database, now_us, open_database
from state.errors import OtherDispatch, OtherSource
from state.queries import QUERIES
from state.records import Claim, Progress, Source, Totals, UnsentLetter


class Store:
    """One open database file, bound to the topic that it follows."""

    def __init__(self, database: Database, source: Source) -> None:
        self._database = database
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

    @property
    def database(self) -> Database:
        """The open file."""
        return self._database

    def start_run(
        self,
        workers: int,
        *,
        version_check: bool,
        dispatch: Dispatch = Dispatch.GROUP,
        gate: KeyChoice = KeyChoice.NONE,
        selective: bool = False,
        tick_us: int | None = None,
    ) -> int:
        """Note the start of a run; its number, from 1. Raises OtherDispatch after another dispatch."""
        values = {
            "started_us": now_us(),
            "workers": workers,
            "version_check": version_check,
            "dispatch": dispatch.value,
            "gate": gate.value,
            "selective": selective,
            "tick_us": tick_us,
        }
        with self._database.transaction() as connection:
            before = connection.execute(QUERIES["get_last_dispatch"]).fetchone()
            if before is not None and before[0] != dispatch.value:
                raise OtherDispatch(self._database.path, before[0], dispatch.value)
            row = connection.execute(QUERIES["start_run"], values).fetchone()
        return int(row[0])

    def set_zero(self, run: int, zero_us: int) -> int:
        """Set the run's tick 0, once; what it is (the first one wins)."""
        with self._database.transaction() as connection:
            connection.execute(QUERIES["set_zero"], {"run": run, "zero_us": zero_us})
            (zero,) = connection.execute(QUERIES["get_zero"], (run,)).fetchone()
        return int(zero)

    def claim(self, partitions: Sequence[int], owner: str) -> dict[int, Claim]:
        """Become the owner of partitions: raise their epochs and learn where to go on.

        Every earlier owner's claim is void from here on.
        """
        claims = {}
        with self._database.transaction() as connection:
            for partition in partitions:
                epoch, next_offset, end_seen = connection.execute(
                    QUERIES["claim"], {"partition": partition, "owner": owner}
                ).fetchone()
                noted = {"partition": partition, "owner_epoch": epoch, "owner": owner, "claimed_us": now_us()}
                connection.execute(QUERIES["add_claim"], noted)
                claims[partition] = Claim(partition, epoch, next_offset, end_seen)
        return claims

    def note_end(self, claim: Claim, end: int) -> Claim:
        """Note that the owner of a partition has read to its end, markers included; the claim with it.

        A stale owner's note changes nothing.
        """
        with self._database.transaction() as connection:
            connection.execute(
                QUERIES["set_end_seen"],
                {"partition": claim.partition, "end_seen": end, "epoch": claim.epoch},
            )
        return replace(claim, end_noted=end)

    def progress(self) -> list[Progress]:
        """Each partition's progress."""
        return [Progress(*row) for row in self._database.query(QUERIES["get_progress"])]

    def unsent_partitions(self) -> list[int]:
        """Partitions of which a dead letter waits to be sent."""
        return [partition for (partition,) in self._database.query(QUERIES["get_unsent_partitions"])]

    def unsent_dead_letters(self, partition: int, most: int) -> list[UnsentLetter]:
        """Dead letters of a partition that its dead-letter topic has not acknowledged, by offset."""
        place = {"partition": partition, "most": most}
        return [UnsentLetter(*row) for row in self._database.query(QUERIES["get_unsent"], place)]

    def mark_sent(self, partition: int, offset: int) -> None:
        """Note that the dead-letter topic has acknowledged a dead letter."""
        with self._database.transaction() as connection:
            place = {"partition": partition, "offset": offset, "sent_us": now_us()}
            connection.execute(QUERIES["set_sent"], place)

    def is_done(self, partition: int, offset: int) -> bool:
        """Whether a record is in the history or among the dead letters."""
        place = {"partition": partition, "offset": offset}
        return bool(self._database.query(QUERIES["is_done"], place)[0][0])

    def totals(self, run: int) -> Totals:
        """Counts over one run."""
        return Totals(*self._database.query(QUERIES["get_totals"], {"run": run})[0])


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
