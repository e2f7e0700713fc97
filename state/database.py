"""Opening the file: its checks, its settings, and transactions that wait with a deadline."""

import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lanes.errors import ConvoyError
from state.errors import DatabaseBusy, DatabaseError
from state.queries import SCHEMA

SCHEMA_VERSION = 2
APPLICATION_ID = 0x434F4E56  # "CONV": tells our files from any other SQLite file
BUSY_TIMEOUT_S = 60.0
SWITCH_INTERVAL_S = 0.01
OLDEST_SQLITE = (3, 37, 0)  # strict tables


class Database:
    """One connection to one file. Not for several threads; each worker process opens its own."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: all of it or nothing.

        It takes the write lock before it reads (BEGIN IMMEDIATE): a transaction that reads first and
        writes later fails at once when another writer came between, whatever the timeout says. Raises
        DatabaseBusy when the lock is not free within the deadline.
        """
        started = time.monotonic()
        try:
            self.connection.execute("begin immediate")
            try:
                yield self.connection
                self.connection.execute("commit")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("rollback")
                raise
        except sqlite3.Error as error:
            raise self._as_convoy_error(error, time.monotonic() - started) from error

    def query(self, sql: str, values: Mapping[str, object] | tuple[object, ...] = ()) -> list[Any]:
        """The rows of a reading statement; raises DatabaseBusy and DatabaseError as `transaction` does."""
        started = time.monotonic()
        try:
            return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._as_convoy_error(error, time.monotonic() - started) from error

    def _as_convoy_error(self, error: sqlite3.Error, waited_s: float) -> ConvoyError:
        if _is_busy(error):
            return DatabaseBusy(self.path, waited_s)
        return DatabaseError(f"{self.path}: {error}", hint="Nothing of this transaction was kept.")

    def close(self) -> None:
        """Close the connection; the last one folds the write-ahead log into the file."""
        self.connection.close()


def open_database(path: Path, *, create: bool, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Database:
    """Open the file for writing, made with its tables where it is missing and `create` is set.

    Raises DatabaseError for a file that is missing, read-only, not ours, or of another schema version, and
    DatabaseBusy when another process keeps it locked beyond the deadline.
    """
    _check_file(path, create=create)
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise DatabaseError(f"cannot open {path}: {error}") from error
    database = Database(path, connection)
    try:
        # Looked at before the first setting, which would already change another program's file.
        _has_our_schema(path, connection)
        # Write-ahead log: readers and the writer do not block each other. NORMAL may lose the last
        # transactions when the power fails, state and offsets alike, so they are read from Kafka again.
        _switch_to_wal(database, busy_timeout_s)
        connection.execute("pragma synchronous = normal")
        connection.execute("pragma foreign_keys = on")
        with database.transaction():
            if not _has_our_schema(path, connection):
                _make_schema(connection)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _unusable(path, error) from error
    except BaseException:
        connection.close()
        raise
    return database


def _switch_to_wal(database: Database, busy_timeout_s: float) -> None:
    """Switch to the write-ahead log.

    Here SQLite itself does not wait: of several processes that open a new file at once, all but one are
    told that it is locked.
    """
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            database.connection.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
            if time.monotonic() > deadline:
                raise DatabaseBusy(database.path, busy_timeout_s) from error
        time.sleep(SWITCH_INTERVAL_S)


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def open_for_reading(path: Path) -> Database:
    """Open an existing file to read from it; it takes no lock that a writer would wait for."""
    _check_file(path, create=False)
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise _unusable(path, error) from error
    try:
        if not _has_our_schema(path, connection):
            raise DatabaseError(f"{path} is empty: no run has started on it")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _unusable(path, error) from error
    except BaseException:
        connection.close()
        raise
    return Database(path, connection)


def _unusable(path: Path, error: sqlite3.Error) -> DatabaseError:
    return DatabaseError(f"cannot use {path}: {error}", hint="Name another file with --db.")


def _check_file(path: Path, *, create: bool) -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise DatabaseError(f"SQLite {sqlite3.sqlite_version} is too old; 3.37 or newer is needed")
    if not path.exists():
        if not create:
            raise DatabaseError(
                f"there is no database {path}", hint="Make it with `convoy consume`, or name it with --db."
            )
        if not path.parent.is_dir():
            raise DatabaseError(f"there is no folder {path.parent} to put {path.name} into")
    # The mode is asked, not the system: root may write to a read-only file, and should not.
    elif create and not path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise DatabaseError(f"{path} is read-only", hint="Make it writable, or name another with --db.")


def _has_our_schema(path: Path, connection: sqlite3.Connection) -> bool:
    """False for a database without tables; raises DatabaseError for tables that are not ours."""
    (tables,) = connection.execute("select count(*) from sqlite_schema").fetchone()
    if not tables:
        return False
    (application,) = connection.execute("pragma application_id").fetchone()
    (version,) = connection.execute("pragma user_version").fetchone()
    if application != APPLICATION_ID:
        raise DatabaseError(f"{path} is another program's database", hint="Name another file with --db.")
    if version != SCHEMA_VERSION:
        raise DatabaseError(
            f"{path} has schema version {version}; this program knows {SCHEMA_VERSION}",
            hint="Name a new file with --db: the topic is read again from its start.",
        )
    return True


def _make_schema(connection: sqlite3.Connection) -> None:
    for statement in SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute(f"pragma user_version = {SCHEMA_VERSION}")


def now_us() -> int:
    """The wall clock in microseconds since 1970: the unit of every time in the database."""
    return time.time_ns() // 1000
