# SPDX-License-Identifier: Apache-2.0
"""analyze() and its result, a Trace: the tables of one or more captures.

analyze() drives the core step by step, so that Ctrl-C and progress wait for at most STEP_PACKETS packets, and meanwhile
imports the rules in a thread, because the core releases the GIL. Files keep a stamp of device, inode, size and mtime:
packets() reads them a second time only if they have not changed.
"""

from __future__ import annotations

import operator
import os
import signal
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread

from wiretale.analyzer import _core
from wiretale.analyzer.capture_paths import Inputs, Paths, expand_paths, is_url
from wiretale.analyzer.errors import DamagedInputWarning, InputError, UsageError, WiretaleError
from wiretale.analyzer.flow import FIGURE_POINTS
from wiretale.analyzer.options import (
    NO_OPTIONS,
    PACKETS_MAX,
    ROWS_MAX,
    AnalysisKeywords,
    AnalysisOptions,
    Flows,
    Packets,
    ReadingMode,
    flow_numbers,
    link_rate,
    output_path,
    row_limit,
)
from wiretale.analyzer.printable import printable
from wiretale.analyzer.table import KEPT_TABLES, TABLES, Table
from wiretale.analyzer.units import plural

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from typing import Any, Unpack

    from plotly.graph_objects import Figure

    from wiretale.analyzer import rows
    from wiretale.analyzer.causes.answer import Answer
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.flow import Flow
    from wiretale.analyzer.frames.cited import Choice
    from wiretale.analyzer.query import QueryResult

STEP_PACKETS = 65_536  # some ms
#: a flow that is drawn by columns of time: flow, begin_ns, width_ns, columns, main direction, kind (0 TCP, 1 payload, 2 packets)
ColumnFlow = tuple[int, int, int, int, int, int]

ERRORS: dict[str, type[WiretaleError]] = {"usage": UsageError, "unreadable": InputError, "memory": InputError}
Stamp = tuple[int, int, int, int] | None  # device, inode, size, mtime
Progress = Callable[[int, int, int], None]  # bytes read, bytes in total (0 if unknown), packets


@contextmanager
def core_errors(filter: str | None = None) -> Iterator[None]:
    """Raises the core's errors as those of this package; that of a filter includes a hint."""
    try:
        yield
    except _core.Error as error:
        kind, text = error.args
        if filter and ERRORS[kind] is UsageError:
            from wiretale.analyzer.display_filter import display_filter_hint

            hint = display_filter_hint(filter)
            text = f"filter '{filter}': {hint}" if hint else text
        raise ERRORS[kind](text) from None


