"""`python -m producer`: the command `convoy produce` by itself."""

from console.entry import run
from producer.command import produce

if __name__ == "__main__":
    run(produce, "python -m producer")
