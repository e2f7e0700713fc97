"""The moments of a worker's life: the product's classes wrapped, so that each moment is told as it comes.

Statements of the one transaction are told by their names in queries.sql, with `apply` in front: `apply
before commit`. Nothing is changed in what the product does.
"""

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

from chaos.broken import put
from consumer.membership import Membership
from consumer.relay import Relay
from consumer.share_worker import ShareWorker
from state.applying import Applier
from state.errors import StaleOwner
from state.queries import QUERIES

Tap = Callable[[str], None]
"""Is told each moment when it comes; it may kill the process."""

NAME_OF = {sql: name for name, sql in QUERIES.items()}


class Seams:
    """Wraps the product inside this process, once."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self.applying = ""
        """Put before the names of statements while a batch is applied."""

    def open(self) -> None:
        """From here on each moment is told."""
        put(sqlite3, "connect", partial(sqlite3.connect, factory=_connection_of(self)))
        self._around_apply("apply_owned")
        self._around_apply("apply_shared")
        self._around(Membership, "commit_group_offsets", "group commit")
        self._around(Membership, "_assigned", "assigned")
        self._around(Relay, "_send", "send")
        self._after_records()
        self._around_mark()

    def _around(self, owner: type, name: str, moment: str) -> None:
        inner = getattr(owner, name)

        def told(*args: Any, **named: Any) -> Any:
            self.tap(f"before {moment}")
            result = inner(*args, **named)
            self.tap(f"after {moment}")
            return result

        setattr(owner, name, told)

    def _around_apply(self, name: str) -> None:
        inner = getattr(Applier, name)

        def told(*args: Any, **named: Any) -> Any:
            self.applying = "apply "
            try:
                result = inner(*args, **named)
            except StaleOwner:
                self.tap("refused")
                raise
            finally:
                self.applying = ""
            self.tap("came again" if result is False else "applied")
            return result

        setattr(Applier, name, told)

    def _after_records(self) -> None:
        """Records in hand: of a group's poll, and of a share group's."""
        poll, take = Membership.poll, ShareWorker._take

        def polled(*args: Any) -> Any:
            records, ends = poll(*args)
            if records:
                self.tap("after poll")
            return records, ends

        def taken(*args: Any) -> Any:
            messages = take(*args)
            if messages:
                self.tap("after take")
            return messages

        put(Membership, "poll", polled)
        put(ShareWorker, "_take", taken)

    def _around_mark(self) -> None:
        """A dead letter is acknowledged and about to be marked as sent, or marked."""
        inner = Relay._delivered

        def told(relay: Relay, letter: Any, error: Any, message: Any) -> None:
            self.tap("not delivered" if error is not None else "before mark")
            inner(relay, letter, error, message)
            if error is None:
                self.tap("after mark")

        put(Relay, "_delivered", told)


def _connection_of(seams: Seams) -> type[sqlite3.Connection]:
    class Told(sqlite3.Connection):
        """A connection that tells of its statements."""

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            name = NAME_OF.get(sql, sql)
            seams.tap(f"{seams.applying}before {name}")
            result = super().execute(sql, *args)
            seams.tap(f"{seams.applying}after {name}")
            return result

        def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
            result = super().executemany(sql, *args)
            seams.tap(f"{seams.applying}after {NAME_OF.get(sql, sql)}")
            return result

    return Told
