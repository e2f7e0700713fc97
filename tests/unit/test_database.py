"""The database file: which ones are refused and left as they are, and transactions that wait and that end."""

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from state.database import Database, open_database, open_for_reading
from state.errors import DatabaseBusy, DatabaseError
from state.store import Store

COUNTER = "update run set workers = ? where run = 1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of ours with one run whose `workers` is 0, to count in."""
    made = tmp_path / "states.db"
    store = Store.open(made, "shipments", "id-1", "workers")
    store.start_run(0, version_check=False)
    store.close()
    return made


def counted(path: Path) -> int:
    connection = sqlite3.connect(path)
    (value,) = connection.execute("select workers from run").fetchone()
    connection.close()
    return int(value)


def refusal(path: Path, *, create: bool = True) -> DatabaseError:
    with pytest.raises(DatabaseError) as refused:
        open_database(path, create=create)
    return refused.value


def reading_refusal(path: Path) -> DatabaseError:
    with pytest.raises(DatabaseError) as refused:
        open_for_reading(path)
    return refused.value


def foreign_file(tmp_path: Path, *pragmas: str) -> Path:
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    for pragma in pragmas:
        connection.execute(pragma)
    connection.execute("create table notes (text)")
    connection.commit()
    connection.close()
    return foreign


def test_a_missing_file_is_made_where_that_was_asked_for(tmp_path: Path) -> None:
    made = tmp_path / "new.db"
    open_database(made, create=True).close()
    assert made.read_bytes().startswith(b"SQLite format 3\0")


def test_a_missing_file_is_refused_where_it_should_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    for refused in (refusal(missing, create=False), reading_refusal(missing)):
        assert str(refused) == f"there is no database {missing}"
        assert refused.hint == "Make it with `convoy consume`, or name it with --db."
    assert not missing.exists()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "nowhere" / "states.db")
    assert str(refused) == f"there is no folder {tmp_path / 'nowhere'} to put states.db into"


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert str(tmp_path) in str(refusal(tmp_path))


@pytest.mark.parametrize("refuse", [refusal, reading_refusal], ids=["writing", "reading"])
def test_a_file_that_is_not_sqlite_is_refused_and_left_as_it_is(
    tmp_path: Path, refuse: Callable[[Path], DatabaseError]
) -> None:
    text = tmp_path / "states.db"
    text.write_text("tracking_no,line,state\n" * 200)
    before = text.read_bytes()
    refused = refuse(text)
    assert str(refused) == f"cannot use {text}: file is not a database"
    assert refused.hint == "Name another file with --db."
    assert text.read_bytes() == before


@pytest.mark.parametrize("refuse", [refusal, reading_refusal], ids=["writing", "reading"])
def test_another_programs_database_is_refused_and_left_as_it_is_its_journal_mode_too(
    tmp_path: Path, refuse: Callable[[Path], DatabaseError]
) -> None:
    foreign = foreign_file(tmp_path)
    before = foreign.read_bytes()
    assert str(refuse(foreign)) == f"{foreign} is another program's database"
    assert foreign.read_bytes() == before


@pytest.mark.parametrize("refuse", [refusal, reading_refusal], ids=["writing", "reading"])
def test_another_schema_version_of_ours_is_refused_with_both_numbers(
    tmp_path: Path, refuse: Callable[[Path], DatabaseError]
) -> None:
    ours = foreign_file(tmp_path, f"pragma application_id = {0x434F4E56}", "pragma user_version = 99")
    refused = refuse(ours)
    assert str(refused) == f"{ours} has schema version 99; this program knows 2"
    assert refused.hint == "Name a new file with --db: the topic is read again from its start."


def test_an_empty_file_becomes_a_database_for_writing_and_is_refused_for_reading(tmp_path: Path) -> None:
    empty = tmp_path / "states.db"
    empty.touch()
    assert str(reading_refusal(empty)) == f"{empty} is empty: no run has started on it"
    open_database(empty, create=True).close()
    open_for_reading(empty).close()


def test_a_read_only_file_is_refused_for_writing_even_to_root_and_can_be_read(path: Path) -> None:
    path.chmod(0o444)
    refused = refusal(path)
    assert str(refused) == f"{path} is read-only"
    assert refused.hint == "Make it writable, or name another with --db."
    open_for_reading(path).close()


def test_an_sqlite_without_strict_tables_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 36, 0))
    monkeypatch.setattr("sqlite3.sqlite_version", "3.36.0")
    assert str(refusal(path)) == "SQLite 3.36.0 is too old; 3.37 or newer is needed"


