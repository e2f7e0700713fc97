"""Kafka itself, from its own jars on this machine's Java: one node, no Docker."""

import base64
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from broker.jars import cached_jars, fetch_jars
from broker.running import Kind
from lanes.errors import ConvoyError

JAVA_NEEDED = 17
JAVA_VERSION_TIMEOUT_S = 15.0
FORMAT_TIMEOUT_S = 60.0
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
QUOTED_LINES = 8

JVM_OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN"]
"""The serial collector starts fastest and takes no core from the workers."""

TETHER = Path(__file__).with_name("tethered.py")

CONFIGURATION = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller_port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=data
auto.create.topics.enable=false
# One node holds the only copy of everything.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
# Groups form when their members come, not seconds later.
group.initial.rebalance.delay.ms=0
group.share.heartbeat.interval.ms=500
group.share.min.heartbeat.interval.ms=500
"""


class BrokerDidNotStart(ConvoyError):
    """Kafka could not be started, or did not answer in time; the message quotes its log."""


class BrokerStopped(ConvoyError):
    """Kafka was running and ended by itself; the message quotes its log."""


def java_version() -> int | None:
    """The major version, such as 17, of JAVA_HOME's Java, else of the one on the PATH; None without one."""
    path = _java_path()
    if path is None:
        return None
    command = [path, "-version"]
    try:
        java = subprocess.run(
            command, capture_output=True, text=True, timeout=JAVA_VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # Java 8 calls itself 1.8.
    found = re.search(r'version "(?:1\.)?(\d+)', java.stderr)
    return int(found[1]) if found else None


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return (shutil.which("java", path=str(Path(home) / "bin")) if home else None) or shutil.which("java")


def why_not_native() -> str | None:
    """What this machine lacks to run Kafka natively, in words; None if nothing."""
    version = java_version()
    if version is None:
        return f"Java is not installed (Kafka needs {JAVA_NEEDED} or newer)"
    if version < JAVA_NEEDED:
        return f"Java {version} is too old (Kafka needs {JAVA_NEEDED} or newer)"
    if cached_jars() is None and shutil.which("mvn") is None:
        return "Maven (mvn) is not installed, and Kafka's jars are not cached yet"
    return None


class NativeBroker:
    """One Kafka node for the length of a `with` block.

    `directory` keeps its configuration, data and log, and may hold the data of an earlier run; without one
    it is a temporary directory, removed at the end. `port` None means any free port. `settings` are lines of
    Kafka's own configuration, on top of ours. On Linux the broker ends with the thread that started it,
    however that ends.

    Entering raises BrokerDidNotStart, or JarsUnavailable where Maven cannot bring the jars.
    """

    kind: Kind = "native"

    def __init__(
        self,
        directory: Path | None = None,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.bootstrap_servers = ""
        self._settings = settings or {}
        self._wanted_directory = directory
        self._wanted_port = port
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        lack, java_path = why_not_native(), _java_path()
        if lack is not None or java_path is None:
            raise BrokerDidNotStart(f"Kafka cannot run here: {lack}", hint="Try the embedded broker.")
        self._java = [java_path, *JVM_OPTIONS, "-cp", f"{fetch_jars()}{os.sep}*"]
        with ExitStack() as undo:
            self.directory = self._wanted_directory or _temporary_directory(undo)
            self._process = self._start(self._java)
            undo.callback(lambda: _stop(self._process))
            self._wait_until_ready()
            self._undo = undo.pop_all()
        return self

    def end(self, *, kill: bool = False) -> None:
        """End the broker inside the block, in order or by SIGKILL; returns when its process is gone."""
        if kill:
            self._process.kill()
        _stop(self._process)

    def start_again(self) -> None:
        """Start it at its address and on its data, after `end`; raises BrokerDidNotStart."""
        self._wanted_port = int(self.bootstrap_servers.rpartition(":")[2])
        self._process = self._start(self._java)
        self._wait_until_ready()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    @property
    def pid(self) -> int:
        """The process id of the broker's Java."""
        return self._process.pid

    def check_running(self) -> None:
        """Raise BrokerStopped if it has ended by itself."""
        if (code := self._process.poll()) is not None:
            raise BrokerStopped(f"Kafka ended by itself with exit code {code}{self._quoted_log()}")

    def _start(self, java: list[str]) -> "subprocess.Popen[bytes]":
        port, controller_port = _choose_ports(self._wanted_port)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        configuration = CONFIGURATION.format(port=port, controller_port=controller_port)
        configuration += "".join(f"{name}={value}\n" for name, value in self._settings.items())
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / "server.properties").write_text(configuration)
        except OSError as error:
            raise BrokerDidNotStart(f"{self.directory} cannot hold a broker: {error}") from error
        self._log = self.directory / "broker.log"
        self._log_begin = self._log.stat().st_size if self._log.exists() else 0
        if not (self.directory / "data" / "meta.properties").exists():
            self._format(java)
        return self._launch([*java, "kafka.Kafka", "server.properties"])

    def _format(self, java: list[str]) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        command = [*java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        command += [f"--cluster-id={cluster_id}", "--config", "server.properties"]
        with self._log.open("ab") as log:
            try:
                subprocess.run(
                    command,
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=FORMAT_TIMEOUT_S,
                    check=True,
                )
            except subprocess.SubprocessError as error:
                raise BrokerDidNotStart(
                    f"Kafka could not prepare {self.directory}{self._quoted_log()}"
                ) from error

    def _launch(self, command: list[str]) -> "subprocess.Popen[bytes]":
        """In a process group of its own: Ctrl-C reaches us, and we end it after our last use of it."""
        tether = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid())]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                tether + command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0 if os.name == "posix" else None,
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not _answers(self.bootstrap_servers, timeout_s=1.0):
            if (code := self._process.poll()) is not None:
                raise BrokerDidNotStart(f"Kafka ended with exit code {code}{self._quoted_log()}")
            if time.monotonic() > deadline:
                raise BrokerDidNotStart(
                    f"Kafka did not answer within {READY_TIMEOUT_S:.0f} s{self._quoted_log()}"
                )
            time.sleep(0.05)

    def _quoted_log(self) -> str:
        """The last lines of this run's log without stack frames, ready to be put behind a sentence."""
        with self._log.open("rb") as log:
            log.seek(self._log_begin)
            lines = log.read().decode(errors="replace").splitlines()
        told = [line for line in lines if line.strip() and not line.startswith("\tat ")]
        if not told:
            return "; its log is empty"
        return "; the last lines of its log:\n" + "\n".join(told[-QUOTED_LINES:])


