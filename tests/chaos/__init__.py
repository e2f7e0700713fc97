"""The fault suite: what is broken on purpose, the evidence that it was, and what came of the table.

`python -m chaos` runs it in a time box. The product holds no switch for it: faults are put into a worker
process from outside, by a function that wraps the product's classes and then runs the worker as it is.
"""
