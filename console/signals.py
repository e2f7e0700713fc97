"""Ctrl-C and SIGTERM as a question that a loop can ask, so that it ends between two steps."""

import signal
from collections.abc import Callable
from types import FrameType


def stop_on_signals() -> Callable[[], bool]:
    """A function that says whether SIGINT or SIGTERM came since this call.

    The first of each only sets the answer; a second one raises KeyboardInterrupt.
    """
    came: list[int] = []

    def note(received: int, _frame: FrameType | None) -> None:
        came.append(received)
        # Who asks a second time means now.
        signal.signal(received, signal.default_int_handler)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    return lambda: bool(came)
