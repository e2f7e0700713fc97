"""A worker's end of the pipe: what it was told, asked without waiting, and what it tells."""

import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe

import pytest

from consumer.orders import Orders
from consumer.telling import Assigned, CrewmateGone, Failed, Go, Holding, Stop
from lanes.errors import ConvoyError


@pytest.fixture
def pipes() -> Iterator[tuple[Pipe, Pipe]]:
    """The starter's end and the worker's; the signal handlers that orders set are put back after."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    starter, worker = multiprocessing.Pipe()
    yield starter, worker
    for number, handler in before.items():
        signal.signal(number, handler)
    starter.close()
    worker.close()


def test_before_anything_was_told_it_goes_on_and_the_start_is_unknown(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    assert (orders.stopped, orders.zero_us, orders.crewmates_gone) == (False, None, 0)


def test_tick_zero_is_known_once_it_was_told(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    pipes[0].send(Go(123_456))
    assert orders.zero_us == 123_456
    assert not orders.stopped


def test_told_to_stop_it_stays_stopped(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    pipes[0].send(Stop())
    assert orders.stopped
    assert orders.stopped


def test_crewmates_that_are_gone_are_counted(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    for order in (CrewmateGone(), Go(5), CrewmateGone()):
        pipes[0].send(order)
    assert orders.crewmates_gone == 2
    assert orders.zero_us == 5


def test_orders_that_came_before_the_stop_count_and_those_after_it_do_not(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    for order in (Go(5), Stop(), Go(9)):
        pipes[0].send(order)
    assert orders.stopped
    assert orders.zero_us == 5


def test_a_starter_that_is_gone_counts_as_an_order_to_stop(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    assert not orders.stopped
    pipes[0].close()
    assert orders.stopped


def test_an_order_sent_just_before_the_starter_went_is_still_heard(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    pipes[0].send(Go(7))
    pipes[0].close()
    assert orders.zero_us == 7
    assert orders.stopped


def test_sigterm_stops_and_ctrl_c_does_not(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    os.kill(os.getpid(), signal.SIGINT)
    assert not orders.stopped
    os.kill(os.getpid(), signal.SIGTERM)
    assert orders.stopped


def test_what_it_tells_arrives_as_it_was(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    error = ConvoyError("why", hint="what to do", topic="t", partition=2, offset=7, key=b"k")
    for told in (Assigned([3, 1]), Holding(), Failed.of(error)):
        orders.tell(told)
    assert [pipes[0].recv() for _ in range(3)] == [
        Assigned([3, 1]),
        Holding(),
        Failed("why", "what to do", "t", 2, 7, b"k"),
    ]


def test_telling_a_starter_that_is_gone_is_no_error(pipes: tuple[Pipe, Pipe]) -> None:
    orders = Orders(pipes[1])
    pipes[0].close()
    orders.tell(Holding())
    assert orders.stopped
