"""`python -m analysis`: the command `convoy analyze` by itself."""

from analysis.command import analyze
from console.entry import run

if __name__ == "__main__":
    run(analyze, "python -m analysis")
