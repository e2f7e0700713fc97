"""The broker of docker-compose.yml, and the three commands on it."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from brokers import IMAGE, NotHere, find_image, free_port
from commands import Convoy

COMPOSE_FILE = Path(__file__).parents[2] / "docker-compose.yml"
UP_TIMEOUT_S = 180
DOWN_TIMEOUT_S = 60


def why_no_compose() -> str | None:
    """What is missing to run it here; None if nothing."""
    try:
        told = subprocess.run(["docker", "compose", "version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"docker compose does not run: {error}"
    if told.returncode != 0:
        return f"docker compose version: {told.stderr.strip()}"
    try:
        find_image(IMAGE)
    except NotHere as lack:
        return str(lack)
    return None


@pytest.fixture
def composed() -> Iterator[str]:
    """The address of a broker that docker compose has started, and removes at the end."""
    if (lack := why_no_compose()) is not None:
        pytest.skip(lack)
    port = free_port()
    environment = {**os.environ, "KAFKA_PORT": str(port), "KAFKA_IMAGE": IMAGE}
    compose = ["docker", "compose", "-p", f"convoy-test-{secrets.token_hex(4)}", "-f", str(COMPOSE_FILE)]

    def run(*arguments: str, timeout_s: int) -> None:
        done = subprocess.run(
            [*compose, *arguments], env=environment, capture_output=True, text=True, timeout=timeout_s
        )
        assert done.returncode == 0, done.stderr

    try:
        run("up", "--wait", timeout_s=UP_TIMEOUT_S)
        yield f"localhost:{port}"
    finally:
        run("down", "-v", timeout_s=DOWN_TIMEOUT_S)


def test_the_three_commands_on_the_broker_of_docker_compose(composed: str, tmp_path: Path) -> None:
    with Convoy(tmp_path, composed) as convoy:
        produced = convoy.run("produce", "--json")
        consumed = convoy.run("consume", "--until-caught-up", "--json")
        analyzed = convoy.run("analyze", "--check", "--json")

        assert [ran.code for ran in (produced, consumed, analyzed)] == [0, 0, 0], analyzed.stderr
        assert produced.json["partitions"] == 5
        assert consumed.json["applied"] == 20
        assert analyzed.json["check"]["verdict"] == "true"

        shared = ("--topic", "shared", "--db", "shared.db")
        assert convoy.run("produce", *shared[:2], "--partitions", 1, "--one-record-batches").code == 0
        ran = convoy.run("consume", *shared, "--dispatch", "share", "--until-caught-up", "--json")
        assert (ran.code, ran.json["applied"]) == (0, 20)
