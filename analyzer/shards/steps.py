# SPDX-License-Identifier: Apache-2.0
"""The three steps of a split: a capture into shards, a shard into rows, and the rows of all shards into one result.

Each step has only files as input and output, and returns at once if its output is there: so any scheduler may run steps in
parallel, repeat them, and continue after a crash. The rows are those of one run, or the step raises an error.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wiretale.analyzer import _core
from wiretale.analyzer.capture_paths import expand_paths, is_url
from wiretale.analyzer.errors import InputError, UsageError, WiretaleError
from wiretale.analyzer.options import NO_OPTIONS, AnalysisOptions, ReadingMode
from wiretale.analyzer.shards import layout
from wiretale.analyzer.shards.layout import Facts, Split, all_facts, name_of, open_split
from wiretale.analyzer.table import Table
from wiretale.analyzer.trace import (
    Progress,
    Trace,
    add_findings,
    core_errors,
    read_all,
    stamp_of,
    streamed,
    warn_of_damage,
)

NO_TIME = -(2**63)
SECTION_BLOCK, BYTE_ORDER, APPLICATION, SHARD_OPTION, SHARD_VERSION = 0x0A0D0D0A, 0x1A2B3C4D, 4, 0x8157, 3


def section_header(version: str) -> bytes:
    """Returns the block with which each file of a shard begins; its option marks packets with an origin."""
    name = f"wiretale {version}".encode()
    options = struct.pack("<HH", APPLICATION, len(name)) + name + bytes(-len(name) % 4)
    options += struct.pack("<HHIHH", SHARD_OPTION, 4, SHARD_VERSION, 0, 0)
    length = 28 + len(options)
    return struct.pack("<IIIHHq", SECTION_BLOCK, length, BYTE_ORDER, 1, 0, -1) + options + struct.pack("<I", length)


def split_file(folder: str | os.PathLike[str], file: int, version: str) -> bool:
    """Splits one capture of a plan. Returns whether it was done now, not before.

    InputError if the capture cannot be read or has changed, OutputError if a shard cannot be written. A damaged capture is
    split up to the damage, as it is analyzed.
    """
    split = open_split(folder)
    if not 0 <= file < len(split.files):
        raise UsageError(f"{file}: expected the number of a capture, 0 to {len(split.files) - 1}")
    if layout.is_split(split, file):
        return False
    path = split.files[file]
    check_unchanged(path, split.stamps[file])
    with layout.writing(split.folder):
        parts = [layout.partial_path(split.folder, f"{file:06}-{shard:02}") for shard in range(split.shards)]
    try:
        facts = write_shards(split, file, parts, version)
        check_unchanged(path, split.stamps[file])
        with layout.writing(split.folder):
            for shard, part in enumerate(parts):
                split.shard_folder(shard).mkdir(exist_ok=True)
                part.replace(split.packets_path(file, shard))
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    layout.write_facts(split, file, facts)
    return True


def check_unchanged(path: str, stamp: Any) -> None:
    """Raises InputError if a capture is not the one that was planned.

    Only size and time of change count, because another machine has another device number for a shared file.
    """
    if not is_url(path) and (stamp_of(path) or ())[2:] != tuple(stamp)[2:]:
        raise InputError(f"{path}: missing, or changed since the split began: use another folder")


def write_shards(split: Split, file: int, parts: Sequence[Path], version: str) -> Facts:
    """Writes the packets of a capture to the unfinished files of its shards, and returns its facts.

    The files are not synchronized to the disk, which takes most of the time of a small capture: facts have their sizes, so
    that a file is written again if a power failure took it or a part of it.
    """
    fds: list[int] = []
    try:
        with layout.writing(split.folder):
            fds.extend(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666) for part in parts)
        with core_errors(), streamed([split.files[file]]) as streams:
            record = write_packets(split, file, streams.paths[0], fds, version)
            if failure := streams.failure():
                raise failure
        with layout.writing(split.folder):
            while fds:
                os.close(fds.pop())  # which reports errors of a network file system
    finally:
        for fd in fds:
            os.close(fd)
    timed = record.pop("timed")
    for time in ("first_ns", "last_ns", "end_ns", "clock_ns"):
        record[time] = record[time] if timed else None
    return Facts(**record, sizes=[part.stat().st_size for part in parts])


def write_packets(split: Split, file: int, path: str, fds: list[int], version: str) -> dict[str, Any]:
    with layout.writing(split.folder):
        name = name_of(split.files[file])
        return _core.split(path, name, file, fds, section_header(version), split.key, split.options)


def split_captures(
    folder: str | os.PathLike[str], version: str, count: Callable[[], None] = lambda: None
) -> tuple[int, list[str]]:
    """Splits all captures of a plan that are left. Returns how many, and the damage of all. `count` is called for each."""
    split = open_split(folder)
    done = 0
    for file in range(len(split.files)):
        done += split_file(folder, file, version)
        count()
    return done, [fact.damage for fact in all_facts(split) if fact.damage]


def check_shard_files(split: Split, shard: int, facts: Sequence[Facts]) -> list[str]:
    """Returns the files of a shard. InputError if one is missing or has another size than it was written with."""
    paths = []
    for file, fact in enumerate(facts):
        path = split.packets_path(file, shard)
        try:
            size = path.stat().st_size
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}: run `wiretale cluster split` again") from None
        if size != fact.sizes[shard]:
            raise InputError(
                f"{path}: damaged: has {size:,} bytes instead of {fact.sizes[shard]:,}: run `wiretale cluster split` again"
            )
        paths.append(str(path))
    return paths


def clock_of(facts: Sequence[Facts]) -> tuple[int, int]:
    """Returns the time that two successive packets of all captures reached, at least and at most.

    It is that of the packet before the one with the latest time: of the same capture, or the last one of the capture that has
    the latest time of the others. If that one steps back, the time before it is not known.
    """
    latest = sorted(
        (fact.last_ns, fact.clock_ns, fact.end_ns, fact.first_ns)
        for fact in facts
        if fact.last_ns is not None
        and fact.clock_ns is not None
        and fact.end_ns is not None
        and fact.first_ns is not None
    )
    if not latest:
        return NO_TIME, NO_TIME
    first = min(fact[3] for fact in latest)  # sets the clock alone
    last, clock, end, _ = latest[-1]
    other, _, other_end, _ = latest[-2] if len(latest) > 1 else (NO_TIME, 0, NO_TIME, 0)
    exact = clock >= other or (other_end == other and (last > other or end == last))
    most = max(clock, other, first)
    return (most if exact else max(first, *(fact[1] for fact in latest))), most


def read_shard(
    folder: str | os.PathLike[str],
    shard: int,
    options: AnalysisOptions = NO_OPTIONS,
    progress: Progress | None = None,
) -> Trace:
    """Analyzes a shard: its flows have numbers of their own, its packets those of the captures.

    InputError names the file that is missing or damaged. KeyboardInterrupt after Ctrl-C: the rows of a part are of no use.
    """
    split = open_split(folder)
    if not 0 <= shard < split.shards:
        raise UsageError(f"{shard}: expected the number of a shard, 0 to {split.shards - 1}")
    facts = all_facts(split)
    paths = check_shard_files(split, shard, facts)
    names = list(map(name_of, split.files))
    options = options.choosing_packets(False)  # the packets of a shard were chosen when it was split
    least, most = clock_of(facts)
    try:
        with core_errors():
            core = _core.Analysis(paths, names, options, ReadingMode(shard=True, clock_ns=least, clock_most_ns=most))
            if read_all(core, progress):
                raise KeyboardInterrupt
            core.finish()
    except InputError as error:
        raise damaged(str(error), names, paths) from None
    trace = Trace(core, dict(zip(names, split.stamps, strict=True)), options)
    for text in filter(None, trace.interfaces.column("damage")):
        raise damaged(text, names, paths)
    return trace


def damaged(text: str, names: Sequence[str], paths: Sequence[str]) -> InputError:
    """Returns the error for a file of a shard, of which the core's message has the name of the capture."""
    for name, path in zip(names, paths, strict=True):
        if text.startswith(f"{name}: "):
            reason = text.removeprefix(f"{name}: ")
            return InputError(f"{path}: damaged: {reason}: remove it, and run `wiretale cluster split` again")
    return InputError(text)


