import time

import pytest

from lanes.dispatch import Dispatch
from lanes.key import KeyChoice

pytestmark = pytest.mark.real_broker


@pytest.mark.parametrize("key", KeyChoice)
@pytest.mark.parametrize("dispatch", Dispatch)
def test_all(trial, dispatch, key):
    from trial import group_share

    t = time.monotonic()
    group_share(trial, dispatch, key)
    print("produce", time.monotonic() - t)
    t = time.monotonic()
    r = trial.consume(4, dispatch=dispatch)
    print("consume", time.monotonic() - t, r)
    t = time.monotonic()
    f = trial.findings()
    print("analyze", time.monotonic() - t, f["check"], f["backward_writes"])
    assert f["applied"] == 20
