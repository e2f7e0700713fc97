"""librdkafka's mock cluster as a broker inside this process: starts in milliseconds, needs nothing.

It is the library that confluent-kafka itself uses, called through ctypes. Clients of any process reach
it over TCP.

It carries: producing (idempotent too), reading, watermarks and list_offsets, headers and record times,
topic ids, consumer groups with range assignment, committed offsets with metadata.

It does not carry, as tried with librdkafka 2.16:

- CreateTopics, DeleteTopics, configs, and listing, describing or deleting groups: it refuses them with
  _UNSUPPORTED_FEATURE. Topics are made with `create_topic`.
- Transactions: it accepts them and means nothing by it. Aborted records are read like any others under
  read_committed, a second producer of the same transactional.id fences nobody, and offsets sent to a
  transaction are lost.
- Share groups as Kafka has them: they start at a topic's end, and give a partition to one member alone.
- Rebalancing in good time: members that come within REBALANCE_DELAY_MS of the first one start together.
  Anyone who comes or goes later stops the group for its session timeout, and again if it is unlucky.
- Looking up offsets by time: always -1.
- Keeping records: a partition silently drops its oldest ones past 5 MB or 100,000 records.
- Refusing unknown topics: a client with allow.auto.create.topics, a producer's and an admin client's
  default, makes one of 4 partitions by asking about it.
"""

import ctypes
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import confluent_kafka.cimpl

from broker.running import Kind
from lanes.errors import ConvoyError

REBALANCE_DELAY_MS = 2_000
"""How long a group's first member waits for others."""

RD_KAFKA_PRODUCER = 0
NO_ERROR = 0
TOPIC_ALREADY_EXISTS = 36
BROKER_ID = 1

HANDLE = ctypes.c_void_p
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "rd_kafka_conf_new": (HANDLE, []),
    "rd_kafka_conf_set": (ctypes.c_int, [HANDLE, *[ctypes.c_char_p] * 3, ctypes.c_size_t]),
    "rd_kafka_new": (HANDLE, [ctypes.c_int, HANDLE, ctypes.c_char_p, ctypes.c_size_t]),
    "rd_kafka_destroy": (None, [HANDLE]),
    "rd_kafka_mock_cluster_new": (HANDLE, [HANDLE, ctypes.c_int]),
    "rd_kafka_mock_cluster_destroy": (None, [HANDLE]),
    "rd_kafka_mock_cluster_bootstraps": (ctypes.c_char_p, [HANDLE]),
    "rd_kafka_mock_set_controller_id": (None, [HANDLE, ctypes.c_int32]),
    "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [HANDLE, ctypes.c_int32]),
    "rd_kafka_mock_topic_create": (ctypes.c_int, [HANDLE, ctypes.c_char_p, ctypes.c_int, ctypes.c_int]),
}
"""The C functions called here: name to return type and argument types."""


class EmbeddedUnavailable(ConvoyError):
    """This installation of confluent-kafka brings no usable mock cluster."""


class EmbeddedRefused(ConvoyError):
    """The mock cluster would not do it."""


def load_library(path: Path | None = None) -> ctypes.CDLL:
    """The librdkafka that confluent-kafka runs on, or the one at `path`, with the types of its functions.

    Raises EmbeddedUnavailable where there is none or it lacks a function.
    """
    path = path or _library_path()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise EmbeddedUnavailable(f"librdkafka cannot be loaded: {error}") from error
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise EmbeddedUnavailable(
                f"{path} has no function {name}",
                hint="confluent-kafka 2.16 and newer have it: pip install --upgrade confluent-kafka",
            ) from error
        function.restype, function.argtypes = result, arguments
    return library


def _library_path() -> Path:
    """confluent-kafka's own extension module: loaders look up names in what it is linked to as well.

    Windows does not, so there it is the DLL that the wheel ships.
    """
    extension = Path(confluent_kafka.cimpl.__file__)
    if sys.platform != "win32":
        return extension
    shipped = sorted(extension.parents[1].glob("confluent_kafka*/*rdkafka*.dll"))
    if not shipped:
        raise EmbeddedUnavailable(f"no librdkafka DLL beside {extension}")
    return shipped[0]


class EmbeddedBroker:
    """The mock cluster for the length of a `with` block; the module says what it can do.

    Entering raises EmbeddedUnavailable.
    """

    kind: Kind = "embedded"

    def __init__(self) -> None:
        self.bootstrap_servers = ""
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        self._library = load_library()
        with ExitStack() as undo:
            client = self._new_client()
            undo.callback(self._library.rd_kafka_destroy, client)
            self._cluster = self._library.rd_kafka_mock_cluster_new(client, 1)
            if not self._cluster:
                raise EmbeddedUnavailable("librdkafka's mock cluster did not start")
            undo.callback(self._library.rd_kafka_mock_cluster_destroy, self._cluster)
            # Without a controller admin requests wait for one until they time out.
            self._library.rd_kafka_mock_set_controller_id(self._cluster, BROKER_ID)
            self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, REBALANCE_DELAY_MS)
            self.bootstrap_servers = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cluster = None
        self._undo.close()

    def check_running(self) -> None:
        """It runs as long as we do."""

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic; raises EmbeddedRefused if it exists or the numbers make no sense."""
        if partitions < 1:
            raise EmbeddedRefused(f"a topic cannot have {partitions} partitions", topic=name)
        code = self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)
        if code == TOPIC_ALREADY_EXISTS:
            raise EmbeddedRefused(f"topic {name} exists already", topic=name)
        if code != NO_ERROR:
            raise EmbeddedRefused(f"topic {name} could not be made: error {code}", topic=name)

    def _new_client(self) -> int:
        """A client that is connected to nothing; the cluster lives in it."""
        reason = ctypes.create_string_buffer(512)
        configuration = self._library.rd_kafka_conf_new()
        # It would warn on stderr that it is connected to nothing.
        self._library.rd_kafka_conf_set(configuration, b"log_level", b"2", reason, len(reason))
        client: int | None = self._library.rd_kafka_new(RD_KAFKA_PRODUCER, configuration, reason, len(reason))
        if not client:
            raise EmbeddedUnavailable(f"librdkafka did not start: {reason.value.decode()}")
        return client
