# SPDX-License-Identifier: Apache-2.0
"""An analysis as Python sees it: the tables of one reading of one or more captures."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

from wiretale.analyzer import _core
from wiretale.analyzer.arguments import (
    Flows,
    Time,
    filter_text,
    flow_numbers,
    link_rate,
    number_within,
    output_path,
    row_limit,
    time_ns,
)
from wiretale.analyzer.capture_paths import expand_paths
from wiretale.analyzer.errors import InputError, UsageError, WiretaleError
from wiretale.analyzer.printable import printable
from wiretale.analyzer.table import Table
from wiretale.analyzer.units import plural

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from typing import Any

    import duckdb

STEP_PACKETS = 65_536  # some ms: how long Ctrl-C and the progress bar wait
MAX_FLOWS = 1_000_000
PACKETS_MOST = 2_000_000
BLOCK_LEAST, BLOCK_MOST = 32, 2**30  # common/block.h
TABLES = ("interfaces", "flows", "directions", "events", "series", "datagrams", "blocks", "packets", "findings")

ERRORS: dict[str, type[WiretaleError]] = {"usage": UsageError, "unreadable": InputError, "memory": InputError}
Stamp = tuple[int, int, int, int] | None  # device, inode, size, time of the last change
Progress = Callable[[int, int, int], None]  # bytes read, bytes in all (0 unknown), packets


@contextmanager
def core_errors(filter: str | None = None) -> Iterator[None]:
    """The core's errors as those of this package; that of a filter names the one that was probably meant."""
    try:
        yield
    except _core.Error as error:
        kind, text = error.args
        if filter and ERRORS[kind] is UsageError:
            from wiretale.analyzer.filter_hint import display_filter_hint

            hint = display_filter_hint(filter)
            text = f"filter '{filter}': {hint}" if hint else text
        raise ERRORS[kind](text) from None


