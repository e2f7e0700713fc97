"""The order of preference, and the sentence that says why the better brokers were passed over."""

import socket
from collections.abc import Iterator

import pytest

from broker import choose
from broker.choose import choose_broker
from broker.embedded import EmbeddedBroker
from broker.errors import BrokerUnreachable
from broker.jars import JarsUnavailable


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that is taken but answers nothing: connections are refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def no_local(monkeypatch: pytest.MonkeyPatch, silent_port: int) -> None:
    monkeypatch.setattr(choose, "LOCAL_PORT", silent_port)


def test_named_servers_that_answer_are_used() -> None:
    with EmbeddedBroker() as running:
        choice = choose_broker(running.bootstrap_servers, {})
        assert choice.broker.kind == "named"
        assert choice.broker.bootstrap_servers == running.bootstrap_servers


def test_named_servers_that_do_not_answer_are_an_error_even_with_a_local_broker(
    monkeypatch: pytest.MonkeyPatch, silent_port: int
) -> None:
    monkeypatch.setattr(choose, "REQUEST_TIMEOUT_S", 0.5)
    address = f"127.0.0.1:{silent_port}"
    with pytest.raises(BrokerUnreachable, match="Connection refused") as unreachable:
        choose_broker(address, {})
    assert unreachable.value.address == address


def test_a_local_broker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedBroker() as running:
        monkeypatch.setattr(choose, "LOCAL_PORT", int(running.bootstrap_servers.rpartition(":")[2]))
        choice = choose_broker(None, {})
    assert choice.broker.kind == "local"


@pytest.mark.usefixtures("no_local")
def test_then_kafka_itself_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "why_not_native", lambda: None)
    monkeypatch.setattr(choose, "java_version", lambda: 21)
    monkeypatch.setattr(choose, "_why_no_jars", lambda _say: None)
    choice = choose_broker(None, {})
    assert choice.broker.kind == "native"
    assert choice.reason.startswith("No broker answers on localhost:")
    assert "Java 21 is here: starting Kafka 4." in choice.reason


@pytest.mark.usefixtures("no_local")
def test_without_java_the_mock_cluster_is_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "why_not_native", lambda: "Java 11 is too old")
    choice = choose_broker(None, {})
    assert choice.broker.kind == "embedded"
    assert "Java 11 is too old: using librdkafka's mock cluster" in choice.reason


@pytest.mark.usefixtures("no_local")
def test_a_failed_download_is_announced_and_leads_to_the_mock_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise JarsUnavailable("Maven could not download Kafka's jars:\nno network")

    said: list[str] = []
    monkeypatch.setattr(choose, "why_not_native", lambda: None)
    monkeypatch.setattr(choose, "cached_jars", lambda: None)
    monkeypatch.setattr(choose, "fetch_jars", fail)
    choice = choose_broker(None, {}, said.append)
    assert choice.broker.kind == "embedded"
    assert "could not download Kafka's jars: no network" in choice.reason
    assert said[0].startswith("Downloading Kafka")


def test_what_listens_but_is_no_broker_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "why_not_native", lambda: "Java is not installed")
    monkeypatch.setattr(choose, "LOCAL_TIMEOUT_S", 0.5)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        monkeypatch.setattr(choose, "LOCAL_PORT", listener.getsockname()[1])
        choice = choose_broker(None, {})
    assert choice.broker.kind == "embedded"
    assert "does not answer as a broker" in choice.reason