def _answers(bootstrap_servers: str, timeout_s: float) -> bool:
    """Whether the broker answers about itself and about groups, each within the time.

    The question about a group makes its offsets topic, which costs the first group seconds otherwise. A
    consumer asks it: the admin client's ListConsumerGroupOffsets crashes the process until that topic is
    there (librdkafka issue 5040).
    """
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": "convoy-nobody", "log_level": 0}
    consumer = Consumer({**settings, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200})
    try:
        if not consumer.list_topics(timeout=timeout_s).brokers:
            return False
        consumer.committed([TopicPartition("nothing", 0)], timeout=timeout_s)
    except KafkaException:
        return False
    finally:
        consumer.close()
    return True


def _temporary_directory(undo: ExitStack) -> Path:
    temporary = tempfile.TemporaryDirectory(prefix="convoy-kafka-", ignore_cleanup_errors=True)
    return Path(undo.enter_context(temporary))


def _choose_ports(wanted: int | None) -> tuple[int, int]:
    """A port for clients and one for the controller, both free now; raises BrokerDidNotStart otherwise."""
    with socket.socket() as client, socket.socket() as controller:
        if wanted is not None and os.name == "posix":
            # As Kafka does: a connection that still fades away does not hold the port.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            client.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise BrokerDidNotStart(
                f"port {wanted} on 127.0.0.1 cannot be used: {error.strerror}",
                hint="Name another with --port, or leave it out for a free one.",
            ) from error
        controller.bind(("127.0.0.1", 0))
        return client.getsockname()[1], controller.getsockname()[1]


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """SIGTERM, and SIGKILL if it has not ended after STOP_TIMEOUT_S or we are interrupted."""
    try:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