class Trace:
    """What one or more captures hold. Tables are attributes; `table(name)` and `query(sql)` reach them by name."""

    def __init__(
        self, core: _core.Analysis, inputs: dict[str, Stamp], options: dict[str, Any], interrupted: bool = False
    ) -> None:
        self._core = core
        self._options = options
        self._packets: Table | None = None  # of all flows, from a second reading
        self._stamps = inputs
        self._lasting = all(map(is_lasting, inputs)) and not interrupted
        #: the files that were read
        self.inputs = list(inputs)
        #: whether Ctrl-C ended the reading before the end
        self.interrupted = interrupted
        #: packets, flows, evicted_flows, evicted_datagrams, filter_refused, packets_rows_dropped (of the packets table
        #: that was made last: rows beyond its limit), events_dropped, blocks_dropped
        self.totals = core.totals()

    def table(self, name: str) -> Table:
        """A table by name; packets as packets() returns them. UsageError for a name that is none."""
        if name not in TABLES:
            from wiretale.analyzer.units import one_of

            raise UsageError(f"there is no table {name!r} (expected {one_of(TABLES)})")
        if name != "packets":
            return Table(self._core.table(name))
        if self._packets is None:
            self._packets = self.packets()
        return self._packets

    @property
    def options(self) -> dict[str, Any]:
        """How the captures were read: filter, start_ns, end_ns, block_size and more."""
        return dict(self._options)

    @property
    def interfaces(self) -> Table:
        """An input interface of an input file."""
        return self.table("interfaces")

    @property
    def flows(self) -> Table:
        """A conversation."""
        return self.table("flows")

    @property
    def directions(self) -> Table:
        """One direction of a flow."""
        return self.table("directions")

    @property
    def events(self) -> Table:
        """One thing that happened to one packet or span."""
        return self.table("events")

    @property
    def series(self) -> Table:
        """One direction in one time bin."""
        return self.table("series")

    @property
    def datagrams(self) -> Table:
        """One fragmented IP datagram."""
        return self.table("datagrams")

    @property
    def blocks(self) -> Table:
        """One of wiretale's blocks (common/block.h), over UDP or TCP."""
        return self.table("blocks")

    @property
    def findings(self) -> Table:
        """One explanation of what is odd or costs most, the gravest first."""
        return self.table("findings")

    @property
    def empty_range(self) -> str | None:
        """Where the packets are, if start and end exclude all of them; None otherwise."""
        excluded = self._core.excluded()
        if excluded is None or excluded[0] < self.totals["packets"]:
            return None
        from wiretale.analyzer.time import empty_range

        return empty_range(*excluded, self._options["start_ns"], self._options["end_ns"])

    @property
    def damaged(self) -> bool:
        """Whether a file was damaged or cut short."""
        return any(text is not None for text in self.interfaces.column("damage"))

    @property
    def packets_made(self) -> bool:
        """Whether packets() has rows to return: they were kept, or the files can be read again and did not change."""
        if self._options["interfaces_only"]:
            return False
        return self._options["packets"] == "all" or (self._lasting and not self._changed)

    @property
    def _changed(self) -> list[str]:
        """The files that are others than those that were analyzed, or have grown."""
        return [path for path, stamp in self._stamps.items() if stamp_of(path) != stamp]

    def packets(self, flows: Flows = None, most: int = PACKETS_MOST) -> Table:
        """The packets of these flows (a number, several, or None for all), in capture order, at most `most` rows.

        They are those that analyze(keep_packets=True) kept, else of a second reading of the files. `totals` has the
        number of rows beyond the limit: packets_rows_dropped. UsageError if neither is possible (standard input or a
        pipe without keep_packets, or a reading that Ctrl-C ended), InputError if a file can no longer be read or changed
        since it was analyzed.
        """
        numbers, limit = flow_numbers(flows, self.totals["flows"]), row_limit(most)
        if self._options["interfaces_only"] or not (self._options["packets"] == "all" or self._lasting):
            raise UsageError("the packets table was not made: expected analyze(..., keep_packets=True)")
        if self._options["packets"] == "all":
            return self._kept_packets(numbers, limit)
        self._check_unchanged()
        with core_errors():
            again = _core.Analysis(self.inputs, **{**self._options, "packets": numbers, "packets_max": limit})
            while again.step(STEP_PACKETS):
                pass
            again.finish()
        self._check_unchanged()
        self.totals["packets_rows_dropped"] = again.totals()["packets_rows_dropped"]
        return Table(again.table("packets"))

    def _check_unchanged(self) -> None:
        """InputError if a second reading would have other packets than the first. What is missing is the core's error."""
        for path in filter(os.path.exists, self._changed):
            raise InputError(f"{path}: changed since it was analyzed: analyze it again, or with keep_packets=True")

    def _kept_packets(self, flows: list[int], limit: int) -> Table:
        kept, chosen = Table(self._core.table("packets")), set(flows)
        counts = kept.rows_by_flow(self.totals["flows"])
        table = kept
        if len(chosen) < len(counts) or limit < len(kept):
            table = kept.of_flows(flows, limit)
        left = sum(counts[flow] for flow in chosen) - len(table)
        self.totals["packets_rows_dropped"] = self._core.totals()["packets_rows_dropped"] + left
        return table

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """The result of an SQL query over the tables, by their names. UsageError for a query that fails.

        The packets table is made by a second reading of the files if the query names it.
        """
        import duckdb

        from wiretale.analyzer.query import run

        try:
            return run(self, sql)
        except duckdb.Error as error:
            raise UsageError(f"query: {str(error).splitlines()[0]}") from None

    def report(
        self, path: str | os.PathLike[str], link_bps: float | str | None = None, *, overwrite: bool = False
    ) -> Path:
        """Writes the interactive report, one HTML file that needs nothing else, and returns its path.

        With the rate of the link (bit/s, or a text as "1G"), transfers are drawn against what it can carry. Raises
        UsageError if the path is one of the inputs, if it ends in another suffix than .html or .htm, and if a capture is
        there, which only `overwrite` replaces; OutputError if it cannot be written.
        """
        from wiretale.reports.export.destination import check_outputs
        from wiretale.reports.html.analyze import write_report

        place, link = output_path(path), link_rate(link_bps)
        check_outputs([place], self.inputs, overwrite, page=True)
        return write_report(self, place, link)

    def write(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Writes every table as Parquet into a folder, and returns its path. Raises as report()."""
        from wiretale.reports.export.destination import check_folder
        from wiretale.reports.export.parquet import table_files, write_tables

        place = output_path(folder)
        check_folder(place, table_files(), self.inputs, overwrite)
        return write_tables(self, place)

    def __repr__(self) -> str:
        shown = ", ".join(map(printable, self.inputs[:3])) + (", …" if len(self.inputs) > 3 else "")
        counts = (plural(self.totals["packets"], "packet"), plural(self.totals["flows"], "flow"))
        return f"<wiretale.Trace of {shown}: {', '.join((*counts, plural(len(self.findings), 'finding')))}>"

    def _repr_html_(self) -> str:
        from html import escape

        findings_html = self.findings._repr_html_() if len(self.findings) else ""
        return f"<p>{escape(repr(self))}</p>{self.flows._repr_html_()}{findings_html}"


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is noted, and told by what is yielded; a second one ends everything, as usual. Main thread only."""
    seen = False

    def note(number: int, frame: object) -> None:
        nonlocal seen
        seen = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # not in the main thread: nobody can interrupt it there
        yield lambda: False
        return
    try:
        yield lambda: seen
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def importing(module: str) -> Iterator[None]:
    """A thread imports a module meanwhile: the core needs no interpreter while it reads."""

    def fetch() -> None:
        with suppress(Exception):  # whoever needs it imports it again, and is told what is wrong
            import_module(module)

    thread = Thread(target=fetch)
    with suppress(RuntimeError):  # no thread can be started; the core, which needs one too, says so
        thread.start()
    try:
        yield
    finally:
        if thread.ident is not None:
            thread.join()


def read_all(core: _core.Analysis, progress: Progress | None) -> bool:
    """Reads to the end, or to Ctrl-C; returns whether it was that."""
    with interruptible() as interrupted:
        while not interrupted() and core.step(STEP_PACKETS):
            if progress:
                progress(core.bytes_read, core.bytes_total, core.packets_read)
        return interrupted()


def is_lasting(path: str) -> bool:
    """Whether an input can be read a second time."""
    return path != "-" and os.path.isfile(path)


def stamp_of(path: str) -> Stamp:
    """By which a file that was replaced or written to differs from before; None for input that is read once."""
    try:
        status = os.stat(path) if is_lasting(path) else None
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) if status else None


