# SPDX-License-Identifier: Apache-2.0
"""The commands in Python: explain(), compare(), diff(), theory() and verify(); analyze() is in wiretale.analyzer.trace.

Each returns a result with typed attributes. As text (`print(result)`) it is the output of the command, and as_dict() is the
object of its --json. Modules are imported by the functions that need them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Unpack, overload

from wiretale.analyzer.capture_paths import Paths
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.options import NO_OPTIONS, AnalysisKeywords, AnalysisOptions, link_rate, number_within
from wiretale.analyzer.theory import capacity as arithmetic
from wiretale.analyzer.trace import Trace, analyze_with, warn_of_damage
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.analyzer.compare.capture_point import CapturePoint
    from wiretale.analyzer.compare.clock_offset import Clock
    from wiretale.analyzer.compare.loss_location import Ledger
    from wiretale.analyzer.compare.one_way_delay import Delay
    from wiretale.analyzer.compare.rows import ComparedFlowRow, LostPacketRow
    from wiretale.analyzer.diff.baseline import AgainstBaseline, Standing
    from wiretale.analyzer.diff.difference import Change, Difference, FindingChange, FlowPair, TimeChange
    from wiretale.analyzer.diff.run import Run
    from wiretale.analyzer.findings.explain import Explained
    from wiretale.analyzer.rows import FindingRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.verify.comparison import Comparison, Count
    from wiretale.analyzer.verify.comparison import Difference as VerdictDifference

OnePath = str | os.PathLike[str]
FLOWS_LISTED = 10  # in the texts of explain() and diff(), as in the commands


def text_of(write: Callable[[IO[str]], None]) -> str:
    """Returns the text that a function writes."""
    out = StringIO()
    write(out)
    return out.getvalue().rstrip("\n")


class _Shown:
    """Prints itself as its text."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class Explanation(_Shown):
    """The transfers of a trace with the limit of each, and its findings, the most severe first.

    >>> import wiretale
    >>> explanation = wiretale.explain("sample_pcaps/tcp_losses.pcap")
    >>> explanation.judged
    'Judged: all packets for loss, round trips and limits.'
    >>> sorted(explanation.as_dict())[:3]
    ['answer', 'causes', 'findings']
    """

    trace: Trace
    #: the largest transfers, then smaller ones that stalled
    transfers: list[Explained]

    @property
    def findings(self) -> Table[FindingRow]:
        """One problem or limit, the most severe first."""
        return self.trace.findings

    @property
    def judged(self) -> str:
        """The share of the packets that was judged, in one sentence; empty without a packet."""
        from wiretale.analyzer.findings.judged import judge

        return judge(self.trace).sentence()

    def as_dict(self) -> dict[str, Any]:
        """Returns the object of `wiretale analyze --all --json`."""
        from wiretale.reports.export.explain import explain_object

        return explain_object(self.trace, self.transfers, self.trace.findings.rows(), __version__)

    def __str__(self) -> str:
        from wiretale.reports.terminal.explain import print_explanation

        findings = self.trace.findings.rows()
        return text_of(lambda out: print_explanation(self.trace, self.transfers, findings, out, flows=FLOWS_LISTED))


def explain(
    *captures: Trace | Paths,
    link: float | str | None = None,
    **options: Unpack[AnalysisKeywords],
) -> Explanation:
    """Explains what limited each transfer of a Trace, or of captures, for which it takes the options of analyze().

    If `link` is given (bit/s, or text such as "1G"), transfers are compared with the maximum of that link.

    >>> import wiretale
    >>> explanation = wiretale.explain("sample_pcaps/tcp_losses.pcap", link="100M")
    >>> explanation.transfers[0].headline, explanation.findings[0]["code"]
    ('stalled in RTOs for 42.6% of transfer time', 'lost-downstream')
    """
    from wiretale.analyzer.findings.explain import explain as explain_transfers

    rate = link_rate(link)
    traces = [capture for capture in captures if isinstance(capture, Trace)]
    paths = [capture for capture in captures if not isinstance(capture, Trace)]
    checked = AnalysisOptions.of(options)
    if traces and (paths or len(traces) > 1 or checked != NO_OPTIONS):
        raise UsageError("expected one Trace without options of analyze(), or captures")
    trace = traces[0] if traces else analyze_with(paths, checked)
    return Explanation(trace, explain_transfers(trace, rate))


