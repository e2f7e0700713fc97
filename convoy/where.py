"""`convoy where`: the partition that each key takes under the two rules of Kafka's producers.

Keys enter as arguments; one table or one JSON list leaves on stdout, warnings about the keys on stderr.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from console.entry import EXIT_CODES_HELP
from console.options import NumberList, json_option
from console.output import note, print_json, print_table
from lanes.key import key_text, look_alikes
from lanes.partitioner import Partitioner

MOST_PARTITIONS = 2**31 - 1
"""Kafka counts partitions in a signed 32-bit integer."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key goes in a topic of `partitions` partitions; a rule's None is a partition at random."""

    key: bytes
    partitions: int
    murmur2: int | None
    crc32: int | None

    @property
    def differs(self) -> bool:
        """Whether the two rules can put the key into different partitions."""
        return self.partitions > 1 and self.murmur2 != self.crc32


def place_of(key: bytes, partitions: int) -> Place:
    """The place of one key, by both rules."""
    return Place(
        key,
        partitions,
        murmur2=Partitioner.MURMUR2.partition_of(key, partitions),
        crc32=Partitioner.CRC32.partition_of(key, partitions),
    )


def key_bytes(argument: str, *, is_hex: bool) -> bytes:
    """The bytes of a key given on the command line, untrimmed; raises ValueError.

    An argument that was not UTF-8 arrives with its raw bytes escaped as surrogates; they are restored.
    """
    if is_hex:
        return bytes.fromhex(argument)
    return argument.encode("utf-8", "surrogateescape")


def _counts(_ctx: click.Context, _param: click.Parameter, given: Sequence[int]) -> list[int]:
    if max(given) > MOST_PARTITIONS:
        raise click.BadParameter(f"a topic has at most {MOST_PARTITIONS} partitions")
    return list(dict.fromkeys(given))


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option(
    "--partitions",
    "counts",
    type=NumberList(),
    default="3,6,12",
    show_default=True,
    callback=_counts,
    help="Numbers of partitions to try.",
)
@click.option(
    "--hex", "is_hex", is_flag=True, help="The keys are hexadecimal digits, for keys that are not text."
)
@json_option
def where(keys: tuple[str, ...], counts: list[int], is_hex: bool, as_json: bool) -> None:
    """Say which partition each KEY takes: murmur2 as Java does, CRC32 as librdkafka does by default.

    A key is taken byte by byte as given: spaces, case and Unicode form count, and nothing is trimmed. Put --
    before keys that begin with a hyphen.

    \b
    Examples:
      convoy where TR-4821 TR-9007
      convoy where L1 L2 L3 --partitions 3,6,8
      convoy where --hex 0000002a --json
    """
    try:
        bytes_of = [key_bytes(key, is_hex=is_hex) for key in keys]
    except ValueError as error:
        raise click.UsageError(f"Cannot read a key: {error}") from error
    places = [[place_of(key, count) for count in counts] for key in bytes_of]
    if as_json:
        print_json([_place_json(row) for row in places])
    else:
        _print_places([place for row in places for place in row])
    for group in same_looking(bytes_of):
        shown = ", ".join(f"{key_text(key)} (hex {key.hex()})" for key in group)
        note(f"Look-alike keys: {shown}. Different bytes are different lanes.")
    _note_differences([key for key, row in zip(bytes_of, places, strict=True) if any(p.differs for p in row)])


def same_looking(keys: Iterable[bytes]) -> list[list[bytes]]:
    """Groups of different keys that a reader would take for one, whatever they were encoded in.

    Bytes that are not UTF-8 are read as Latin-1, the usual reason for one text with two sets of bytes.
    """
    bytes_of: dict[str, set[bytes]] = {}
    for key in keys:
        bytes_of.setdefault(_text_of(key), set()).add(key)
    groups = look_alikes(bytes_of)
    alone = set(bytes_of) - {text for group in groups for text in group}
    found = [sorted(key for text in group for key in bytes_of[text]) for group in groups]
    found += [sorted(bytes_of[text]) for text in alone if len(bytes_of[text]) > 1]
    return sorted(found)


def _text_of(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key.decode("latin-1")


def _print_places(places: Sequence[Place]) -> None:
    print_table(
        "Partition of each key",
        ["key", "bytes, hex", "partitions", "murmur2 (Java)", "CRC32 (librdkafka)"],
        [[key_text(p.key), p.key.hex(), p.partitions, _cell(p.murmur2), _cell(p.crc32)] for p in places],
    )


def _cell(partition: int | None) -> str:
    return "random" if partition is None else str(partition)


def _place_json(row: Sequence[Place]) -> dict[str, object]:
    return {
        "key_hex": row[0].key.hex(),
        "partition": {str(p.partitions): {"murmur2": p.murmur2, "crc32": p.crc32} for p in row},
    }


def _note_differences(keys: Sequence[bytes], most: int = 5) -> None:
    """One line for all keys that the two rules send to different partitions."""
    if not keys:
        return
    distinct = list(dict.fromkeys(keys))
    shown = ", ".join(key_text(key) for key in distinct[:most])
    rest = f" and {len(distinct) - most} more" if len(distinct) > most else ""
    note(
        f"Not the same partition under both rules: {shown}{rest}. A Java producer and a librdkafka producer "
        "with its default partitioner would split the events of such a key."
    )
