"""What every test may ask for: a broker, a topic, a database, and no skips where they are forbidden."""

import os
import re
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from brokers import BrokerUnderTest, start_broker
from commands import Convoy
from trial import Trial

from broker.topics import Topic

FORBID_SKIPS = os.environ.get("CONVOY_FORBID_SKIPS") == "1"

_said: list[str] = []
_skipped: list[str] = []


@pytest.fixture(scope="session")
def broker() -> Iterator[BrokerUnderTest]:
    """The broker of the session, started by the first test that asks for it."""
    # Killed by a time limit, the session still removes its container.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as undo:
        running = start_broker(undo)
        _said.append(f"broker: {running.description} at {running.bootstrap_servers}")
        yield running


@pytest.fixture(autouse=True)
def _only_on_a_real_broker(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("real_broker") is not None:
        reason = request.getfixturevalue("broker").why_not_real
        if reason:
            pytest.skip(reason)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other topic of this broker has, and that says which test made it."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    return f"{words[:60]}.{secrets.token_hex(4)}"


@pytest.fixture
def group(topic_name: str) -> str:
    """A consumer group of this test's own."""
    return f"group.{topic_name}"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where a database may be made."""
    return tmp_path / "states.db"


@pytest.fixture
def make_topic(broker: BrokerUnderTest, topic_name: str) -> Callable[..., Topic]:
    """Makes this test's topic: `make_topic(3)`, with settings as keywords."""
    return lambda partitions, **config: broker.create_topic(topic_name, partitions, **config)


@pytest.fixture
def trial(broker: BrokerUnderTest, topic_name: str, db: Path) -> Trial:
    """A topic and a database that follows it, worked on through the library. `trial.make_topic` first."""
    return Trial(broker, topic_name, db)


@pytest.fixture
def convoy(broker: BrokerUnderTest, tmp_path: Path) -> Iterator[Convoy]:
    """The command line, in a folder of its own and with the broker's address in its environment."""
    with Convoy(tmp_path, broker.bootstrap_servers) as command:
        yield command


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what was skipped; an expected failure is no skip."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.append(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Remember whole files that were skipped."""
    if report.skipped:
        _skipped.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session that skipped something where CONVOY_FORBID_SKIPS=1."""
    if FORBID_SKIPS and _skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which broker it was, and which skips are forbidden."""
    for line in _said:
        terminalreporter.write_line(line)
    if FORBID_SKIPS and _skipped:
        terminalreporter.section("skipped, and CONVOY_FORBID_SKIPS=1", red=True)
        for nodeid in _skipped:
            terminalreporter.write_line(nodeid)
