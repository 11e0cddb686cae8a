# SPDX-License-Identifier: Apache-2.0
"""The data that rules read: the largest transfers, those that stalled the longest, nonzero counts, events, time bins.

Transfers reads columns of the tables, never packets, and fetches rows of at most 550 flows, because rules run at the end
of every analysis.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from heapq import nlargest
from typing import TYPE_CHECKING, Any, NamedTuple

from wiretale.analyzer import _core
from wiretale.analyzer.display_filter import flow_filter
from wiretale.analyzer.findings.attempts import Attempts
from wiretale.analyzer.findings.evidence import CITED, FIRST, LAST, RETRANSMISSION, SHOWN, Cited, Files, lost_near
from wiretale.analyzer.findings.exchanges.clock_jumps import ClockJump, clock_jumps_of
from wiretale.analyzer.findings.exchanges.exchange_rows import places_of
from wiretale.analyzer.findings.exchanges.turns import Turns
from wiretale.analyzer.findings.hidden import Hidden
from wiretale.analyzer.findings.model import (
    ON_WIRE,
    Match,
    data_segments,
    duration_of,
    flow_str,
    row_at,
    segments,
    syns_and_fins,
)
from wiretale.analyzer.findings.shared.flow_events import FlowEvents
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import show_share

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    from wiretale.analyzer.findings.exchanges.unanswered import Silence
    from wiretale.analyzer.findings.shared.places import Wait
    from wiretale.analyzer.findings.shared.queue import SharedQueue
    from wiretale.analyzer.rows import DirectionRow, EventRow, FlowRow, HandshakeRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

    Row = TypeVar("Row", bound=Mapping[str, Any])

Counts = list[tuple[int, int]]  # row, count
LARGEST_MAX = 50  # flows
RANKED_LEAST = 8_000  # the largest flows, which outputs ask for several times
STALLED_MAX, STALL_MIN_NS = 500, 20_000_000  # flows; a shorter stall does not count
SERVICE_FLOWS_MAX = 1_000  # flows whose times count for others of the same hosts and service
VARIES_LEAST = 0.25  # of a queue, by which round trips in it vary; other paths differ without
ROWS_MAX = 200  # rows that one rule reads
LOST = ("lost_upstream", "lost_downstream", "blocks_lost")
LOSSES_MAX = 5000  # of a direction; a pattern shows in these
CONTROL_SHARE, CONTROL_MAX = 0.01, 100_000  # of the largest flow's payload; bytes
#: what a transfer can wait for, as Transfer.times has it
TIMES = {
    "pause": "the sender's application",
    "send_buffer": "the send buffer",
    "delayed_ack": "delayed ACKs",
    "window": "the receive window",
    "loss": "loss recovery",
    "timeout": "RTOs",
    "slow_start": "slow start",
    "network": "the path or the congestion window",
    "connecting": "connecting",
    "waiting": "the other end",
    "unknown": "what cannot be told",
}
#: the parts of the time of a flow (columns time_*_ns of flows)
PARTS = {
    **{"connecting": "connecting", "client": "the client", "server": "the server", "loss": "loss recovery"},
    **{"queue": "queues", "path": "round trips", "window": "the receive window", "send_buffer": "the send buffer"},
    **{"transfer": "transfer", "idle": "idle", "unknown": "not known"},
}
#: times that hardly delay a healthy transfer: flows that waited the longest for one are examined, whatever their size
STALLS = ("time_delayed_ack_ns", "time_window_ns", "time_loss_ns", "rto_idle_ns")
COUNTED = (
    *("blocks_corrupt", "blocks_duplicate", "blocks_head_of_line", "blocks_lost", "blocks_out_of_order", "ecn_ce"),
    *("checksum_errors", "fragment_overhead_bytes", "gaps", "incomplete_datagrams", "keep_alives", "capture_reordered"),
    *("lost_downstream", "lost_upstream", "mirror_duplicates", "missing_bytes", "network_duplicates", "out_of_order"),
    *("checksums_ignored", "resets", "retransmissions", "sack_gaps"),
    *(
        "spurious_retransmissions",
        "suspected_timeouts",
        "timeouts",
        "ambiguous",
        "unknown_duplicates",
        "unanswered_large",
        "unseen_bytes",
    ),
    *("unplaced_retransmissions", "window_full", "zero_windows"),
    *STALLS,
    *(name for column, name in ON_WIRE.items() if column != "data_packets"),
)
#: columns that many rules read, each table's in one pass
BYTES = {
    "flows": ("protocol", "state", "end", "application"),
    "exchanges": ("kind", "outcome", "expects_continue"),
}
RETRANSMISSIONS = ("fast_retransmission", "timeout_retransmission", "probe_retransmission", "retransmission")
#: packing codes of event columns; times and frames are doubles
NULL_BYTE, NULL_NUMBER = 255, 2**32 - 1  # as they are packed


class Bins(NamedTuple):
    """The time bins of one direction by column; NaN is null."""

    start_ns: list[float]
    width_ns: float
    wire_bytes: list[float]
    payload_bytes: list[float]
    rtt_ns: list[float]
    window_bytes: list[float]
    packets: list[float]

    def wire_bytes_within(self, start_ns: float, end_ns: float) -> dict[float, float]:
        """Returns the wire bytes of the bins that are wholly within a span, by their start."""
        bins = zip(self.start_ns, self.wire_bytes, strict=True)
        return {at: size for at, size in bins if at >= start_ns and at + self.width_ns <= end_ns}

    def data_span(self) -> tuple[float, float]:
        """Returns the start of the first bin with payload and the end of the last; infinite and negative without."""
        starts = [at for at, size in zip(self.start_ns, self.payload_bytes, strict=True) if size > 0]
        return (min(starts), max(starts) + self.width_ns) if starts else (math.inf, -math.inf)


NO_BINS = Bins([], 1.0, [], [], [], [], [])
SERIES_COLUMNS = [("direction", "B", 0, 1), *((name, "d", 0, 1) for name in Bins._fields)]


class Loss(NamedTuple):
    """A loss: the nearest frame, when it showed, its segments on the wire, and its side of the capture point."""

    frame: int
    time_ns: float
    segments: int = 1
    place: str = "upstream"
    packet: Cited | None = None  # the packet that showed it

    @property
    def near(self) -> Cited | None:
        """The lost segment, or the packet nearest to it, in a trace of one file."""
        return self.packet and lost_near(self.frame, self.packet)


class RoundTrips(NamedTuple):
    """RTTs, ns."""

    least: int
    median: int
    high: int  # 99th percentile
    hosts_least: int  # of all flows between the hosts


Service = tuple[str, str, int | None]  # addresses of sender and receiver, port of the responder


class Services(NamedTuple):
    """The least times of all flows between two hosts with the same port of the responder, ns; port None: any port."""

    rtts: dict[Service, int]  # from the capture point to the receiver and back
    paths: dict[Service, int]  # of the whole path: the least handshake; never of any port

    @classmethod
    def of(cls, flows: Sequence[FlowRow], directions: Sequence[DirectionRow]) -> Services:
        """Returns those of these flows, each of which has two directions."""
        services = cls({}, {})
        for number, row in enumerate(directions):
            flow = flows[number // 2]
            key, rtt = service_of(flow, row), row["rtt_ns_min"]
            for least, each, value in (
                (services.rtts, key, rtt),
                (services.rtts, hosts_of(row), rtt),
                (services.paths, key, flow["handshake_rtt_ns"]),
            ):
                if value is not None:
                    least[each] = min(value, least.get(each, value))
        return services


def service_of(flow: FlowRow, row: DirectionRow) -> Service:
    """Returns the key of a direction in Services."""
    return row["source"], row["destination"], flow["destination_port"]


def hosts_of(row: DirectionRow) -> Service:
    """Returns the key of all services of a direction's hosts in Services."""
    return row["source"], row["destination"], None


