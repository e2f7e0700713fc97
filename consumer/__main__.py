"""`python -m consumer`: the command `convoy consume` by itself."""

from console.entry import run
from consumer.command import consume

if __name__ == "__main__":
    run(consume, "python -m consumer")