def test_a_connection_for_reading_cannot_write(path: Path) -> None:
    reading = open_for_reading(path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reading.connection.execute(COUNTER, (5,))
    reading.close()
    assert counted(path) == 0


def test_six_that_open_a_new_file_at_once_all_get_it(tmp_path: Path) -> None:
    made = tmp_path / "states.db"
    together = threading.Barrier(6)
    opened: list[str] = []

    def open_it() -> None:
        together.wait()
        store = Store.open(made, "shipments", "id-1")
        opened.append(store.source.group_id)
        store.close()

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 6
    assert len(set(opened)) == 1


def test_a_transaction_is_kept_whole(path: Path) -> None:
    database = open_database(path, create=False)
    with database.transaction() as connection:
        connection.execute(COUNTER, (3,))
    database.close()
    assert counted(path) == 3


@pytest.mark.parametrize("crash", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_crash_inside_a_transaction_leaves_nothing_and_the_connection_usable(
    path: Path, crash: type[BaseException]
) -> None:
    database = open_database(path, create=False)

    def crash_after_writing() -> None:
        with database.transaction() as connection:
            connection.execute(COUNTER, (7,))
            raise crash

    with pytest.raises(crash):
        crash_after_writing()
    assert counted(path) == 0
    with database.transaction() as connection:
        connection.execute(COUNTER, (8,))
    database.close()
    assert counted(path) == 8


def count_and(database: Database, statement: str) -> None:
    with database.transaction() as connection:
        connection.execute(COUNTER, (7,))
        connection.execute(statement)


def test_an_error_of_sqlite_comes_with_the_path_and_leaves_nothing(path: Path) -> None:
    database = open_database(path, create=False)
    with pytest.raises(DatabaseError) as refused:
        count_and(database, "insert into source (one, topic, topic_id, group_id) values (1, '', '', '')")
    assert str(refused.value) == f"{path}: UNIQUE constraint failed: source.one"
    assert refused.value.hint == "Nothing of this transaction was kept."
    database.close()
    assert counted(path) == 0


def test_a_full_disk_leaves_nothing(path: Path) -> None:
    database = open_database(path, create=False)
    (pages,) = database.connection.execute("pragma page_count").fetchone()
    database.connection.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(DatabaseError, match="database or disk is full"):
        count_and(database, "update source set topic = zeroblob(100000) || ''")
    database.close()
    assert counted(path) == 0


def test_the_trap_select_then_update_in_a_plain_begin_fails_at_once_whatever_the_timeout(path: Path) -> None:
    """What we do not do, with the sqlite3 module alone."""
    first, second = (sqlite3.connect(path, timeout=5, isolation_level=None) for _ in range(2))
    first.execute("begin")
    (value,) = first.execute("select workers from run").fetchone()
    second.execute("begin")
    second.execute(COUNTER, (value + 1,))
    second.execute("commit")
    started = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        first.execute(COUNTER, (value + 1,))
    assert time.monotonic() - started < 1
    first.close()
    second.close()
    assert counted(path) == 1


def test_our_transactions_wait_for_each_other_and_both_count(path: Path) -> None:
    inside = threading.Event()

    def slow_writer() -> None:
        database = open_database(path, create=False)
        with database.transaction() as connection:
            (value,) = connection.execute("select workers from run").fetchone()
            inside.set()
            time.sleep(0.3)
            connection.execute(COUNTER, (value + 1,))
        database.close()

    writer = threading.Thread(target=slow_writer)
    database = open_database(path, create=False)
    writer.start()
    assert inside.wait(10)
    started = time.monotonic()
    with database.transaction() as connection:
        waited_s = time.monotonic() - started
        (value,) = connection.execute("select workers from run").fetchone()
        connection.execute(COUNTER, (value + 1,))
    writer.join()
    database.close()
    assert counted(path) == 2
    assert waited_s > 0.1


def test_a_lock_held_beyond_the_deadline_is_an_error_that_names_the_file(path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    database = open_database(path, create=False, busy_timeout_s=0.2)
    holder.execute("begin immediate")
    started = time.monotonic()
    with pytest.raises(DatabaseBusy) as refused, database.transaction() as connection:
        connection.execute(COUNTER, (9,))
    assert 0.15 < time.monotonic() - started < 5
    assert str(refused.value) == f"{path} is locked by another process; waited 0 s"
    assert "Nothing was changed." in refused.value.hint
    holder.execute("rollback")
    holder.close()
    database.close()
    assert counted(path) == 0


def test_opening_a_locked_file_is_the_same_error(path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("begin immediate")
    with pytest.raises(DatabaseBusy) as refused:
        Store.open(path, "shipments", "id-1", busy_timeout_s=0.1)
    assert str(path) in str(refused.value)
    holder.close()