def can_reread(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether all of these inputs can be read a second time."""
    return all(map(is_lasting, expand_paths(paths)))


def check_range(start_ns: int | None, end_ns: int | None) -> None:
    """UsageError for a stretch of time that holds nothing."""
    if start_ns is not None and end_ns is not None and start_ns >= end_ns:
        from wiretale.analyzer.time import show_time

        raise UsageError(f"start {show_time(start_ns)}: expected a time before end {show_time(end_ns)}")


def analyze(
    *paths: str | os.PathLike[str],
    filter: str | None = None,
    start: Time = None,
    end: Time = None,
    max_flows: int = MAX_FLOWS,
    keep_packets: bool = False,
    interfaces_only: bool = False,
    block_size: int | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Reads captures (pcap or pcapng, also compressed; several in time order; folders; "-") and returns their tables.

    `filter` is a capture filter in libpcap's language; `start` and `end` are ns since the epoch, texts as
    "2026-01-15T12:00:00Z" or datetimes (UTC if they have no zone); at most `max_flows` are kept at a time, the longest
    silent ends first. `keep_packets` keeps the packets table (up to 2 million rows) while it reads: for input that
    cannot be read twice, or to save Trace.packets() the second reading. `interfaces_only` fills the interfaces table alone,
    in a fraction of the time. `block_size` is that of the blocks in TCP streams whose headers were not captured.
    `progress` is called with bytes read, bytes in all (0 if not known) and packets. Ctrl-C ends the reading, and what
    was read is returned. Raises InputError, UsageError.
    """
    if not paths:
        raise UsageError("no capture given: expected a file, a folder, or - for standard input")
    max_flows = number_within("max_flows", max_flows, 1, 2**31 - 1)
    if block_size is not None:
        block_size = number_within("block_size", block_size, BLOCK_LEAST, BLOCK_MOST, " bytes")
    start_ns, end_ns = time_ns(start), time_ns(end)
    check_range(start_ns, end_ns)
    inputs = {path: stamp_of(path) for path in expand_paths(paths)}
    options: dict[str, Any] = {
        "filter": filter_text(filter),
        "start_ns": start_ns,
        "end_ns": end_ns,
        "max_flows": max_flows,
        "packets": "all" if keep_packets else "none",
        "packets_max": PACKETS_MOST,
        "interfaces_only": interfaces_only,
        "block_size": block_size or 0,
    }
    with core_errors(filter):
        core = _core.Analysis(list(inputs), **options)
        with nullcontext() if interfaces_only else importing("wiretale.analyzer.findings.registry"):
            interrupted = read_all(core, progress)
            core.finish()
    trace = Trace(core, inputs, options, interrupted)
    if interfaces_only:
        return trace
    from wiretale.analyzer.findings.registry import find

    for finding in find(trace):
        core.add_finding(*finding.row())
    return trace