class Trace:
    """The tables of one or more captures: attributes, or by name with table(name) and query(sql).

    >>> import wiretale
    >>> trace = wiretale.analyze("sample_pcaps/tcp_losses.pcap")
    >>> len(trace.flows), trace.totals["packets"], trace.answer.cause
    (1, 342, 'tail-loss')
    >>> trace.exchanges[0]["kind"], trace.exchanges[0]["waited_ns"]
    ('connect', 20050000)
    """

    def __init__(
        self,
        core: _core.Analysis,
        inputs: dict[str, Stamp],
        options: AnalysisOptions,
        interrupted: bool = False,
        interfaces_only: bool = False,
    ) -> None:
        self._core = core
        #: the analysis with the packets table; None if they were not kept
        self._kept: _core.Analysis | None = None
        self._interfaces_only = interfaces_only
        #: whether it is of a cluster, whose limits are those of a shard
        self._joined = False
        #: the options of the analysis: filter, start_ns, end_ns, block_size and more
        self.options = options
        self._packets: Table[rows.PacketRow] | None = None  # of all flows
        self._transfers: Transfers | None = None
        self._stamps = inputs
        self._lasting = None not in inputs.values() and not interrupted
        #: the files that were read
        self.inputs = list(inputs)
        self._arguments = self.inputs  # or the folders that have them
        #: whether Ctrl-C stopped the analysis
        self.interrupted = interrupted
        #: packets, flows, evicted_flows, evicted_datagrams, filter_refused, packets_rows_dropped (beyond the limit of the
        #: last packets table), events_dropped, blocks_dropped, exchanges_dropped
        self.totals = core.totals()

    def table(self, name: str) -> Table:
        """Returns a table by name, `packets` as by packets(), `time_spans` likewise. Raises UsageError if there is none.

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/tcp_losses.pcap").table("events")[0]["kind"]
        'duplicate_ack'
        """
        if name not in TABLES:
            from wiretale.analyzer.units import one_of

            raise UsageError(f"there is no table {name!r} (expected {one_of(TABLES)})")
        if name in KEPT_TABLES:
            return Table(self._core.table(name))
        if name == "time_spans":
            return self.time_spans()
        if self._packets is None:
            self._packets = self.packets()
        return self._packets

    @property
    def interfaces(self) -> Table[rows.InterfaceRow]:
        """An input interface of an input file."""
        return self.table("interfaces")

    @property
    def decode_stops(self) -> Table[rows.DecodeStopRow]:
        """Packets of an interface that were not decoded to their end, by reason and protocol."""
        return self.table("decode_stops")

    @property
    def second_ports(self) -> Table[rows.SecondPortRow]:
        """Two ports at which an interface stored the same TCP packets."""
        return self.table("second_ports")

    @property
    def neighbors(self) -> Table[rows.NeighborRow]:
        """An IP address and the MAC address that claims it."""
        return self.table("neighbors")

    @property
    def announcers(self) -> Table[rows.AnnouncerRow]:
        """A router or port that announces itself."""
        return self.table("announcers")

    @property
    def groups(self) -> Table[rows.GroupRow]:
        """A multicast group with members."""
        return self.table("groups")

    @property
    def flows(self) -> Table[rows.FlowRow]:
        """A conversation."""
        return self.table("flows")

    @property
    def directions(self) -> Table[rows.DirectionRow]:
        """One direction of a flow; each flow has two."""
        return self.table("directions")

    @property
    def events(self) -> Table[rows.EventRow]:
        """One verdict on a packet or span."""
        return self.table("events")

    @property
    def series(self) -> Table[rows.SeriesRow]:
        """One direction in one time bin."""
        return self.table("series")

    @property
    def waits(self) -> Table[rows.WaitRow]:
        """One of the longest waits of a direction, between two packets."""
        return self.table("waits")

    @property
    def endings(self) -> Table[rows.EndingRow]:
        """The first FIN or RST of an end of a TCP connection, if unusual."""
        return self.table("endings")

    @property
    def loops(self) -> Table[rows.LoopRow]:
        """Directions with packets that passed again and again."""
        return self.table("loops")

    @property
    def datagrams(self) -> Table[rows.DatagramRow]:
        """One fragmented IP datagram."""
        return self.table("datagrams")

    @property
    def blocks(self) -> Table[rows.BlockRow]:
        """One of wiretale's blocks (common/block.h), over UDP or TCP."""
        return self.table("blocks")

    @property
    def handshakes(self) -> Table[rows.HandshakeRow]:
        """The handshake of TLS or QUIC of a flow."""
        return self.table("handshakes")

    @property
    def exchanges(self) -> Table[rows.ExchangeRow]:
        """Who asked whom for what, and what came of it: of each flow in order of time."""
        return self.table("exchanges")

    @property
    def relations(self) -> Table[rows.RelationRow]:
        """A flow that belongs together with another one."""
        return self.table("relations")

    @property
    def findings(self) -> Table[rows.FindingRow]:
        """One problem or limit, the most severe first."""
        return self.table("findings")

    @property
    def finding_frames(self) -> Table:
        """A packet that shows a finding."""
        return self.table("finding_frames")

    @property
    def finding_flows(self) -> Table:
        """A flow that a finding is about."""
        return self.table("finding_flows")

    @property
    def causes(self) -> Table[rows.CauseRow]:
        """What explains findings, the best explanation first."""
        return self.table("causes")

    @property
    def cause_frames(self) -> Table[rows.CauseFrameRow]:
        """A packet that shows a cause."""
        return self.table("cause_frames")

    @property
    def cause_flows(self) -> Table[rows.CauseFlowRow]:
        """A flow that a cause is about."""
        return self.table("cause_flows")

    @property
    def cause_findings(self) -> Table[rows.CauseFindingRow]:
        """A finding that a cause explains."""
        return self.table("cause_findings")

    @property
    def cause_rivals(self) -> Table[rows.CauseRivalRow]:
        """Another cause that shows alike, and what decides."""
        return self.table("cause_rivals")

    @property
    def answer(self) -> Answer:
        """What a person should hear first, in one sentence, with its cost and proof."""
        from wiretale.analyzer.causes.answer import answer

        return answer(self)

    def flow(self, number: int) -> Flow:
        """Returns one flow, by its number in the flows table. Raises UsageError if there is no such flow.

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/tcp_losses.pcap").flow(0)["protocol"]
        'tcp'
        """
        from wiretale.analyzer.flow import Flow

        (flow_number,) = flow_numbers(operator.index(number), self.totals["flows"])
        return Flow(self, flow_number)

    @property
    def transfers(self) -> Transfers:
        """The transfers that rules and explanations examine."""
        if self._transfers is None:
            from wiretale.analyzer.findings.transfers import Transfers

            # A reference to self would be a circle, which keeps the tables until the next run of the garbage collector.
            self._transfers = Transfers(Trace(self._core, self._stamps, self.options, self.interrupted))
        return self._transfers

    @property
    def flow_sums(self) -> list[tuple[str, str, int, int]]:
        """Returns reason, measures, packets and wire bytes of traffic that was not judged; of all flows first, as ''."""
        return self._core.judged()

    @property
    def empty_range(self) -> str | None:
        """Returns the time span of the packets if start and end exclude all of them; else None."""
        excluded = self._core.excluded()
        if excluded is None or excluded[0] < self.totals["packets"]:
            return None
        from wiretale.analyzer.time import empty_range

        return empty_range(*excluded, self.options.start_ns, self.options.end_ns)

    @property
    def damaged(self) -> bool:
        """Whether a file is damaged or truncated."""
        return any(text is not None for text in self.interfaces.column("damage"))

    @property
    def packets_made(self) -> bool:
        """Whether packets() can return rows: they were kept, or the files can be read again and have not changed."""
        if self._interfaces_only:
            return False
        return self._kept is not None or (self._lasting and not self._changed)

    @property
    def _changed(self) -> list[str]:
        """Files that were replaced or written since the analysis."""
        return [path for path, stamp in self._stamps.items() if stamp_of(path) != stamp]

    def packets(self, flows: Flows = None, most: int = PACKETS_MAX) -> Table[rows.PacketRow]:
        """Returns one row per IP packet of these flows (a number, several, or None for all), in capture order; a fragment before
        the first one of its datagram comes after that.

        Reads the files a second time unless analyze(keep_packets=True) kept the rows. At most `most` rows are returned;
        totals["packets_rows_dropped"] counts the others. Raises UsageError if a second pass is impossible (standard
        input, a pipe, an interrupted analysis), InputError if a file cannot be read or has changed.

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/vlan_ipv6.pcap").packets([2, 4], most=3)["flow"]
        [2, 4, 2]
        """
        numbers, limit = flow_numbers(flows, self.totals["flows"]), row_limit(most)
        if self._interfaces_only or not (self._kept or self._lasting):
            raise UsageError("the packets table was not made: expected analyze(..., keep_packets=True)")
        if self._kept:
            return self._kept_packets(self._kept, numbers, limit)
        again = self._read_again(ReadingMode(packets=numbers, packet_rows_most=limit))
        self.totals["packets_rows_dropped"] = again.totals()["packets_rows_dropped"]
        return Table(again.table("packets"))

    @property
    def _packets_lost(self) -> int:
        """The packets that the packets table cannot have: it was kept up to its limit, and the input cannot be read again."""
        return self._kept.totals()["packets_rows_dropped"] if self._kept and not self._lasting else 0

    def _packet_parts(self) -> Iterator[Table[rows.PacketRow]]:
        """Returns the packets table in parts: one if it is in memory, else those of a second pass, which has no limit."""
        if self._kept and (not self._kept.totals()["packets_rows_dropped"] or self._packets_lost):
            return iter([self.table("packets")])
        self.totals["packets_rows_dropped"] = 0
        return self._read_in_parts()

    def _read_in_parts(self) -> Iterator[Table[rows.PacketRow]]:
        self.check_readable()
        mode = ReadingMode(packets=list(range(self.totals["flows"])), packet_rows_most=ROWS_MAX, first=self._core)
        with core_errors():
            core = _core.Analysis(self.inputs, self.inputs, self.options, mode)
            yield from map(Table, packets_in_parts(core))
        self.check_readable()
        self._check_flows(core)

    def time_spans(self, flows: Flows = None) -> Table[rows.TimeSpanRow]:
        """Returns where the time of these flows went (a number, several, or None for all), in order of flows and time.

        Reads the files a second time, like packets(), and raises the same errors.

        >>> import wiretale
        >>> spans = wiretale.analyze("sample_pcaps/tcp_losses.pcap").time_spans(0)
        >>> [(row["part"], row["end_ns"] - row["start_ns"]) for row in spans][:2]
        [('connecting', 20050000), ('idle', 300000)]
        """
        return self._packets_and_spans(flow_numbers(flows, self.totals["flows"]), 0)[1]

    def _packets_and_spans(self, flows: list[int], most: int) -> tuple[Table[rows.PacketRow], Table[rows.TimeSpanRow]]:
        """Returns the packets of flows, at most `most`, and their time_spans, in one reading."""
        if self._kept:
            spans = Table(self._kept.table("time_spans"))._of_flows(flows, ROWS_MAX)
            return self._kept_packets(self._kept, flows, most), spans
        again = self._read_again(ReadingMode(packets=flows, packet_rows_most=most, time_spans=True))
        self.totals["packets_rows_dropped"] = again.totals()["packets_rows_dropped"]
        return Table(again.table("packets")), Table(again.table("time_spans"))

    def _packets_and_columns(
        self, flows: list[int], most: int, drawn: list[ColumnFlow]
    ) -> tuple[Table[rows.PacketRow], Table[rows.TimeSpanRow], dict[str, bytes]]:
        """Returns the packets of flows, at most `most`, the time_spans of all these flows, and those that are drawn by columns of
        time (_core.time_columns), in one reading."""
        if not drawn:
            return *self._packets_and_spans(flows, most), {}
        numbers = [*flows, *(flow for flow, *_ in drawn)]
        if self._kept:
            kept = self._kept.table("packets")
            packets, streams = _core.time_columns(iter([kept]), drawn, flows, most)
            return Table(packets), Table(self._kept.table("time_spans"))._of_flows(numbers, ROWS_MAX), streams
        self.check_readable()
        mode = ReadingMode(packets=numbers, packet_rows_most=ROWS_MAX, time_spans=True, first=self._core)
        with core_errors():
            again = _core.Analysis(self.inputs, self.inputs, self.options, mode)
            packets, streams = _core.time_columns(packets_in_parts(again), drawn, flows, most)
        self.check_readable()
        self._check_flows(again)
        self.totals["packets_rows_dropped"] = 0
        return Table(packets), Table(again.table("time_spans")), streams

    def _read_again(self, mode: ReadingMode) -> _core.Analysis:
        self.check_readable()
        with core_errors():
            again = _core.Analysis(self.inputs, self.inputs, self.options, mode._replace(first=self._core))
            while again.step(STEP_PACKETS):
                pass
            again.finish()
        self.check_readable()
        self._check_flows(again)
        return again

    def _check_flows(self, again: _core.Analysis) -> None:
        """Raises InputError if a second pass reached a limit that the shards of a cluster did not: it numbers flows otherwise."""
        if self._joined and again.totals()["flows"] != self.totals["flows"]:
            raise InputError("one process would end flows early that the shards kept: expected a greater --max-flows")

    def check_readable(self) -> None:
        """Raises UsageError if a second pass is impossible, InputError if a file has changed."""
        if not self._lasting:
            name = next((name for name, stamp in self._stamps.items() if stamp is None), "the input")
            raise UsageError(f"{name}: cannot be read a second time")
        for path in filter(os.path.exists, self._changed):
            raise InputError(f"{path}: changed since it was analyzed: analyze it again, or with keep_packets=True")

    def _kept_packets(self, core: _core.Analysis, flows: list[int], limit: int) -> Table[rows.PacketRow]:
        rows_in_memory, wanted_flows = Table(core.table("packets")), set(flows)
        counts = rows_in_memory._rows_by_flow(self.totals["flows"])
        table = rows_in_memory
        if len(wanted_flows) < len(counts) or limit < len(rows_in_memory):
            table = rows_in_memory._of_flows(flows, limit)
        left = sum(counts[flow] for flow in wanted_flows) - len(table)
        self.totals["packets_rows_dropped"] = core.totals()["packets_rows_dropped"] + left
        return table

    def query(self, sql: str) -> QueryResult:
        """Returns the result of an SQL query over the tables. Raises UsageError if the query fails, or names a file.

        If the query names the packets table, the files are read a second time, as by packets(). Times are timestamps, and
        `epoch_ns(first_ns)` is an integer of one.

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/tcp_losses.pcap").query("SELECT count(*) FROM packets").fetchall()
        [(342,)]
        """
        import duckdb

        from wiretale.analyzer.query import run

        try:
            return run(self, sql)
        except duckdb.Error as error:
            text = str(error).splitlines()[0]
            hint = " Use epoch_ns() of each time." if "TIMESTAMPTZ_NS" in text else ""
            raise UsageError(f"query: {text}{hint}") from None

    def scapy(self, frames: Choice = None) -> Any:
        """Returns frames as a PacketList of Scapy: those that show the answer, a cause or a finding (its code), or those that
        are given as numbers or as rows with capture and frame. Raises MissingToolError without Scapy, and the errors of
        packets().

        >>> import wiretale
        >>> trace = wiretale.analyze("sample_pcaps/tcp_losses.pcap")
        >>> [packet.comment for packet in trace.scapy("lost-downstream")]
        [b'frame 155', b'frame 338']
        """
        from wiretale.analyzer.frames.python_tools import to_scapy

        return to_scapy(self, frames)

    def pyshark(self, choice: str | int) -> Any:
        """Returns the file as a FileCapture of pyshark, filtered by a flow (its number), a cause or a finding (its code), or a
        display filter. Raises MissingToolError without pyshark, and on Python 3.14, on which pyshark fails.

        >>> import wiretale
        >>> with wiretale.analyze("sample_pcaps/tcp_losses.pcap").pyshark("lost-downstream") as capture:
        ...     [int(packet.number) for packet in capture]
        [155, 338]
        """
        from wiretale.analyzer.frames.python_tools import to_pyshark

        return to_pyshark(self, choice)

    def frame(self, frame: int | Mapping[str, Any]) -> Any:
        """Returns one frame, decoded by tshark, as a packet of pyshark; a row with capture and frame if there are several files.
        Raises the errors of pyshark().

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/tcp_losses.pcap").frame(155).tcp.dstport
        '5201'
        """
        from wiretale.analyzer.frames.python_tools import pyshark_frame

        return pyshark_frame(self, frame)

    def figure(self, flow: int, *panels: str, most: int | None = FIGURE_POINTS) -> Figure:
        """Returns the figure of a flow as a Plotly Figure with its points: all panels that have data, or those that are named.

        Panels: sequence, numbers, flight, rate, rtt, blocks, jitter, spacing, fragments, losses. If there are more than `most`
        points, each series keeps the first, last, least and greatest of each pixel of time; None draws every point. Raises
        UsageError if a panel does not exist or has no data, and the errors of packets().

        >>> import wiretale
        >>> figure = wiretale.analyze("sample_pcaps/tcp_losses.pcap").figure(0, "sequence", "rtt")
        >>> [one.name for one in figure.data][-4:]
        ['→ and back', '← and back', 'least', '1 Losses at the end of a<br>burst']
        """
        from wiretale.reports.figures.flow import make_figure

        return make_figure(self, self.flow(flow).number, panels, None if most is None else row_limit(most))

    def _sketch(self, flow: int) -> str:
        """Returns a small plot for a notebook; nothing if the flow has no data for one."""
        from wiretale.reports.figures.sketch import sketch

        with suppress(WiretaleError):  # the files may be gone
            return sketch(self, flow)
        return ""

    def report(
        self,
        path: str | os.PathLike[str],
        link_bps: float | str | None = None,
        *,
        overwrite: bool = False,
        frames: bool = True,
    ) -> Path:
        """Writes the interactive report, a self-contained HTML file, and returns its path.

        If `link_bps` is given (bit/s, or text such as "1G"), the report compares transfers with the capacity of that
        link. If `frames` is false, it has no bytes of frames, which may be private. Raises UsageError if the path is an
        input, if its suffix is not .html or .htm, or if a capture is there and `overwrite` is false; OutputError if the
        file cannot be written.

        >>> import wiretale
        >>> wiretale.analyze("sample_pcaps/tcp_losses.pcap").report("losses.html").stat().st_size > 100_000
        True
        """
        from wiretale.reports.export.destination import check_outputs
        from wiretale.reports.html.analyze import write_report

        place, link = output_path(path), link_rate(link_bps)
        check_outputs([place], self.inputs, overwrite, page=True)
        return write_report(self, place, link, frames)

    def write(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Writes every table as Parquet into a folder and returns its path. Raises the errors of report().

        >>> import wiretale
        >>> folder = wiretale.analyze("sample_pcaps/tcp_losses.pcap").write("tables.wiretale")
        >>> sorted(file.name for file in folder.iterdir())[:2]
        ['announcers.parquet', 'blocks.parquet']
        """
        from wiretale.reports.export.destination import check_folder
        from wiretale.reports.export.parquet import table_files, write_tables

        place = output_path(folder)
        check_folder(place, table_files(), self.inputs, overwrite)
        return write_tables(self, place)

    def __repr__(self) -> str:
        names = ", ".join(map(printable, self.inputs[:3])) + (", …" if len(self.inputs) > 3 else "")
        counts = (plural(self.totals["packets"], "packet"), plural(self.totals["flows"], "flow"))
        return f"<wiretale.Trace of {names}: {', '.join((*counts, plural(len(self.findings), 'finding')))}>"

    def _repr_html_(self) -> str:
        from html import escape

        from wiretale.reports.notebook import trace_html

        sizes = self.flows["wire_bytes"]
        plot = self._sketch(sizes.index(max(sizes))) if sizes else ""  # of the largest flow
        return f"{trace_html(self)}{plot}<p>{escape(repr(self)[1:-1])}</p>{self.flows._repr_html_()}"


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yields a function that returns whether Ctrl-C was pressed; a second one interrupts as usual. Main thread only."""
    seen = False

    def note(number: int, frame: object) -> None:
        nonlocal seen
        seen = True
        signal.signal(signal.SIGINT, before)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # signals reach the main thread only
        yield lambda: False
        return
    try:
        yield lambda: seen
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def importing(module: str) -> Iterator[None]:
    """Imports a module in a thread during the block, in which the core releases the GIL."""

    def fetch() -> None:
        with suppress(Exception):  # the import that needs the module raises it again
            import_module(module)

    if module in sys.modules:
        yield
        return
    thread = Thread(target=fetch)
    with suppress(RuntimeError):  # no thread can be started; the core needs one too and raises
        thread.start()
    try:
        yield
    finally:
        if thread.ident is not None:
            thread.join()


@contextmanager
def streamed(paths: list[str]) -> Iterator[Inputs]:
    """The inputs for the core. If it fails because a URL cannot be read, that reason is raised instead."""
    if any(map(is_url, paths)):
        from wiretale.analyzer.files.remote import Streams

        inputs: Inputs = Streams(paths)
    else:
        inputs = Inputs(paths)
    try:
        yield inputs
    except _core.Error:
        if failure := inputs.failure():
            raise failure from None
        raise
    finally:
        inputs.close()


def read_all(core: _core.Analysis, progress: Progress | None) -> bool:
    """Reads to the end, or until Ctrl-C; returns whether it was interrupted."""
    with interruptible() as interrupted:
        while not interrupted() and core.step(STEP_PACKETS):
            if progress:
                progress(*core.progress())
        return interrupted()


def packets_in_parts(core: _core.Analysis) -> Iterator[_core.Table]:
    """Reads to the end; yields the packets so far, in capture order, with the memory of one part."""
    more = True
    while more:
        more = core.step(STEP_PACKETS)
        yield core.take_packets()
    core.finish()
    yield core.take_packets()  # of datagrams that end with the capture


def is_lasting(path: str) -> bool:
    """Returns whether an input can be read a second time."""
    return path != "-" and os.path.isfile(path)


def stamp_of(path: str) -> Stamp:
    """Returns the stamp of a file; None if it cannot be read a second time."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    lasting = path != "-" and stat.S_ISREG(status.st_mode)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns) if lasting else None


def can_reread(paths: Sequence[Paths]) -> bool:
    """Returns whether all of these inputs can be read a second time."""
    return all(map(is_lasting, expand_paths(paths)))


def warn_of_damage(texts: Iterable[str]) -> None:
    """Warns once of each damage, at the line that called wiretale."""
    depth, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("wiretale."):
        depth, frame = depth + 1, frame.f_back
    for text in dict.fromkeys(texts):
        warnings.warn(text, DamagedInputWarning, stacklevel=depth)


def add_findings(trace: Trace, causes: bool = True) -> None:
    """Fills the tables of relations, findings and, if they are wanted, causes."""
    from wiretale.analyzer.findings.registry import find
    from wiretale.analyzer.relations.relate import add_relations

    core = trace._core
    add_relations(trace)
    findings = find(trace.transfers)
    for number, finding in enumerate(findings, 1):
        add_rows(core, finding.rows(number))
    if causes:
        from wiretale.analyzer.causes.registry import explain

        for number, cause in enumerate(explain(trace.transfers, findings), 1):
            add_rows(core, cause.rows(number))
    trace.transfers.release_counts()
    _core.give_back_memory()  # outputs need it next


def add_rows(core: _core.Analysis, table_rows: Iterable[tuple[str, tuple[object, ...]]]) -> None:
    """Adds rows to tables that Python fills."""
    for table, row in table_rows:
        core.add_row(table, row)


def analyze(
    *paths: Paths | Any,
    keep_packets: bool = False,
    interfaces_only: bool = False,
    progress: Progress | None = None,
    **options: Unpack[AnalysisKeywords],
) -> Trace:
    """Analyzes pcap and pcapng files (also compressed), folders, lists of them, or "-" (stdin), merged by time; also packets of
    Scapy, and a FileCapture of pyshark.

    >>> analyze("sample_pcaps/tcp_losses.pcap", start="2026-01-15T12:00:00Z").findings[0]["code"]
    'lost-downstream'

    `filter` is a pcap-filter(7) expression. `start` and `end` are ns since the epoch, text such as
    "2026-01-15T12:00:00Z", or datetimes (UTC if they have no zone). At most `max_flows` flows are open at a time; the
    longest idle is evicted first. `jobs` threads are used, by default one for each processor. `keep_packets` keeps the
    packets table (up to 2 million rows), for input that cannot be read twice or to save the second pass of packets().
    `interfaces_only` fills only the interfaces table, in a fraction of the time. `block_size` is the size of blocks in
    TCP streams whose block headers were not captured. `progress` is called with bytes read, bytes in total (0 if unknown)
    and packets. Ctrl-C stops the analysis and returns its results so far. If a capture is damaged, it warns with
    DamagedInputWarning. Raises InputError or UsageError.
    """

    def analysis(files: Sequence[Paths]) -> Trace:
        checked = AnalysisOptions.of(options)
        return analyze_with(
            files, checked, keep_packets=keep_packets, interfaces_only=interfaces_only, progress=progress
        )

    if all(isinstance(path, (str, bytes, os.PathLike)) for path in paths):
        return analysis(paths)
    from wiretale.analyzer.frames.python_tools import analyze_packets

    return analyze_packets(paths, analysis)


def analyze_with(
    paths: Sequence[Paths],
    options: AnalysisOptions,
    *,
    keep_packets: bool = False,
    interfaces_only: bool = False,
    causes: bool = True,
    progress: Progress | None = None,
) -> Trace:
    """analyze() with options that were checked before."""
    if not (expanded := expand_paths(paths)):
        raise UsageError("no capture given: expected a file, a folder, or - for standard input")
    packets: Packets = "all" if keep_packets else "none"
    mode = ReadingMode(packets=packets, time_spans=keep_packets, interfaces_only=interfaces_only)
    with core_errors(options.filter), streamed(expanded) as streams:
        inputs = dict(zip(streams.names, map(stamp_of, expanded), strict=True))
        core = _core.Analysis(streams.paths, streams.names, options, mode)
        with nullcontext() if interfaces_only else importing("wiretale.analyzer.findings.registry"):
            interrupted = read_all(core, progress)
            core.finish()
        if not interrupted and (failure := streams.failure()):
            raise failure
    trace = Trace(core, inputs, options, interrupted, interfaces_only)
    trace._kept = core if keep_packets else None
    if streams.names is expanded:  # else they are URLs, whose secrets the names lack
        trace._arguments = expanded.arguments
    warn_of_damage(text for text in trace.interfaces.column("damage") if text is not None)
    if not interfaces_only:
        add_findings(trace, causes)
    return trace


def analyze_whole(
    *paths: Paths, options: AnalysisOptions = NO_OPTIONS, causes: bool = True, progress: Progress | None = None
) -> Trace:
    """analyze() for results that a part of the captures would make wrong: Ctrl-C raises KeyboardInterrupt."""
    trace = analyze_with(paths, options, causes=causes, progress=progress)
    if trace.interrupted:
        raise KeyboardInterrupt
    return trace