def times_in_flight(row: DirectionRow, network: int, lost: int) -> dict[str, int]:
    """Returns the times of a direction whose data waited for its host or the path, with RTOs and slow start apart."""
    timeout, slow_start, recovery = row["timeout_ns"] or 0, row["slow_start_ns"] or 0, row["recovery_ns"] or 0
    return {
        "send_buffer": row["time_send_buffer_ns"] or 0,
        "delayed_ack": row["time_delayed_ack_ns"] or 0,
        "window": row["time_window_ns"] or 0,
        "loss": lost - timeout + recovery,
        "timeout": timeout + (row["suspected_ns"] or 0),
        "slow_start": slow_start,
        "network": network - slow_start - recovery,
    }


def only_fin_repeated(row: DirectionRow) -> bool:
    """Returns whether all that a direction repeated are FINs without data, after all of its data was acknowledged: nobody waits
    for these."""
    repeats = row["retransmissions"] or 0
    is_fin = (row["fins"] or 0) > 1 and (row["syns"] or 0) <= 1 and not row["unacked_bytes"]
    return is_fin and repeats > 0 and repeats == row["syn_fin_retransmissions"]


class Transfer:
    """One direction of a flow that carried payload."""

    def __init__(
        self,
        flow: FlowRow,
        row: DirectionRow,
        back: DirectionRow,
        traffic_share: float,
        is_control_connection: bool,
        files: Files,
        services: Callable[[], Services],
    ) -> None:
        self.flow = flow
        self.row = row  # of directions
        self.back = back  # the opposite direction
        self.traffic_share = traffic_share  # of all wire bytes of the trace
        self.files = files
        self._services = services
        self.is_control_connection = is_control_connection  # hardly any payload beside the largest flow

    @property
    def name(self) -> str:
        """`source → destination`."""
        return flow_str(self.row)

    @property
    def number(self) -> int:
        """Its row of directions."""
        return int(2 * self.row["flow"] + self.row["direction"])

    @cached_property
    def duration_ns(self) -> int:
        """Time from the first packet to the last; 0 without timestamps."""
        return duration_of(self.row) or 0

    @property
    def payload_bytes(self) -> int:
        """Its payload."""
        return self.row["payload_bytes"] or 0

    @property
    def unique_bytes(self) -> int:
        """Its payload without retransmissions; 0 if unknown."""
        return self.row["unique_bytes"] or 0

    @cached_property
    def round_trips(self) -> RoundTrips | None:
        """Its RTTs between the capture point and the receiver; None if unknown. The least is that of all flows of the hosts and
        the service if the RTTs vary as in a queue: it may have stood since before the flow."""
        least, median, high = self.row["rtt_ns_min"], self.row["rtt_ns_median"], self.row["rtt_ns_p99"]
        if least is None or median is None or high is None:
            return None
        rtts = self._services().rtts
        service, hosts = (
            min(least, rtts.get(key, least)) for key in (service_of(self.flow, self.row), hosts_of(self.row))
        )
        varies = high - least >= VARIES_LEAST * (median - service)
        return RoundTrips(service if varies else least, median, high, hosts)

    @cached_property
    def times(self) -> dict[str, int]:
        """Nanoseconds by what its data waited for, in the order of TIMES; empty if they are not accounted. They sum to the life
        of the flow without the time in which nobody waited, in which the sender of a flow without turns still paused."""
        row, flow = self.row, self.flow
        network, lost, unknown = row["time_network_ns"], row["time_loss_ns"], row["time_unknown_ns"]
        idle, pause = flow["time_idle_ns"], row["time_pause_ns"] or 0
        if network is None or lost is None or unknown is None or idle is None:
            return {}
        if flow["exchange"] == "turns":
            pause = min(pause, (flow["time_client_ns"] or 0) + (flow["time_server_ns"] or 0))
        else:
            idle = max(idle - pause, 0)
        times = {
            "pause": pause,
            **times_in_flight(row, network, lost),
            "connecting": flow["time_connecting_ns"] or 0,
            "waiting": 0,
            "unknown": unknown - (row["suspected_ns"] or 0),
        }
        times["waiting"] = max((duration_of(flow) or 0) - idle - sum(times.values()), 0)
        return times

    @property
    def held_up_ns(self) -> int:
        """The time in which losses and RTOs left the path idle: not recovery while the bottleneck was busy; 0 if unknown."""
        return (self.row["time_loss_ns"] or 0) + (self.row["suspected_ns"] or 0)

    @cached_property
    def waited_ns(self) -> int:
        """The sum of its times; the duration if they are unknown."""
        return sum(self.times.values()) or self.duration_ns

    def share(self, *names: str) -> float:
        """Returns the share of these times, 0 to 1."""
        return sum(self.times[name] for name in names) / self.waited_ns if any(self.times.values()) else 0.0

    @cached_property
    def path_rtt_ns(self) -> int | None:
        """Least RTT of the whole path: the least handshake of the hosts and the service, because a queue may stand at that of the
        flow; without any, the sum of both sides' least."""
        paths = self._services().paths
        ends = (self.row, self.back)
        handshakes = [paths[key] for key in (service_of(self.flow, row) for row in ends) if key in paths]
        if handshakes:
            return min(handshakes)
        if self.flow["handshake_rtt_ns"] is not None:
            return int(self.flow["handshake_rtt_ns"])
        halves = [row["rtt_ns_min"] for row in ends if row["rtt_ns_min"] is not None]
        return sum(halves) if halves else None

    @cached_property
    def lost(self) -> int:
        """Data segments on the wire, or numbered packets, lost on either side of the capture point."""
        return self.count(*LOST)

    def count(self, *names: str) -> int:
        """Returns the sum of some counts, in segments with payload on the wire."""
        return sum(data_segments(self.row, name) or 0 for name in names)

    @cached_property
    def lost_as_captured(self) -> int:
        """The same losses as captured packets, each of which may be several segments."""
        return sum((integer_in(self.row, name) or 0) - syns_and_fins(self.row, name) for name in LOST)

    @property
    def unplaced(self) -> int:
        """Retransmissions of data that may have been lost as well: their place is unknown."""
        return data_segments(self.row, "unplaced_retransmissions") or 0

    def loss_share(self, loss: float) -> str:
        """Returns a share of lost segments: `1.2%`, or `1.2% to 1.4%` if retransmissions have no known place."""
        most = min(loss + self.unplaced / self.data_segments, 1)
        return f"{show_share(loss, 1)} to {show_share(most, 1)}" if self.unplaced else show_share(loss, 1)

    @property
    def data_packets(self) -> int:
        """Captured packets with payload; at least 1, as a divisor."""
        return max(self.row["data_packets"] or 1, 1)

    @property
    def sent_or_lost(self) -> int:
        """Segments on the wire, or numbered packets and those that are missing; at least 1."""
        return max((segments(self.row, "data_packets") or 0) + self.lost, 1)

    @property
    def data_segments(self) -> int:
        """The same on the wire."""
        return max(segments(self.row, "data_packets") or 1, 1)

    @property
    def side(self) -> tuple[int, int]:
        """Its flow and direction."""
        return self.row["flow"], self.row["direction"]

    def match(self, severity: str | None = None, *, weight: float, filter: str | None = None, **fields: Any) -> Match:
        """Returns a match about this transfer, whose words include its name. `weight`: the share of it that is affected."""
        return Match(
            severity,
            flows=[self.side],
            filter=filter or flow_filter(self.flow),
            impact=self.traffic_share * weight,
            name=self.name,
            **fields,
        )