def open(folder: OnePath) -> Trace:
    """Reopens an output folder of `wiretale analyze -o` or Trace.write(): a Trace of its captures with the options of then.

    Raises InputError if a capture is not there any more or has changed, UsageError if the folder is no output.

    >>> import wiretale
    >>> _ = wiretale.analyze("sample_pcaps/tcp_losses.pcap", filter="tcp").write("losses.wiretale")
    >>> wiretale.open("losses.wiretale").options.filter
    'tcp'
    """
    from wiretale.reports.view.folder import analysis_of, is_output

    place = Path(folder)
    if not is_output(place):
        raise UsageError(f"{place}: expected an output folder of wiretale analyze -o")
    files, options = analysis_of(place)
    return analyze_with(files, options)


@dataclass(frozen=True, repr=False)
class CaptureComparison(_Shown):
    """The same traffic at several capture points: losses by place, clocks and one-way delays.

    >>> import wiretale
    >>> comparison = wiretale.compare("sender.pcap", "receiver.pcap")
    >>> comparison.lost_packets[0]["kind"], comparison.lost_packets[0]["sender_frame"], comparison.flows[0]["network"]
    ('tcp data', 90, 1)
    """

    #: the result in sentences
    answers: list[str]
    points: list[CapturePoint]
    #: a ledger for each unit and direction: of tests in blocks or bytes, then of all packets
    losses: list[Ledger]
    clocks: list[Clock]
    delays: list[Delay]
    #: the flows with most packets
    flows: list[ComparedFlowRow]
    #: the first 1,000 packets that were lost, and how many there are
    lost_packets: list[LostPacketRow]
    lost_packets_total: int
    #: doubts about the result
    notes: list[str]
    _object: dict[str, Any]
    _text: str

    def as_dict(self) -> dict[str, Any]:
        """Returns the object of `wiretale compare --json`."""
        return self._object

    def __str__(self) -> str:
        return self._text


def compare(
    *captures: OnePath,
    sender_log: OnePath | None = None,
    receiver_log: OnePath | None = None,
    same_clock: bool = False,
) -> CaptureComparison:
    """Compares two or three captures of the same traffic, in path order from sender to receiver.

    Each may be a directory of captures. One capture is compared with the logs of `wiretale send --json` and `wiretale
    receive --json`. `same_clock` states that all captures share one clock. Raises InputError or UsageError.

    >>> import wiretale
    >>> comparison = wiretale.compare("sender.pcap", "receiver.pcap")
    >>> print(comparison.answers[0])
    packets sender → receiver: 1 of 214 (0.47%) did not arrive: 1 in the network.
    """
    from wiretale.analyzer.compare.answers import answers
    from wiretale.analyzer.compare.comparison import compare_captures
    from wiretale.reports.export.compare import compare_object
    from wiretale.reports.terminal.compare import print_comparison

    logs = {"sender_log": sender_log, "receiver_log": receiver_log}
    named = {name: os.fspath(path) if path is not None else None for name, path in logs.items()}
    with compare_captures(*[os.fspath(path) for path in captures], **named, same_clock=same_clock) as comparison:
        content = compare_object(comparison, __version__)
        result = CaptureComparison(
            answers=list(answers(comparison)),
            points=comparison.points,
            losses=comparison.ledgers,
            clocks=comparison.clocks,
            delays=comparison.delays,
            flows=comparison.flows,
            lost_packets=content["lost_packets"],
            lost_packets_total=content["lost_packets_total"],
            notes=comparison.notes,
            _object=content,
            _text=text_of(lambda out: print_comparison(comparison, out)),
        )
    warn_of_damage(text for point in result.points for text in point.damage)
    return result


