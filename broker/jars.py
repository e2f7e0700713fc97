"""Kafka's own jars: their version, where they are kept, and how Maven brings them there once.

The version is read from pom.xml beside this module. The jars of a pom lie in one directory of the user's
cache, which appears complete or not at all.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from lanes.errors import ConvoyError

try:
    import fcntl
except ImportError:  # Windows: two downloads at once are then both made, and one is thrown away
    fcntl = None  # type: ignore[assignment]

POM = Path(__file__).with_name("pom.xml")

DOWNLOAD_TIMEOUT_S = 600.0
"""About 45 MB, and Maven's own plugins the first time."""

QUOTED_LINES = 8


class JarsUnavailable(ConvoyError):
    """Kafka's jars are not in the cache and could not be brought there."""


def kafka_version() -> str:
    """The version of Kafka that the pom names."""
    namespace = {"pom": "http://maven.apache.org/POM/4.0.0"}
    version = ElementTree.parse(POM).findtext("pom:properties/pom:kafka.version", namespaces=namespace)
    if version is None:
        raise JarsUnavailable(f"{POM} names no kafka.version")
    return version


def cache_directory() -> Path:
    """Where the jars of this pom belong; another pom has another directory."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    pom_hash = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]
    return Path(home) / "sequential-convoy" / f"kafka-{kafka_version()}-{pom_hash}"


def cached_jars() -> Path | None:
    """The directory of the jars, or None before they were downloaded."""
    jars = cache_directory() / "libs"
    return jars if jars.is_dir() else None


def fetch_jars() -> Path:
    """The directory of the jars; Maven downloads them where they are not cached yet.

    Raises JarsUnavailable without Maven, when Maven fails, and after DOWNLOAD_TIMEOUT_S. Of two processes
    at once, one downloads and the other waits.
    """
    if (jars := cached_jars()) is not None:
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailable("Maven (mvn) is not installed, and Kafka's jars are not cached yet")
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / "lock").open("w") as lock, _alone(lock):
            return cached_jars() or _download(maven, directory)
    except OSError as error:
        raise JarsUnavailable(f"Kafka's jars could not be kept in {directory}: {error}") from error


def _download(maven: str, directory: Path) -> Path:
    """Download beside the final name and rename: an interrupted download is never taken for a whole one."""
    jars = directory / "libs"
    with tempfile.TemporaryDirectory(prefix="download-", dir=directory) as partial:
        complete = Path(partial) / "libs"
        _run_maven(maven, complete)
        try:
            complete.rename(jars)
        except OSError:
            if not jars.is_dir():
                raise
    return jars


def _run_maven(maven: str, target: Path) -> None:
    command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={target}"]
    try:
        maven_run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DOWNLOAD_TIMEOUT_S,
            text=True,
            errors="replace",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JarsUnavailable(f"Maven could not download Kafka's jars: {error}") from error
    if maven_run.returncode != 0 or not any(target.glob("kafka-server-*.jar")):
        said = "\n".join(maven_run.stdout.strip().splitlines()[:QUOTED_LINES])
        raise JarsUnavailable(f"Maven could not download Kafka's jars:\n{said}", hint="Is there a network?")


@contextmanager
def _alone(lock: IO[str]) -> Iterator[None]:
    """Hold the lock that only one process can hold; a process that dies lets go of it."""
    deadline = time.monotonic() + DOWNLOAD_TIMEOUT_S
    while fcntl is not None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise JarsUnavailable(
                    f"another process has been downloading to {lock.name} for too long"
                ) from None
            time.sleep(0.2)
    yield