class Transfers:
    """What the rules read of one trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: flows of which another one, the same conversation at another place, is judged
        self.legs = legs_of(trace)
        #: wire bytes of each flow
        self.sizes = sizes = array("d", trace.flows._packed("wire_bytes", "d"))
        self._ranked: list[int] = []
        self._bytes: dict[str, dict[str, bytes]] = {}
        self.wire_bytes = int(sum(sizes) - sum(sizes[flow] for flow in self.legs)) or 1
        numbers = self._largest_judged(LARGEST_MAX)
        self._main_bytes = row_at(trace.flows, numbers[0])["payload_bytes"] or 0 if numbers else 0
        #: directions of the largest flows, largest first
        self.largest = [transfer for number in numbers for transfer in self._directions(number)]
        waiting = self._longest_stalls(set(numbers))
        #: stalled flows that are not examined, because STALLED_MAX others stalled longer
        self.stalled_left = max(len(waiting) - STALLED_MAX, 0)
        longest = nlargest(STALLED_MAX, waiting, key=waiting.__getitem__)
        #: directions of the smaller flows that stalled the longest
        self.stalled = [transfer for number in longest for transfer in self._directions(number)]
        self._bins: dict[int, dict[int, Bins]] = {}
        self._losses: dict[int, list[Loss]] = {}
        #: the longest waits of the flows that were looked at, by direction and the number of the kind
        self.waits: dict[int, dict[tuple[int, int], list[Wait]]] = {}
        self.shared_queues: list[SharedQueue] | None = None  # None until they are looked for

    def largest_flows(self, most: int) -> list[int]:
        """Returns the flows with the most wire bytes, largest first; equal ones in their order."""
        if most > len(self._ranked) and len(self._ranked) < len(self.sizes):
            self._ranked = nlargest(max(most, RANKED_LEAST), range(len(self.sizes)), key=self.sizes.__getitem__)
        return self._ranked[:most]

    def _largest_judged(self, most: int) -> list[int]:
        """Returns the same of the flows that are judged."""
        return [flow for flow in self.largest_flows(most + len(self.legs)) if flow not in self.legs][:most]

    @property
    def conversations(self) -> int:
        """The number of flows that are judged."""
        return len(self.sizes) - len(self.legs)

    def _judged(self, counts: dict[str, Counts], rows: int) -> dict[str, Counts]:
        """Returns counts of the judged flows, of a table with so many rows for each flow."""
        if not self.legs:
            return counts
        return {
            name: [(number, count) for number, count in column if number // rows not in self.legs]
            for name, column in counts.items()
        }

    def without_legs(self, rows: Iterable[Row]) -> list[Row]:
        """Returns the rows of judged flows, and those of no flow."""
        return [row for row in rows if row["flow"] not in self.legs]

    def _longest_stalls(self, seen: set[int]) -> dict[int, int]:
        longest: dict[int, int] = {}
        for name in STALLS:
            for direction, ns in self.counts[name]:
                flow = direction // 2
                if ns >= STALL_MIN_NS and flow not in seen:
                    longest[flow] = max(ns, longest.get(flow, 0))
        return longest

    def _directions(self, number: int) -> list[Transfer]:
        flow = row_at(self.trace.flows, number)
        if flow["payload_bytes"] == 0:  # as of most flows of a scan; null if one direction has payload of unknown size
            return []
        rows = self.trace.directions.rows(2 * number, 2 * number + 2)
        control = (flow["payload_bytes"] or 0) <= min(CONTROL_SHARE * self._main_bytes, CONTROL_MAX)
        return [
            Transfer(flow, row, rows[1 - i], self.traffic_share(row), control, self.files, lambda: self.services)
            for i, row in enumerate(rows)
            if row["payload_bytes"]
        ]

    def tcp(self) -> list[Transfer]:
        """Returns the largest TCP transfers."""
        return [transfer for transfer in self.largest if transfer.flow["protocol"] == "tcp"]

    def limited(self) -> list[Transfer]:
        """Returns the largest TCP transfers and those that stalled the longest."""
        return [transfer for transfer in (*self.largest, *self.stalled) if transfer.flow["protocol"] == "tcp"]

    @cached_property
    def has_one_file(self) -> bool:
        """Whether all frames are of one file, so that their numbers compare."""
        return len(set(self.trace.interfaces.column("file"))) == 1

    @cached_property
    def files(self) -> Files:
        """The files, which texts about frames name if there are several."""
        return Files(self.trace.interfaces.column("file"))

    def traffic_share(self, row: DirectionRow) -> float:
        """Returns a direction's share of all wire bytes."""
        return float(row["wire_bytes"] / self.wire_bytes)

    @cached_property
    def services(self) -> Services:
        """The least times by hosts and service, over the first SERVICE_FLOWS_MAX flows."""
        most = SERVICE_FLOWS_MAX
        return Services.of(self.trace.flows.rows(0, most), self.trace.directions.rows(0, 2 * most))

    @cached_property
    def all_counts(self) -> dict[str, Counts]:
        """For each column of COUNTED, the directions in which it is neither null nor 0."""
        return self.trace.directions._nonzero(COUNTED)

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """The same of the flows that are judged."""
        return self._judged(self.all_counts, 2)

    @cached_property
    def all_flow_counts(self) -> dict[str, Counts]:
        """The same as all_counts of flows."""
        return self.trace.flows._nonzero(("icmp_errors", "one_way", "clock_jump_ns"))

    @cached_property
    def flow_counts(self) -> dict[str, Counts]:
        """The same of the flows that are judged."""
        return self._judged(self.all_flow_counts, 1)

    @cached_property
    def attempts(self) -> Attempts:
        """The TCP connection attempts."""
        return Attempts(self)

    @cached_property
    def turns(self) -> Turns:
        """The requests and responses."""
        return Turns(self)

    @cached_property
    def silences(self) -> dict[tuple[str, int | None], list[Silence]]:
        """The requests that servers acknowledged and left without an answer, by server."""
        from wiretale.analyzer.findings.exchanges.unanswered import by_server

        return by_server(self)

    @cached_property
    def slowest_answers(self) -> dict[str, float]:
        """The longest time that each server took to answer, ns."""
        from wiretale.analyzer.findings.exchanges.unanswered import slowest_answers

        return slowest_answers(self)

    @cached_property
    def _quic_rows(self) -> dict[int, int]:
        flows = array("I", self.trace.handshakes._packed("flow", "I"))
        return {flows[number]: number for number in self.trace.handshakes._rows_where("protocol", "quic")}

    def quic(self, flow: int) -> HandshakeRow | None:
        """Returns the handshakes row of a QUIC flow; None of others."""
        number = self._quic_rows.get(flow)
        return None if number is None else row_at(self.trace.handshakes, number)

    @cached_property
    def hidden(self) -> Hidden:
        """The hosts whose answers the capture may not show."""
        return Hidden(self)

    def lost_together(self, place: str | None) -> set[int]:
        """Returns the directions whose losses at a place, or at both, are those of a shared queue."""
        queues = self.shared_queues or ()
        directions = [
            {member.transfer.number for member in queue.members} for queue in queues if place in (None, queue.place)
        ]
        return set().union(*directions)

    def release_counts(self) -> None:
        """Frees the counts and attempts, which are many if every flow has problems."""
        self.__dict__.pop("counts", None)
        self.__dict__.pop("all_counts", None)
        self.__dict__.pop("attempts", None)
        self.__dict__.pop("hidden", None)
        self.__dict__.pop("silences", None)
        self.__dict__.pop("_flow_events", None)
        self._losses.clear()
        self.waits.clear()

    def rows(self, column: str) -> list[DirectionRow]:
        """Returns the first directions rows in which a column of COUNTED is neither null nor 0."""
        return [row_at(self.trace.directions, number) for number, _ in self.counts[column][:ROWS_MAX]]

    @cached_property
    def words(self) -> dict[str, int]:
        """The number that each word of the events table is packed as."""
        return {word: number for number, word in enumerate(_core.vocabulary())}

    def bytes_of(self, name: str, column: str) -> bytes:
        """Returns a column of BYTES, a byte for each row: the number of a word in `words`, or a flag; NULL_BYTE is null."""
        if name not in self._bytes:
            table: Table = getattr(self.trace, name)
            fields = [(each, "B", 0, 1) for each in BYTES[name]]
            packed = table._packed_columns(fields) if len(table) else [b""] * len(fields)
            self._bytes[name] = dict(zip(BYTES[name], packed, strict=True))
        return self._bytes[name][column]

    def flows_where(self, column: str, word: str) -> list[int]:
        """Returns the flows with a word in a column of BYTES."""
        return places_of(self.bytes_of("flows", column), self.words[word])

    @cached_property
    def payload_bytes(self) -> int:
        """The payload of all flows."""
        return self.trace.flows.total("payload_bytes")

    @cached_property
    def codes(self) -> list[str | None]:
        """The code of the answer to each exchange, such as the status of HTTP."""
        return self.trace.exchanges.column("code")

    @cached_property
    def flow_of(self) -> array[int]:
        """The flow of each exchange; NULL_NUMBER without one."""
        exchanges = self.trace.exchanges
        return array("I", exchanges._packed("flow", "I") if len(exchanges) else b"")

    @cached_property
    def ports(self) -> array[int]:
        """The port of the responder of each flow; NULL_NUMBER without one."""
        return array("I", self.trace.flows._packed("destination_port", "I"))

    @cached_property
    def _flow_events(self) -> FlowEvents:
        flows = dict.fromkeys(transfer.row["flow"] for transfer in (*self.largest, *self.stalled))
        return FlowEvents(self.trace.events, self.trace.totals["flows"], self.base_ns, list(flows))

    def events(self, flows: list[int], *names: str) -> Iterator[tuple[Any, ...]]:
        """Returns these columns of the events of some flows, which must ascend; words are numbers, null numbers NaN, times
        differences from `base_ns`.
        """
        events = self._flow_events
        return events.of_flow(flows[0], names) if len(flows) == 1 else events.of_flows(flows, names)

    def event_frames(
        self,
        flows: Iterable[int],
        kinds: Iterable[str],
        place: str | None = None,
        spurious: bool = False,
        unplaced: bool = False,
        left_out: Set[int] = frozenset(),
    ) -> dict[tuple[int, int], list[Cited]]:
        """Returns the packets of the first events of these kinds by flow and direction.

        If set, only those at a place, those proven spurious, or those of which neither is known.
        """
        kind_numbers, where = {self.words[kind] for kind in kinds}, place and self.words[place]
        repeats = {self.words[kind] for kind in RETRANSMISSIONS}
        frames: dict[tuple[int, int], list[Cited]] = {}
        names = ("flow", "direction", "kind", "place", "spurious", "frame", "capture", "time_ns")
        for flow, direction, kind, event_place, proven, frame, capture, after in self.events(
            sorted(set(flows)), *names
        ):
            if kind not in kind_numbers or (place and event_place != where) or (spurious and proven != 1):
                continue
            if unplaced and proven != NULL_BYTE:
                continue
            cited = frames.setdefault((flow, direction), [])
            if len(cited) < SHOWN and frame not in left_out:
                cited.append(self.cited(frame, after, flow, capture, RETRANSMISSION if kind in repeats else CITED))
        return frames

    def cited(self, frame: float, after: float, flow: int | None, capture: float, role: str = CITED) -> Cited:
        """Returns a packet by packed values, of which NaN is null; its time is relative to base_ns."""
        time_ns = None if math.isnan(after) else self.base_ns + int(after)
        return Cited(int(frame), time_ns, flow, None if math.isnan(capture) else int(capture), role)

    @cached_property
    def clock_jumps(self) -> list[ClockJump]:
        """The jumps of the capture's clock that the timestamps of both ends show."""
        return clock_jumps_of(self.trace, [flow for flow, _ in self.all_flow_counts["clock_jump_ns"]])

    @cached_property
    def base_ns(self) -> int:
        """The time of the first packet: doubles hold differences from it exactly."""
        return min((ns for ns in self.trace.interfaces.column("first_ns") if ns is not None), default=0)

    def span(self, flow: int) -> list[Cited]:
        """Returns the first and the last packet of a flow."""
        row = row_at(self.trace.flows, flow)
        last = row["last_frame"] if self.has_one_file else None
        return [
            Cited(row["first_frame"], row["first_ns"], flow, row["first_capture"], FIRST),
            Cited(last, row["last_ns"], flow, row["first_capture"], LAST),
        ]

    def losses(self, transfer: Transfer) -> list[Loss]:
        """Returns the first losses of a direction in frame order; they are read once."""
        if transfer.number not in self._losses:
            self._losses[transfer.number] = self._read_losses(transfer)
        return self._losses[transfer.number]

    def _read_losses(self, transfer: Transfer) -> list[Loss]:
        kinds = {self.words[name] for name in RETRANSMISSIONS}
        block_lost, places = self.words["block_lost"], {self.words[name]: name for name in ("upstream", "downstream")}
        losses: list[Loss] = []
        mss = (transfer.data_segments > transfer.data_packets and transfer.row["wire_mss"]) or math.inf
        names = ("direction", "kind", "place", "spurious", "frame", "related_frame", "time_ns", "bytes", "capture")
        flow = transfer.row["flow"]
        events = self.events([flow], *names)
        for direction, kind, place, spurious, frame, related, after, size, capture in events:
            if direction != transfer.row["direction"]:
                continue
            time_ns = after + self.base_ns
            if kind == block_lost:
                losses.append(Loss(int(frame), time_ns, packet=self.cited(frame, after, flow, capture)))
            elif kind in kinds and place in places and spurious != 1:
                sent = frame if math.isnan(related) else related
                merged = math.ceil(size / mss) if size > mss else 1
                retransmission = self.cited(frame, after, flow, capture, RETRANSMISSION)
                losses.append(Loss(int(sent), time_ns, merged, places[place], retransmission))
            if len(losses) == LOSSES_MAX:
                break
        return sorted(losses, key=lambda loss: loss[:2])

    def bins(self, transfer: Transfer) -> Bins:
        """Returns the time bins of a direction."""
        return self.bins_at(*transfer.side)

    def bins_at(self, flow: int, direction: int) -> Bins:
        """Returns the time bins of a direction of a flow, which are read once."""
        if flow not in self._bins:
            self._bins[flow] = self.bins_of_flow(flow)
        return self._bins[flow].get(direction, NO_BINS)

    def bins_of_flow(self, flow: int) -> dict[int, Bins]:
        """Returns the time bins by direction; reads them anew."""
        packed = self.trace.series._packed_columns(SERIES_COLUMNS, [flow])
        columns = {name: array(code, data) for (name, code, *_), data in zip(SERIES_COLUMNS, packed, strict=True)}
        by_direction = {}
        directions = columns.pop("direction")
        for direction in set(directions):
            rows = [i for i, value in enumerate(directions) if value == direction]
            of: dict[str, Any] = {name: [column[i] for i in rows] for name, column in columns.items()}
            by_direction[direction] = Bins(**{**of, "width_ns": of["width_ns"][0]})
        return by_direction