@dataclass(frozen=True, repr=False)
class RunDifference(_Shown):
    """The changes between two runs.

    >>> import wiretale
    >>> difference = wiretale.diff("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> difference.sentence.partition(",")[0]
    'B is slower: goodput 0.91 against 4.56 Mbit/s'
    """

    before: Run
    after: Run
    #: slower or faster, by how much, in one or more sentences
    sentence: str
    #: by measure: goodput, throughput, retransmissions, rtt_median and more (`wiretale diff --help`)
    changes: dict[str, Change]
    #: where the time went, over all flows of each run
    times: list[TimeChange]
    #: findings that appeared, disappeared or changed, the largest change first
    findings: list[FindingChange]
    #: each flow with its counterpart, most changed first
    flows: list[FlowPair]
    _found: Difference

    def as_dict(self) -> dict[str, Any]:
        """Returns the object of `wiretale diff --json`, with all flows."""
        from wiretale.reports.export.diff import diff_object

        return diff_object(self._found, [], len(self.flows), __version__)

    def __str__(self) -> str:
        from wiretale.reports.terminal.diff import print_difference

        return text_of(lambda out: print_difference(self._found, [], FLOWS_LISTED, out))


@dataclass(frozen=True, repr=False)
class StoreDifference(_Shown):
    """Where a run stands among the captures of a store.

    >>> import tempfile, wiretale
    >>> store = wiretale.Store(tempfile.mkdtemp() + "/archive")
    >>> _ = store.add("sample_pcaps/tcp_losses.pcap", "sample_pcaps/timeouts.pcap")
    >>> difference = wiretale.diff("sample_pcaps/reordering.pcap", store=store.folder)
    >>> difference.runs, difference.verdict
    (2, None)
    """

    after: Run
    #: number of captures that it was compared with, and of those that were left out: damaged, empty, or the run itself
    runs: int
    left_out: int
    #: worse, better, different or usual; None if it cannot be determined
    verdict: str | None
    sentence: str
    #: the measures that are unusual, those that are worse first
    unusual: list[Standing]
    #: all measures, of all flows together, then of services
    standings: list[Standing]
    _found: AgainstBaseline

    def as_dict(self) -> dict[str, Any]:
        """Returns the object of `wiretale diff --store --json`."""
        from wiretale.reports.export.baseline import baseline_object

        return baseline_object(self._found, [], False, __version__)

    def __str__(self) -> str:
        from wiretale.reports.terminal.baseline import print_against

        return text_of(lambda out: print_against(self._found, [], out))


@overload
def diff(before: Trace | OnePath, after: Trace | OnePath) -> RunDifference: ...
@overload
def diff(
    before: Trace | OnePath, *, store: OnePath, where: str | None = None, services: int = 10
) -> StoreDifference: ...
def diff(
    before: Trace | OnePath,
    after: Trace | OnePath | None = None,
    *,
    store: OnePath | None = None,
    where: str | None = None,
    services: int = 10,
) -> RunDifference | StoreDifference:
    """Compares two runs, each a Trace, a capture, a directory of captures, or the output of another command.

    With `store`, one run is compared with the captures of a store, or with those that the SQL condition `where` on the view
    captures chooses, in all flows together and in up to `services` services.

    These outputs are the directories of `wiretale analyze -o` and `wiretale experiment run`, and the logs of `wiretale send
    --json`. Raises InputError or UsageError.

    >>> import wiretale
    >>> trace = wiretale.analyze("sample_pcaps/tcp_losses.pcap")
    >>> difference = wiretale.diff(trace, "sample_pcaps/timeouts.pcap")
    >>> change = difference.changes["goodput"]
    >>> round(change.before), round(change.after), change.verdict
    (4558144, 914166, 'worse')
    """
    from wiretale.analyzer.diff.difference import diff_runs
    from wiretale.analyzer.diff.run import load_run, load_trace

    if store is not None and after is None:
        return _diff_with_store(before, os.fspath(store), where, services)
    if after is None or store is not None:
        raise UsageError("diff needs two runs, or one run and a store")
    if where is not None:
        raise UsageError("where chooses captures of a store: it needs store")
    first, second = (load_trace(run) if isinstance(run, Trace) else load_run(os.fspath(run)) for run in (before, after))
    difference = diff_runs(first, second)
    changes = {change.measure.name: change for change in difference.changes}
    return RunDifference(
        first,
        second,
        difference.sentence(),
        changes,
        list(difference.times),
        list(difference.findings),
        difference.flows,
        difference,
    )