def write_rows(folder: str | os.PathLike[str], shard: int, trace: Trace) -> Path:
    """Writes the rows of read_shard(), and returns their path. add_findings() must have named the servers of QUIC."""
    return layout.write_rows(open_split(folder), shard, layout.Rows(trace.options, trace._core.shard_rows()))


def analyze_shard(
    folder: str | os.PathLike[str],
    shard: int,
    options: AnalysisOptions = NO_OPTIONS,
    progress: Progress | None = None,
) -> bool:
    """Analyzes a shard and writes its rows. Returns whether it was done now, not before with these options.

    The errors of read_shard(); OutputError if the rows cannot be written.
    """
    split = open_split(folder)
    try:
        before = layout.read_rows(split, shard)
    except InputError:  # it is damaged, and made again
        before = None
    if before is not None and before.agrees(options):
        return False
    trace = read_shard(folder, shard, options, progress)
    write_rows(folder, shard, trace)
    return True


def gather(folder: str | os.PathLike[str], inexact: bool = False) -> Trace:
    """Returns the result of one run over the captures, from the rows of all shards.

    InputError names a shard that was not analyzed or is damaged. UsageError if one run might have reached a limit, such as
    that of open flows, so that its rows depend on more than a shard; if `inexact`, such rows are taken as they are.
    """
    split = open_split(folder)
    facts = all_facts(split)
    rows: list[layout.Rows] = []
    for shard in range(split.shards):
        shard_rows = layout.read_rows(split, shard)
        if shard_rows is None:
            further = sum(not split.rows_path(other).exists() for other in range(shard + 1, split.shards))
            more = f" (and {further} more)" if further else ""
            raise InputError(f"{split.shard_folder(shard)}: not analyzed yet{more}: run `wiretale analyze` with it")
        if rows and not shard_rows.agrees(rows[0].options, rows[0].version):
            raise UsageError(f"{split.rows_path(shard)}: analyzed with other options than {split.rows_path(0)}")
        rows.append(shard_rows)
    options = rows[0].options.with_packets_of(split.options)
    trace = gathered(split, facts, [part.content for part in rows], options, inexact)
    warn_of_damage(text for text in trace.interfaces.column("damage") if text is not None)
    with rows_of_others(folder):
        add_findings(trace)
    return trace


