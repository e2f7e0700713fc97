"""The command line as a user has it: a process, its stdout apart from its stderr, and a deadline."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from brokers import wait_until

TIMEOUT_S = 90.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)


class Started:
    """A command that runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def interrupt(self) -> None:
        """SIGINT, to it alone."""
        self._process.send_signal(signal.SIGINT)

    def interrupt_all(self) -> None:
        """SIGINT to it and its workers, as Ctrl-C in a terminal does."""
        os.killpg(self._process.pid, signal.SIGINT)

    def terminate(self) -> None:
        """SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def result(self, timeout_s: float = TIMEOUT_S) -> Ran:
        """How it ended, waited for; raises subprocess.TimeoutExpired."""
        stdout, stderr = self._process.communicate(timeout=timeout_s)
        return Ran(self._process.returncode, stdout, stderr)


class Convoy:
    """Starts `convoy` commands in one folder; what still runs at the end of the block is killed."""

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        self.folder = folder
        self._environment = {**os.environ, "CONVOY_BOOTSTRAP_SERVERS": bootstrap_servers, "COLUMNS": "200"}
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def start(self, *arguments: object) -> Started:
        """Start a command and return at once."""
        return self._start([sys.executable, "-m", "convoy", *map(str, arguments)])

    def _start(self, command: list[str]) -> Started:
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self._undo.callback(_end, process)
        return Started(process)

    def run_program(self, *command: object, timeout_s: float = TIMEOUT_S) -> Ran:
        """Run another program in the same folder and environment."""
        return self._start(list(map(str, command))).result(timeout_s)

    def run(self, *arguments: object, timeout_s: float = TIMEOUT_S) -> Ran:
        """Run a command to its end."""
        return self.start(*arguments).result(timeout_s)


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.kill()
    process.communicate()


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and theirs, as they are now."""
    told = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    children: dict[int, set[int]] = {}
    for line in told.splitlines():
        child, parent = map(int, line.split())
        children.setdefault(parent, set()).add(child)
    found: set[int] = set()
    waiting = {pid}
    while waiting:
        grown = set().union(*(children.get(parent, set()) for parent in waiting)) - found
        found |= grown
        waiting = grown
    return found


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(told.stdout.strip()) and not told.stdout.strip().startswith("Z")


def wait_until_gone(pids: set[int], timeout_s: float = 20.0) -> None:
    """Wait until none of the processes runs; raises TimeoutError."""
    wait_until(lambda: not any(map(is_alive, pids)), f"processes {sorted(pids)} are gone", timeout_s)
