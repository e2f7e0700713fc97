"""Another program that keeps a write transaction open on a database."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
file.execute("begin immediate")
print("held", flush=True)
sys.stdin.read()
file.execute("rollback")
"""


@contextmanager
def write_lock(db: Path) -> Iterator[None]:
    """Hold the write lock of a database in another process for the length of the block."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(db)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield
        assert holder.stdin is not None
        holder.stdin.close()
