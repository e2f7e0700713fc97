"""What the small cut of the fault suite runs on: one impatient broker for all of its tests."""

import os
import random
from collections.abc import Iterator

import pytest

from broker.native import NativeBroker, why_not_native
from chaos.scene import BROKER_SETTINGS, Ground


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A broker that can be killed and notices soon who is gone. Its seed is CHAOS_SEED, or drawn."""
    lack = why_not_native()
    if lack is not None:
        pytest.skip(f"faults of the broker's process need Kafka from its jars: {lack}")
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
    with NativeBroker(settings=BROKER_SETTINGS) as broker:
        yield Ground(broker, tmp_path_factory.mktemp("chaos"), seed)


@pytest.fixture(autouse=True)
def _seed_is_told(request: pytest.FixtureRequest) -> None:
    """Print the seed, which pytest shows with a failure."""
    if "ground" in request.fixturenames:
        print(f"CHAOS_SEED={request.getfixturevalue('ground').seed}")  # noqa: T201