def legs_of(trace: Trace) -> frozenset[int]:
    """Returns the flows of which another leg is judged (relations.judged)."""
    relations = trace.relations
    pairs = zip(relations.column("flow"), relations.column("judged"), strict=True) if len(relations) else ()
    return frozenset(flow for flow, judged in pairs if judged is not None)


def rows_of_kind(transfers: Transfers, kind: str, limit: int) -> list[EventRow]:
    """Returns the first events of a kind of judged flows."""
    events = transfers.trace.events
    packed, number = events._packed("kind", "B"), transfers.words[kind]
    row_numbers: list[int] = []
    while len(row_numbers) < limit:
        following = packed.find(number, row_numbers[-1] + 1 if row_numbers else 0)
        if following < 0:
            break
        row_numbers.append(following)
    return transfers.without_legs(row_at(events, i) for i in row_numbers)


# The standard library's statistics takes longer to import than a small capture to analyze.


def mean(values: Sequence[float]) -> float:
    """Returns the mean; 0 without values."""
    return math.fsum(values) / len(values) if values else 0.0


def variation(values: Sequence[float]) -> float:
    """Returns the standard deviation over the mean; 0 without values or if the mean is 0."""
    middle = mean(values)
    return math.sqrt(mean([(value - middle) ** 2 for value in values])) / middle if middle else 0.0


def median_of(values: Sequence[float]) -> float:
    """Returns the median without NaNs; NaN without values."""
    ordered = sorted(value for value in values if not math.isnan(value))
    half = len(ordered) // 2
    if not ordered:
        return math.nan
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
