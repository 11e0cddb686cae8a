# SPDX-License-Identifier: Apache-2.0
"""The folder of a split: its plan, the facts of each capture, the shards and their rows (docs/split.md).

Each file is written in `partial/` and renamed, so that a file in its place is complete and a step that is repeated can skip it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from wiretale.analyzer import _core
from wiretale.analyzer.capture_paths import SPLIT_PLAN, Expanded, Paths, expand_paths, is_url, public_url
from wiretale.analyzer.errors import InputError, OutputError, UsageError
from wiretale.analyzer.files.durable import sync
from wiretale.analyzer.options import NO_OPTIONS, PACKET_FLAGS, AnalysisOptions, ReadingMode
from wiretale.analyzer.trace import core_errors, stamp_of
from wiretale.analyzer.units import one_of
from wiretale.version import __version__

SCHEMA = "wiretale.split/3"
PLAN, FACTS, ROWS, PARTIAL = SPLIT_PLAN, "files", "rows", "partial"
SHARDS_MOST, FILES_MOST = 256, 1 << 19  # as in analyzer/core/shard/split.h
KEY_SIZE = 24
ROWS_MAGIC = b"wiretale.rows/2\n"
SHARD, PACKETS = re.compile(r"shard-(\d{2,3})"), re.compile(r"\d{6}\.pcapng\.zst")
#: most bytes that a file from another machine may make of its compressed ones: facts, and the rows of a shard
FACTS_BYTES, ROWS_BYTES = 1 << 30, 1 << 36
#: what reading JSON of another machine may raise
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, zlib.error)


class Split(NamedTuple):
    """The plan of a split."""

    folder: Path
    #: random; rows of another split are refused
    identity: str
    shards: int
    key: bytes
    #: the captures as they were given, in this order, and the stamp of each
    files: list[str]
    stamps: list[tuple[int, int, int, int] | None]
    #: those that choose packets
    options: AnalysisOptions
    #: files and folders as they were given, for commands
    arguments: list[str]

    def facts_path(self, file: int) -> Path:
        return self.folder / FACTS / f"{file:06}.json"

    def shard_folder(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:02}"

    def packets_path(self, file: int, shard: int) -> Path:
        return self.shard_folder(shard) / f"{file:06}.pcapng.zst"

    def rows_path(self, shard: int) -> Path:
        return self.folder / ROWS / f"shard-{shard:02}.rows"


class Facts(NamedTuple):
    """What the shards of a capture do not show (struct split_facts), and the sizes of their files."""

    rows: bytes
    spans: bytes
    packets: int
    excluded: int
    excluded_first_ns: int
    excluded_last_ns: int
    refused: int
    behind: bool
    interfaces: int
    interfaces_early: int
    untimed: int
    untimed_first: bool
    first_ns: int | None
    last_ns: int | None
    end_ns: int | None
    clock_ns: int | None
    damage: str | None
    sizes: list[int]


class Rows(NamedTuple):
    """The rows of a shard, and what they depend on besides its packets: that of all shards must agree."""

    options: AnalysisOptions
    content: bytes
    version: str = __version__

    def agrees(self, options: AnalysisOptions, version: str = __version__) -> bool:
        """Returns whether an analysis with these options, by this version, makes these rows."""
        row_options = options.choosing_packets(False).row_options()
        return (self.options.row_options(), self.version) == (row_options, version)


def packed(content: bytes) -> str:
    """Returns bytes as text for JSON."""
    return base64.b64encode(zlib.compress(content, 1)).decode()


def inflated(content: bytes, most: int) -> bytes:
    """Returns decompressed bytes. ValueError if there are more, or if they are cut."""
    unpacker = zlib.decompressobj()
    inflated_bytes = unpacker.decompress(content, most + 1)
    if len(inflated_bytes) > most or not unpacker.eof:
        raise ValueError
    return inflated_bytes


def unpacked(text: str) -> bytes:
    return inflated(base64.b64decode(text), FACTS_BYTES)


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Raises InputError for a file that is there, but unreadable or malformed; a missing one stays FileNotFoundError."""
    try:
        yield
    except (InputError, FileNotFoundError):
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except MALFORMED:
        raise InputError(f"{path}: damaged{remedy}") from None


def is_number(value: Any, least: int, most: int = (1 << 63) - 1) -> bool:
    """Returns whether a value of JSON is a whole number of this range."""
    return type(value) is int and least <= value <= most


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Raises OutputError for a file that cannot be written."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise OutputError(f"{place}: cannot write: {error.strerror or error}") from None


