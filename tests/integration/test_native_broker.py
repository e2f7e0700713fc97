"""Kafka from its own jars: it serves, it ends with us however we end, and it says why it did not start."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.native import BrokerDidNotStart, BrokerStopped, NativeBroker, why_not_native
from broker.settings import Connection
from broker.topics import Topics

GONE_S = 20.0

COMMAND = "from console.entry import run; from convoy.broker import broker; run(broker, 'convoy broker')"
HOLDER = """\
import time
from broker.native import NativeBroker
with NativeBroker() as broker:
    print(broker.pid, flush=True)
    time.sleep(300)
"""


@pytest.fixture(autouse=True)
def _needs_java() -> None:
    reason = why_not_native()
    if reason is not None:
        pytest.skip(reason)


def _ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def _wait_until_ended(pid: int) -> None:
    deadline = time.monotonic() + GONE_S
    while not _ended(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


def _watch(broker: NativeBroker) -> None:
    deadline = time.monotonic() + GONE_S
    while time.monotonic() < deadline:
        broker.check_running()
        time.sleep(0.05)


@contextmanager
def _started(temporary: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(GONE_S)


def test_it_serves_and_leaves_nothing_behind() -> None:
    with NativeBroker() as broker:
        topics = Topics(Connection(broker.bootstrap_servers))
        topics.create("lanes", 7)
        assert topics.get("lanes").partitions == 7
        assert topics.get("lanes").topic_id
        broker.check_running()
        pid, directory = broker.pid, broker.directory
    assert _ended(pid)
    assert not directory.exists()


def test_a_named_directory_keeps_the_topics(tmp_path: Path) -> None:
    with NativeBroker(tmp_path / "kafka") as broker:
        made = Topics(Connection(broker.bootstrap_servers)).create("lanes", 7)
    with NativeBroker(tmp_path / "kafka") as broker:
        assert Topics(Connection(broker.bootstrap_servers)).get("lanes") == made


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BrokerDidNotStart, match=f"port {port} .*in use"), NativeBroker(port=port):
            pass


def test_a_start_that_fails_quotes_the_log(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=2\n")
    with (
        pytest.raises(BrokerDidNotStart, match=r"(?s)the last lines of its log:.*node"),
        NativeBroker(tmp_path),
    ):
        pass


def test_a_broker_that_is_killed_is_noticed() -> None:
    with NativeBroker() as broker:
        os.kill(broker.pid, signal.SIGKILL)
        with pytest.raises(BrokerStopped, match="exit code -9"):
            _watch(broker)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a process to its parent")
def test_it_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    with _started(tmp_path, "-c", HOLDER) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not _ended(pid)
        parent.kill()
        _wait_until_ended(pid)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
@pytest.mark.parametrize("kind", ["native", "embedded"])
def test_the_command_prints_the_address_and_ends_well(tmp_path: Path, kind: str, end: signal.Signals) -> None:
    topics_wanted = ["--topic", "lanes:7", "--topic", "other:2"]
    with _started(tmp_path, "-c", COMMAND, kind, *topics_wanted) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        topics = Topics(Connection(address))
        assert [topics.get(name).partitions for name in ("lanes", "other")] == [7, 2]
        process.send_signal(end)
        assert process.wait(GONE_S) == 0
        assert process.stdout.read() == ""
    assert not list(tmp_path.iterdir())
