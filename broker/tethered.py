"""A script: become another program that the kernel ends when our parent dies, however it dies.

    python tethered.py PARENT_PID PROGRAM ARGUMENT...

Linux does it (the tie is to the thread that started us). Elsewhere the program merely runs.
"""

import os
import sys


def main() -> None:
    """Tie the knot and exec; the tie survives exec. Exits at once if the parent is already gone."""
    parent_pid, *command = sys.argv[1:]
    if sys.platform == "linux":
        import ctypes
        import signal

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))
        if os.getppid() != int(parent_pid):
            sys.exit("the parent is gone")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