def partial_path(folder: Path, name: str) -> Path:
    """Returns a new path in the folder of unfinished files."""
    (folder / PARTIAL).mkdir(exist_ok=True)
    return folder / PARTIAL / f"{name}.{secrets.token_hex(6)}"


def publish(folder: Path, place: Path, content: bytes, mode: int = 0o666, first: bool = False) -> None:
    """Writes a file that appears when it is complete; if `first`, one that is there stays.

    OutputError if it cannot be written.
    """
    with writing(place):
        part = partial_path(folder, place.name)
        try:
            part.touch(mode, exist_ok=False)
            part.write_bytes(content)
            sync(part)
            place.parent.mkdir(exist_ok=True)
            if not first or not linked(part, place):
                part.replace(place)
        finally:
            part.unlink(missing_ok=True)
        sync(place.parent)


def linked(part: Path, place: Path) -> bool:
    """Gives a file its name, unless there is one of this name. Returns false if the file system has no links."""
    try:
        os.link(part, place)
    except FileExistsError:
        pass
    except OSError:
        return False
    return True


def name_of(path: str) -> str:
    """Returns the name of a capture in rows: a URL without its password."""
    return public_url(path) if is_url(path) else path


def capture_list(paths: Sequence[Paths]) -> Expanded:
    """Returns the captures to split. UsageError if one can be read only once."""
    captures = expand_paths(paths)
    for path in captures:
        if not is_url(path) and (path == "-" or (os.path.exists(path) and not os.path.isfile(path))):
            raise UsageError(f"{path}: expected a file or URL, because each step may be repeated")
    if len(captures) > FILES_MOST:
        raise UsageError(f"expected at most {FILES_MOST:,} captures, but there are {len(captures):,}")
    return captures


def check_filter(options: AnalysisOptions) -> None:
    """Raises UsageError if the filter is none of libpcap."""
    if options.filter is not None:
        with (
            suppress(InputError),
            core_errors(options.filter),
        ):  # /dev/null is no capture, but the filter is compiled first
            _core.Analysis([os.devnull], [os.devnull], options, ReadingMode())