def _diff_with_store(run: Trace | OnePath, store: str, where: str | None, services: int) -> StoreDifference:
    """Compares a run with the captures of a store."""
    from wiretale.analyzer.diff.run import load_run, load_trace
    from wiretale.reports.store.baseline import diff_with_store

    def load(options: AnalysisOptions) -> Run:
        return load_trace(run, True) if isinstance(run, Trace) else load_run(os.fspath(run), True, options)

    difference = diff_with_store(Path(store), where, load, number_within("services", services, 0, 2**31 - 1))
    return StoreDifference(
        difference.after,
        difference.runs,
        difference.left_out,
        difference.verdict,
        difference.sentence(),
        difference.unusual,
        difference.standings,
        difference,
    )


@dataclass(frozen=True, repr=False)
class LinkCapacity(_Shown):
    """The maximum of a link: full frames of each protocol, and blocks if their size is given.

    >>> import wiretale
    >>> capacity = wiretale.theory("1G", rtt=0.02, window="64KiB")
    >>> capacity.tcp.payload_per_frame, round(capacity.tcp.max_payload_bps / 1e6)
    (1460, 949)
    """

    link: arithmetic.Link
    tcp: arithmetic.Maximum
    #: the same with timestamps, which most hosts use; None if tcp_options is given
    tcp_with_timestamps: arithmetic.Maximum | None
    udp: arithmetic.Maximum
    #: what one connection can carry; None without rtt
    path: arithmetic.PathBounds | None
    #: the largest UDP payload without fragments
    largest_unfragmented_payload: int
    #: each block in segments of its own; None without a block size
    tcp_block: arithmetic.BlockMaximum | None
    #: each block a datagram; None without a block size, or if a datagram cannot carry it
    udp_block: arithmetic.BlockMaximum | None
    #: blocks back to back, so that every segment is full
    tcp_stream: arithmetic.Stream | None
    block_bytes: int | None

    def as_dict(self) -> dict[str, Any]:
        """Returns the object of `wiretale theory --json`."""
        from wiretale.reports.export.theory import theory_object

        return theory_object(self.link, ("tcp", "udp"), self.block_bytes, __version__, self.path)

    def __str__(self) -> str:
        from wiretale.reports.terminal.theory import print_theory

        return text_of(lambda out: print_theory(self.link, self.as_dict(), out))