@contextmanager
def rows_of_others(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Raises InputError if values of rows contradict each other. The core refuses rows that are impossible by themselves
    (analyzer/core/shard/row_check.c), but a rule may rely on a relation between rows that only an analysis keeps."""
    try:
        yield
    except WiretaleError:
        raise
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        place = Path(folder) / layout.ROWS
        raise InputError(
            f"{place}: the rows contradict each other ({type(error).__name__}): remove them, and analyze the shards again"
        ) from error


def keep_packets(folder: str | os.PathLike[str], trace: Trace) -> None:
    """Streams the captures of gather() a second time for their packets, which one run keeps if captures are at URLs.

    InputError if a capture cannot be read or has changed, MissingToolError if a library for its URL is missing.
    """
    files = open_split(folder).files
    mode = ReadingMode(packets=list(range(trace.totals["flows"])), time_spans=True, first=trace._core)
    with core_errors(), streamed(files) as streams:
        again = _core.Analysis(streams.paths, streams.names, trace.options, mode)
        if read_all(again, None):
            raise KeyboardInterrupt
        again.finish()
        if failure := streams.failure():
            raise failure
    columns = ("file", "packets", "bytes", "captured_bytes", "first_ns", "last_ns")
    tables = (trace.interfaces, Table(again.table("interfaces")))
    before, now = (list(zip(*map(table.column, columns), strict=True)) for table in tables)
    if changed := set(before).difference(now):
        raise InputError(f"{min(changed)[0]}: changed since it was split")
    trace._kept = again
    trace.totals["packets_rows_dropped"] = again.totals()["packets_rows_dropped"]


def gathered(split: Split, facts: Sequence[Facts], rows: list[bytes], options: AnalysisOptions, inexact: bool) -> Trace:
    """Merges the rows."""
    files = [
        (
            fact.rows,
            fact.spans,
            fact.packets,
            fact.excluded,
            fact.excluded_first_ns,
            fact.excluded_last_ns,
            fact.refused,
        )
        for fact in facts
    ]
    try:
        with core_errors():
            core = _core.Analysis.gather(files, rows, options, inexact)
    except ValueError as error:
        if isinstance(error, UsageError) or not str(error).isdecimal():
            raise
        number = int(str(error))
        path, step = split.rows_path(number), "analyze"
        if number >= split.shards:
            path, step = split.facts_path(number - split.shards), "split"
        raise InputError(f"{path}: damaged, or of another version of wiretale: remove it, and {step} again") from None
    inputs = dict(zip(map(name_of, split.files), split.stamps, strict=True))
    trace = Trace(core, inputs, options)
    with suppress(WiretaleError, OSError):  # the folders that were given may have other captures by now
        if not any(map(is_url, split.arguments)) and expand_paths(split.arguments) == split.files:
            trace._arguments = split.arguments
    return trace
