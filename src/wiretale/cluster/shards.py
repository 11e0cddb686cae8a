# SPDX-License-Identifier: Apache-2.0
"""The tasks of a run: a capture into shards by flow, and a shard into tables in Parquet (docs/cluster.md).

A task leaves a folder of the shared place when all of its files are complete, so that any scheduler may run tasks in parallel,
repeat them, and continue after a crash. A worker needs wiretale in the same version, the captures, and the shared folder.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from wiretale.analyzer import _core
from wiretale.analyzer.errors import InputError, OutputError
from wiretale.analyzer.options import ReadingMode
from wiretale.analyzer.printable import utf8_name
from wiretale.analyzer.table import OF_FLOWS, OF_INTERFACES, Table
from wiretale.analyzer.trace import STEP_PACKETS, core_errors, streamed
from wiretale.cluster.job import FACTS, Job, output
from wiretale.cluster.place import Place
from wiretale.version import __version__

SECTION_BLOCK, BYTE_ORDER, APPLICATION, SHARD_OPTION, SHARD_VERSION = 0x0A0D0D0A, 0x1A2B3C4D, 4, 0x8157, 4
#: of a whole capture, and of a shard; interfaces of a shard count the duplicates of its packets
FILE_TABLES = ("interfaces", "decode_stops", "neighbors", "announcers", "groups", "exchanges")
SHARD_TABLES = ("interfaces", "second_ports", *OF_FLOWS)
PARQUET = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"
assert set(OF_INTERFACES) <= {*FILE_TABLES, *SHARD_TABLES}


class CutFacts(NamedTuple):
    """What the tables and shards of a capture do not show (analyzer/core/shard/split.h), or why it was left out."""

    totals: dict[str, int]
    excluded: list[int] | None
    interfaces: int
    interfaces_early: int
    #: first, last, at the end, and the latest that two successive packets reached, in ns; None without any
    times: list[int] | None
    #: first and last frame, and the time at which a merge of files takes them
    spans: list[list[int]]
    #: bytes of the packets of each shard
    sizes: list[int]
    #: bytes of each table that has rows
    tables: dict[str, int]
    left_out: str | None = None


class ShardFacts(NamedTuple):
    """The sums of a shard."""

    totals: dict[str, int]
    judged: list[list[Any]]
    #: of flows that another packet began than flows.first_ns tells: flow, time, frame, whether it was between packets
    begins: list[list[Any]]
    tables: dict[str, int]


class Shard(NamedTuple):
    """A shard to analyze: the captures that it has packets of, the size of each, and the clock of all captures at their end."""

    number: int
    files: tuple[int, ...]
    sizes: tuple[int, ...]
    clock_ns: int | None


def file_folder(file: int) -> str:
    return f"{file:06}"


def shard_folder(shard: int) -> str:
    return f"shard-{shard:02}"


def packets_name(shard: int) -> str:
    return f"shard-{shard:02}.pcapng.zst"


def section_header() -> bytes:
    """Returns the block with which the packets of a shard begin; its option says that they have their origin."""
    name = f"wiretale {__version__}".encode()
    options = struct.pack("<HH", APPLICATION, len(name)) + name + bytes(-len(name) % 4)
    options += struct.pack("<HHIHH", SHARD_OPTION, 4, SHARD_VERSION, 0, 0)
    length = 28 + len(options)
    return struct.pack("<IIIHHq", SECTION_BLOCK, length, BYTE_ORDER, 1, 0, -1) + options + struct.pack("<I", length)


def read_facts(place: Place, folder: str, kind: Callable[..., Any]) -> Any:
    """Returns the facts of a task, None if it was not done, or if facts or tables are damaged or gone."""
    content = place.read(f"{folder}/{FACTS}")
    try:
        facts = None if content is None else kind(**json.loads(content))
        expected = {f"{folder}/{name}.parquet": size for name, size in facts.tables.items()} if facts else {}
    except (ValueError, TypeError, AttributeError):
        return None
    there = place.names(folder) if expected else {}
    return facts if all(there.get(name) == size for name, size in expected.items()) else None


def write_facts(folder: Path, facts: CutFacts | ShardFacts) -> None:
    (folder / FACTS).write_text(json.dumps(facts._asdict()))


def write_tables(core: _core.Analysis, names: Iterable[str], folder: Path) -> dict[str, int]:
    """Writes the tables that have rows, with times and durations as integers. Returns the size of each."""
    import duckdb

    sizes = {}
    with duckdb.connect(config={"threads": 1}) as connection, utf8_name(folder) as named:
        for name in names:
            table = Table(core.table(name))
            if len(table):
                target = str(named / f"{name}.parquet").replace("'", "''")
                connection.register("rows", table.with_integers())
                connection.execute(f"COPY (FROM rows) TO '{target}' ({PARQUET})")
                sizes[name] = (folder / f"{name}.parquet").stat().st_size
    return sizes


@contextmanager
def writing(place: Place) -> Iterator[None]:
    """Raises OutputError for a file that cannot be written."""
    import duckdb

    try:
        yield
    except InputError:
        raise
    except (OSError, duckdb.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error).splitlines()[0]
        raise OutputError(f"{place}: cannot write: {reason}") from None


def cut(job: Job, file: int) -> CutFacts:
    """Cuts a capture into shards, unless that is done. Returns its facts.

    InputError if the capture cannot be read or has changed. A damaged one is cut up to the damage, as it is analyzed.
    """
    place = job.check()
    before: CutFacts | None = read_facts(place, file_folder(file), CutFacts)
    if before is not None:
        return before
    job.check_visible(file)
    with writing(place), output(place, file_folder(file)) as folder:
        paths = [folder / packets_name(shard) for shard in range(job.shards)]
        core, record = write_packets(job, file, paths)
        job.check_visible(file)
        tables = write_tables(core, FILE_TABLES, folder)
        timed = record.pop("timed")
        times = [record.pop(f"{name}_ns") for name in ("first", "last", "end", "clock")]
        facts = CutFacts(
            totals=core.totals(),
            excluded=list(core.excluded() or ()) or None,
            times=times if timed else None,
            sizes=[path.stat().st_size for path in paths],
            tables=tables,
            **record,
        )
        write_facts(folder, facts)
    return facts


def write_packets(job: Job, file: int, paths: Sequence[Path]) -> tuple[_core.Analysis, dict[str, Any]]:
    """Writes the packets of a capture to the files of its shards."""
    fds: list[int] = []
    try:
        fds.extend(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666) for path in paths)
        with core_errors(), streamed([job.path_of(file)]) as streams:
            arguments = (streams.paths[0], job.files[file].name, file, fds, section_header(), bytes.fromhex(job.key))
            core, record = _core.Analysis.split(*arguments, job.options.choosing_packets())
            if failure := streams.failure():
                raise failure
        return core, record
    finally:
        for fd in fds:
            os.close(fd)


def leave_out(job: Job, file: int, reason: str) -> CutFacts:
    """Notes that a capture cannot be read."""
    facts = CutFacts({}, None, 0, 0, None, [], [0] * job.shards, {}, reason)
    with output(Place(job.work), file_folder(file)) as folder:
        write_facts(folder, facts)
    return facts


def analyze(job: Job, shard: Shard) -> ShardFacts | list[int]:
    """Analyzes a shard into tables, unless that is done. Returns its sums, or the captures to be cut again because packets are
    missing or damaged."""
    place = job.check()
    before: ShardFacts | None = read_facts(place, shard_folder(shard.number), ShardFacts)
    if before is not None:
        return before
    with ExitStack() as stack:
        names = [f"{file_folder(file)}/{packets_name(shard.number)}" for file in shard.files]
        folder = fetched(stack, place, names)
        paths = [str(folder / name) for name in names]
        lost = [
            file
            for file, path, size in zip(shard.files, paths, shard.sizes, strict=True)
            if not os.path.isfile(path) or os.path.getsize(path) != size
        ]
        if lost:
            return lost
        core = read_shard(job, shard, paths)
        if damage := core.table("interfaces").rows_where("damage"):
            captures = core.table("interfaces").rows_at(damage)
            return [file for file in shard.files if job.files[file].name in {row["file"] for row in captures}]
        with writing(place), output(place, shard_folder(shard.number)) as made:
            tables = write_tables(core, SHARD_TABLES, made)
            facts = ShardFacts(core.totals(), list(map(list, core.judged())), list(map(list, core.begins())), tables)
            write_facts(made, facts)
    return facts


def read_shard(job: Job, shard: Shard, paths: list[str]) -> _core.Analysis:
    """Analyzes the packets of a shard, which were chosen when the captures were cut."""
    options = job.options.choosing_packets(False)
    names = [job.files[file].name for file in shard.files]
    with core_errors():
        core = _core.Analysis(paths, names, options, ReadingMode(shard=True, clock_ns=shard.clock_ns))
        while core.step(STEP_PACKETS):
            continue
        core.finish()
    return core


def fetched(stack: ExitStack, place: Place, names: Iterable[str]) -> Path:
    """Returns the shared folder; of a URL, a folder on this machine with copies of these files."""
    if not place.is_url:
        return Path(place.text)
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="wiretale-")))
    for name in names:
        place.fetch(name, folder / name)
    return folder


def shards_of(job: Job, cuts: Mapping[int, CutFacts]) -> list[Shard]:
    """Returns the shards of the captures that were not left out. InputError if there is none; or UsageError if the numbers of
    interfaces depend on the other captures."""
    from wiretale.analyzer.errors import UsageError

    files = [file for file, facts in sorted(cuts.items()) if facts.left_out is None]
    if not files:
        raise InputError(f"no capture could be read: {cuts[0].left_out}")
    for file in files[:-1]:
        if cuts[file].interfaces != cuts[file].interfaces_early:
            raise UsageError(
                f"{job.files[file].name}: describes an interface after its 64th packet, so the numbers of interfaces depend on "
                "the other captures: give it as the last one, or alone"
            )
    clock_ns = clock_of([times for file in files if (times := cuts[file].times)])
    return [
        Shard(number, tuple(files), tuple(cuts[file].sizes[number] for file in files), clock_ns)
        for number in range(job.shards)
    ]


def clock_of(times: Sequence[Sequence[int]]) -> int | None:
    """Returns the time that two successive packets of all captures reached at least: that of the packet before the one with the
    latest time, of the same capture or the last one of the capture that has the latest time of the others."""
    if not times:
        return None
    latest = sorted((last, clock, end, first) for first, last, end, clock in times)
    begin = min(first for *_, first in latest)  # sets the clock alone
    last, clock, end, _ = latest[-1]
    other, _, other_end, _ = latest[-2] if len(latest) > 1 else (clock, 0, clock, 0)
    if clock >= other or (other_end == other and (last > other or end == last)):
        return max(clock, other, begin)
    return max(
        begin, *(reached for _, reached, *_ in latest)
    )  # if the other one steps back, the time before is not known
