"""Ctrl-C and SIGTERM as a question that a loop can ask, so that it ends between two steps."""

import signal
from collections.abc import Callable


def stop_on_signals() -> Callable[[], bool]:
    """A function that says whether SIGINT or SIGTERM came since this call."""
    came: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: came.append(received))
    return lambda: bool(came)