def plan(
    paths: Sequence[Paths],
    folder: str | os.PathLike[str],
    shards: int,
    options: AnalysisOptions = NO_OPTIONS,
) -> Split:
    """Writes the plan of a split, unless the folder has it already, and returns it. Of the options, those that choose packets
    take effect.

    UsageError if the folder is of other captures, of other packets or of another number of shards, InputError if a capture
    does not exist.
    """
    place, captures = Path(folder), capture_list(paths)
    if not 1 <= shards <= SHARDS_MOST:
        raise UsageError(f"{shards}: expected 1 to {SHARDS_MOST} shards")
    for path in captures:
        try:
            if not is_url(path):
                os.stat(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
    stamps = [stamp_of(path) for path in captures]
    if (place / PLAN).exists():
        return planned_before(place, captures, stamps, shards, options)
    make_folder(place)
    content = {
        "schema": SCHEMA,
        "identity": secrets.token_hex(16),
        "shards": shards,
        "options": options.choosing_packets()._asdict(),
        "key": secrets.token_bytes(KEY_SIZE).hex(),
        "given": captures if any(map(is_url, captures)) else captures.arguments,
        "files": [{"path": path, "stamp": stamp} for path, stamp in zip(captures, stamps, strict=True)],
    }
    secret = any(name_of(path) != path for path in captures)  # a URL with a password or token
    publish(place, place / PLAN, (json.dumps(content, indent=1) + "\n").encode(), 0o600 if secret else 0o666, True)
    return planned_before(place, captures, stamps, shards, options)  # by another process, if it was faster


def make_folder(place: Path) -> None:
    """Makes the folder of a split. UsageError if it has other files, OutputError if it is none."""
    if place.exists() and not place.is_dir():
        raise OutputError(f"{place}: cannot write into it: Not a directory")
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
        names = sorted(file.name for file in place.iterdir() if file.name not in (PARTIAL, PLAN))
    if names and not (place / PLAN).exists():
        raise UsageError(f"{place}: expected a split, or a new or empty folder: it has {names[0]}")


def planned_before(folder: Path, files: list[str], stamps: list[Any], shards: int, options: AnalysisOptions) -> Split:
    """Returns the plan in a folder. UsageError if it is another one."""
    split = open_split(folder)
    if split.shards != shards:
        raise UsageError(f"{folder}: has {split.shards} shards, but {shards} are asked for: use another folder")
    if split.files != files:
        raise UsageError(f"{folder}: is a split of other captures: use another folder")
    check_options(split, options)
    for path, stamp, before in zip(files, stamps, split.stamps, strict=True):
        if stamp != before:
            raise InputError(f"{path}: changed since the split began: use another folder")
    return split


def check_options(split: Split, options: AnalysisOptions) -> None:
    """Raises UsageError if a split is of other packets."""
    if split.options != options.choosing_packets():
        raise UsageError(f"{split.folder}: is a split with other {one_of(PACKET_FLAGS)}: use another folder")


def open_split(folder: str | os.PathLike[str]) -> Split:
    """Returns the plan in a folder. InputError if it is no split, UsageError if it is a shard."""
    place = Path(folder)
    try:
        record = json.loads((place / PLAN).read_text())
        if record["schema"] != SCHEMA:
            raise InputError(f"{place / PLAN}: expected schema {SCHEMA}, but it is {record['schema']!r}")
        stamps = [tuple(entry["stamp"]) if entry["stamp"] else None for entry in record["files"]]
        files = [str(entry["path"]) for entry in record["files"]]
        split = Split(
            place,
            str(record["identity"]),
            record["shards"],
            bytes.fromhex(record["key"]),
            files,
            stamps,
            AnalysisOptions.from_json(record["options"]),
            [str(entry) for entry in record.get("given", files)],
        )
        check_plan(split)
        return split
    except (FileNotFoundError, NotADirectoryError):
        if shard := shard_of(place):
            raise UsageError(f"{place}: is a shard: expected its split, {shard[0]}") from None
        raise InputError(f"{place}: expected a split (made by `wiretale cluster split`): it has no {PLAN}") from None
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{place / PLAN}: {error.strerror}") from None
    except MALFORMED:
        raise InputError(f"{place / PLAN}: damaged: split again into another folder") from None


def check_plan(split: Split) -> None:
    """Raises ValueError for a plan that no split has."""
    paths_are_good = all(path and "\0" not in path and os.fsencode(path) for path in (*split.files, *split.arguments))
    stamps_are_good = all(
        is_url(path)
        if stamp is None
        else len(stamp) == 4 and all(is_number(figure, -(1 << 63), 1 << 64) for figure in stamp)
        for path, stamp in zip(split.files, split.stamps, strict=True)
    )
    counts_are_good = is_number(split.shards, 1, SHARDS_MOST) and 1 <= len(split.files) <= FILES_MOST
    options_are_good = split.options == split.options.choosing_packets()
    key_is_good = len(split.key) == KEY_SIZE
    if not (options_are_good and paths_are_good and stamps_are_good and counts_are_good and key_is_good):
        raise ValueError


def shard_of(path: str | os.PathLike[str]) -> tuple[Path, int] | None:
    """Returns folder and number of a shard of a split, None for any other path. InputError if its split has no plan."""
    place = Path(path)
    if not SHARD.fullmatch(place.name):  # such as .
        place = Path(os.path.abspath(place))
    matched = SHARD.fullmatch(place.name)
    if not matched or not place.is_dir():
        return None
    if (place.parent / PLAN).is_file():
        return place.parent, int(matched[1])
    if any(map(PACKETS.fullmatch, os.listdir(place))):
        raise InputError(f"{place}: is a shard of a split, but {place.parent} has no {PLAN}: split again")
    return None


def read_facts(split: Split, file: int) -> Facts | None:
    """Returns the facts of a capture, None if it was not split yet. InputError if they are damaged."""
    path = split.facts_path(file)
    with suppress(FileNotFoundError), reading(path, ": remove it, and split again"):
        record = json.loads(path.read_text())
        record["rows"], record["spans"] = unpacked(record["rows"]), unpacked(record["spans"])
        if record.pop("identity") != split.identity:
            raise ValueError
        facts = Facts(**record)
        check_facts(split, facts)
        return facts
    return None


def check_facts(split: Split, facts: Facts) -> None:
    """Raises ValueError for facts that no capture has."""
    counts = (
        facts.packets,
        facts.excluded,
        facts.refused,
        facts.interfaces,
        facts.interfaces_early,
        facts.untimed,
        *facts.sizes,
    )
    times = (
        facts.first_ns,
        facts.last_ns,
        facts.end_ns,
        facts.clock_ns,
    )
    counts_are_good = all(is_number(figure, 0) for figure in counts) and len(facts.sizes) == split.shards
    excluded = (facts.excluded_first_ns, facts.excluded_last_ns)
    times_are_good = all(figure is None or is_number(figure, -(1 << 63)) for figure in times)
    times_are_good &= all(is_number(figure, -(1 << 63)) for figure in excluded)
    if not (
        counts_are_good and times_are_good and isinstance(facts.damage, str | None) and isinstance(facts.behind, bool)
    ):
        raise ValueError


def write_facts(split: Split, file: int, facts: Facts) -> None:
    content = {**facts._asdict(), "rows": packed(facts.rows), "spans": packed(facts.spans), "identity": split.identity}
    publish(split.folder, split.facts_path(file), json.dumps(content).encode())


def is_split(split: Split, file: int) -> bool:
    """Returns whether a capture was split: its shards are there, and as large as they were written."""
    facts = read_facts(split, file)
    if facts is None:
        return False
    try:
        return all(split.packets_path(file, n).stat().st_size == size for n, size in enumerate(facts.sizes))
    except OSError:
        return False


def all_facts(split: Split) -> list[Facts]:
    """Returns the facts of all captures. InputError if one was not split, or if one run cannot be restored from them."""
    facts = [read_facts(split, file) for file in range(len(split.files))]
    left = [path for path, fact in zip(split.files, facts, strict=True) if fact is None]
    if left:
        more = f" (and {len(left) - 1:,} more)" if len(left) > 1 else ""
        raise InputError(
            f"{split.folder}: {name_of(left[0])} was not split yet{more}: run `wiretale cluster split` again"
        )
    complete = [fact for fact in facts if fact is not None]
    check_exact(split, complete)
    return complete


def check_exact(split: Split, facts: Sequence[Facts]) -> None:
    """Raises UsageError if state passes from one capture to another that a split by files does not show."""
    names = list(map(name_of, split.files))
    for number, fact in enumerate(facts[:-1]):
        if fact.interfaces != fact.interfaces_early:
            raise UsageError(
                f"{names[number]}: describes an interface after its 64th packet, so the numbers of interfaces depend on the "
                "other captures: give it as the last one, or split it alone"
            )
    for number, fact in enumerate(facts):
        if fact.behind and len(facts) > 1:
            raise UsageError(
                f"{names[number]}: has packets after one with a later time that --filter, --start or --end skips: split it alone"
            )
        if fact.untimed and len(facts) > 1 and (fact.untimed_first or overlaps(facts, number)):
            raise UsageError(
                f"{names[number]}: has packets without a time, which take that of a packet of another capture: split it alone"
            )


def overlaps(facts: Sequence[Facts], number: int) -> bool:
    """Returns whether another capture has packets in the time of this one."""
    fact = facts[number]
    if fact.first_ns is None or fact.last_ns is None:
        return True
    return any(
        other.first_ns <= fact.last_ns and fact.first_ns <= other.last_ns
        for n, other in enumerate(facts)
        if n != number and other.first_ns is not None and other.last_ns is not None
    )


def write_rows(split: Split, shard: int, rows: Rows) -> Path:
    """Writes the rows of a shard: a line of JSON, and the rows compressed, with their SHA-256."""
    content = zlib.compress(rows.content, 1)
    head = {
        "identity": split.identity,
        "shard": shard,
        "options": rows.options.row_options(),
        "wiretale": rows.version,
        "size": len(rows.content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    publish(split.folder, split.rows_path(shard), ROWS_MAGIC + json.dumps(head).encode() + b"\n" + content)
    return split.rows_path(shard)


def read_rows(split: Split, shard: int) -> Rows | None:
    """Returns the rows of a shard, None if it was not analyzed yet. InputError if they are damaged."""
    path = split.rows_path(shard)
    remedy = f": remove it, and analyze {split.shard_folder(shard)} again"
    with suppress(FileNotFoundError), reading(path, remedy):
        content = path.read_bytes()
        magic, head_text, packed_rows = content[: len(ROWS_MAGIC)], *content[len(ROWS_MAGIC) :].split(b"\n", 1)
        head = json.loads(head_text)
        if magic != ROWS_MAGIC or (head["identity"], head["shard"]) != (split.identity, shard):
            raise ValueError
        if hashlib.sha256(packed_rows).hexdigest() != head["sha256"] or not is_number(head["size"], 0, ROWS_BYTES):
            raise ValueError
        rows = Rows(AnalysisOptions.from_json(head["options"]), inflated(packed_rows, head["size"]), head["wiretale"])
        if len(rows.content) != head["size"] or rows.options != rows.options.choosing_packets(False):
            raise ValueError
        return rows
    return None
