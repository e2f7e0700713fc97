"""Parameters that several files share."""

import pytest

from lanes.dispatch import Dispatch
from lanes.key import KeyChoice
from lanes.partitioner import Partitioner

dispatches = pytest.mark.parametrize(
    "dispatch", [Dispatch.GROUP, pytest.param(Dispatch.SHARE, marks=pytest.mark.real_broker)]
)
keys = pytest.mark.parametrize("key", list(KeyChoice))
partitioners = pytest.mark.parametrize("partitioner", list(Partitioner))
checks = pytest.mark.parametrize("version_check", [False, True])