def theory(
    link: float | str,
    mtu: int = 1500,
    *,
    block: int | str | None = None,
    framing: str = "ethernet",
    ip: int = 4,
    tcp_options: int = 0,
    rtt: float | None = None,
    window: int | str | None = None,
    loss: float | None = None,
) -> LinkCapacity:
    """Computes the maximum that a link can carry (docs/theory.md); `link` is bit/s, or text such as "1G".

    `block` is the size of the application's blocks in bytes, or text such as "64KiB". `framing` is ethernet, vlan, qinq, mpls,
    pppoe or ip. With `rtt` (seconds), `window` (bytes, or text) and `loss` (a share of segments) bound one TCP connection.
    Raises UsageError if the link cannot exist.

    >>> import wiretale
    >>> capacity = wiretale.theory("1G", block=8192)
    >>> capacity.tcp.payload_per_frame, capacity.udp_block.fragments_per_block
    (1460, 6)
    >>> round(capacity.tcp.max_payload_bps), round(capacity.tcp_with_timestamps.max_payload_bps)
    (949284785, 941482445)
    >>> round(wiretale.theory("1G", rtt=0.02, window="64KiB").path.bound_bps)
    26214400
    """
    from wiretale.analyzer.units import parse_size

    rate = link_rate(link)
    if rate is None:
        raise UsageError("link None: expected bit/s, or a text as '1G'")
    path = arithmetic.Link(rate, mtu, framing, ip, tcp_options)
    arithmetic.check_link(path)
    size = parse_size(block) if isinstance(block, str) else block
    if size is not None:
        arithmetic.check_block(path, "tcp", size)
    if rtt is None and (window is not None or loss is not None):
        raise UsageError("window and loss need rtt, the round trip in seconds")
    bytes_most = parse_size(window) if isinstance(window, str) else window
    fits = size is not None and size <= arithmetic.UDP_MOST[ip]
    return LinkCapacity(
        link=path,
        tcp=arithmetic.maximum(path, "tcp"),
        tcp_with_timestamps=arithmetic.with_timestamps(path),
        path=None if rtt is None else arithmetic.path_bounds(path, rtt, bytes_most, loss),
        udp=arithmetic.maximum(path, "udp"),
        largest_unfragmented_payload=arithmetic.datagram_most(path),
        tcp_block=None if size is None else arithmetic.block_maximum(path, "tcp", size),
        udp_block=arithmetic.block_maximum(path, "udp", size) if size is not None and fits else None,
        tcp_stream=None if size is None else arithmetic.stream(path, size),
        block_bytes=size,
    )


@dataclass(frozen=True, repr=False)
class Verification(_Shown):
    """The verdicts of wiretale on one capture beside Wireshark's.

    >>> import wiretale
    >>> verification = wiretale.verify("sample_pcaps/tcp_losses.pcap")  # doctest: +SKIP
    >>> verification.problem is None, verification.unexplained  # doctest: +SKIP
    """

    path: str
    #: the version of Wireshark
    wireshark: str
    _found: Comparison

    @property
    def kinds(self) -> dict[str, Count]:
        """The frames of each kind that both or only one of them reports."""
        return self._found.kinds

    @property
    def differences(self) -> list[VerdictDifference]:
        """The frames with different verdicts, each with the reason."""
        return self._found.differences

    @property
    def unexplained(self) -> list[VerdictDifference]:
        """The differences that no rule explains."""
        return [difference for difference in self._found.differences if difference.rule is None]

    @property
    def problem(self) -> str | None:
        """The reason why Wireshark did not read the file to its end; else None."""
        return self._found.problem

    def as_dict(self) -> dict[str, Any]:
        """Returns the object of `wiretale verify --json`."""
        import json

        from wiretale.reports.export.verify import write_json

        content = json.loads(
            text_of(lambda out: write_json(self.path, self._found, (__version__, self.wireshark), out))
        )
        return dict(content)

    def __str__(self) -> str:
        from wiretale.reports.terminal.verify import print_comparison

        return text_of(lambda out: print_comparison(self.path, self._found, self.wireshark, out))


def verify(capture: OnePath, *, differences: int | None = None) -> Verification:
    """Compares every verdict on a capture with Wireshark's, which tshark reads from the same file.

    At most `differences` frames are listed for each reason. Raises MissingToolError without tshark, InputError or UsageError.

    >>> import wiretale
    >>> verification = wiretale.verify("sample_pcaps/fast_retransmissions.pcap")  # doctest: +SKIP
    >>> verification.kinds["fast_retransmission"].both, len(verification.unexplained)  # doctest: +SKIP
    (6, 0)
    """
    from wiretale.analyzer.trace import analyze_whole, is_lasting
    from wiretale.analyzer.verify.file import compare_file
    from wiretale.analyzer.verify.tshark import Dissector

    path = os.fspath(capture)
    if path == "-" or (os.path.exists(path) and not is_lasting(path)):
        raise UsageError(f"{path}: expected a file, because Wireshark reads it again")
    dissector = Dissector()
    version = dissector.version()
    return Verification(path, version, compare_file(analyze_whole(path, causes=False), path, dissector, differences))
