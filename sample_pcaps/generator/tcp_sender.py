# SPDX-License-Identifier: Apache-2.0
"""The sending end of a TCP connection: transmission, loss detection and retransmission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simulation import Clock
from tcp_segment import Endpoint, Segment
from write_captures import MICROSECOND, MILLISECOND


@dataclass
class SenderRules:
    """Settings of a sender."""

    mss: int = 1448
    window: int = 10  # initial congestion window in segments (RFC 6928)
    window_most: int = 40
    timeout_ns: int = 250 * MILLISECOND  # RFC 6298, Linux's floor of 200 ms
    sacked_needed: int = 3  # SACKed segments above a segment that mark it lost (RFC 6675)
    tail_probe_ns: int = 0  # PTO (RFC 8985); 0 disables the probe
    super_segment: int = 1  # segments given to the network card as one
    probe_bytes: int = 0  # of a zero window probe; Linux sends 0


@dataclass
class Flight:
    """A segment that is sent and not acknowledged."""

    start: int
    end: int
    number: int  # in the order of first transmission
    times: int = 0
    sacked: bool = False
    reason: str = ""  # cause of the next retransmission, "" if none is due


@dataclass
class Sender:
    """Slow start, fast retransmission by SACK, RTO with go-back-N, tail loss probe, zero window probes."""

    clock: Clock
    end: Endpoint
    send: Callable[[Segment, int, int], None]  # segment, its number, number of earlier transmissions
    when_done: Callable[[], None]
    rules: SenderRules = field(default_factory=SenderRules)
    peer_offset: int = 0  # bytes received from the peer; each segment acknowledges them

    writes: list[int] = field(default_factory=list)  # end of each write
    next_byte: int = 0
    acked: int = 0
    edge: int = 0  # right edge of the offered window
    flights: list[Flight] = field(default_factory=list)
    numbered: int = 0
    congestion: int = 0
    recovery_until: int = 0
    timer: int = 0
    waits: int = 0  # RTOs or window probes in a row
    probed: bool = False

    def start(self, window: int) -> None:
        """Starts transmission after the handshake."""
        self.congestion, self.edge = self.rules.window, window
        self.send_more()

    def write(self, length: int) -> None:
        """Queues bytes of the application; the last segment of a write has PSH."""
        self.writes.append((self.writes[-1] if self.writes else 0) + length)
        if self.congestion:
            self.send_more()

    def in_flight(self) -> int:
        """Returns the bytes in flight."""
        return sum(f.end - max(f.start, self.acked) for f in self.flights if not f.sacked and not f.reason)

    def room(self) -> int:
        """Returns the size of the next new segment, 0 if none may be sent. A segment is full or ends a write."""
        rules = self.rules
        unsent = min([end for end in self.writes if end > self.next_byte], default=self.next_byte) - self.next_byte
        free = self.congestion * rules.mss - self.in_flight()
        most = rules.mss * rules.super_segment
        allowed = min(free, self.edge - self.next_byte, most)
        if self.flights and allowed < min(most, self.congestion * rules.mss // 3) and rules.super_segment > 1:
            return 0  # deferred until a larger one fits, as in Linux (tcp_tso_should_defer)
        return unsent if unsent <= allowed else max(0, allowed // rules.mss * rules.mss)

    def send_more(self) -> None:
        """Sends lost segments first, then new data, up to the congestion and receive windows."""
        idle = not self.flights
        while self.in_flight() < self.congestion * self.rules.mss:
            lost = next((f for f in self.flights if f.reason), None)
            if lost:
                self.send_again(lost)
            elif length := self.room():
                self.send_new(length)
            else:
                break
        if idle or not self.timer:
            self.set_timer()

    def send_new(self, length: int) -> None:
        flight = Flight(self.next_byte, self.next_byte + length, self.numbered)
        self.flights.append(flight)
        self.numbered += 1
        self.next_byte += length
        self.put(flight, "window_full" if self.next_byte == self.edge else "")

    def send_again(self, flight: Flight) -> None:
        reason, flight.reason = flight.reason, ""
        self.put(flight, reason)

    def put(self, flight: Flight, kind: str) -> None:
        flags = "PA" if flight.end in self.writes else "A"
        segment = Segment(flight.start, self.peer_offset, flight.end, flags, window=502 << 7, kind=kind)
        self.send(segment, flight.number, flight.times)
        flight.times += 1

    # acknowledgments

    def take(self, ack: Segment) -> None:
        """Processes an acknowledgment."""
        self.end.echo = max(self.end.echo, ack.stamp)
        if ack.ack + ack.window > self.edge:
            self.edge, self.waits = ack.ack + ack.window, 0
        for flight in self.flights:
            flight.sacked |= any(block[0] <= flight.start and flight.end <= block[1] for block in ack.blocks)
        if ack.ack > self.acked:
            self.advance(ack.ack)
        self.find_losses()
        if self.writes and self.acked == self.writes[-1]:
            self.clock.after(300 * MICROSECOND, self.when_done)
        else:
            self.clock.after(15 * MICROSECOND, self.send_more)

    def advance(self, ack: int) -> None:
        """Removes acknowledged segments, grows the window and restarts the timer."""
        if ack > self.recovery_until:
            self.congestion += max(1, (ack - self.acked) // self.rules.mss)
            self.congestion = min(self.congestion, self.rules.window_most)
        self.acked, self.next_byte = ack, max(self.next_byte, ack)
        self.flights = [f for f in self.flights if f.end > ack]
        self.waits, self.probed = 0, False
        self.set_timer()

    def find_losses(self) -> None:
        """Marks segments lost if enough SACKed ones are above them; the first is retransmitted at once."""
        lost = [f for f in self.flights if not f.sacked and f.times == 1 and not f.reason and self.is_passed(f)]
        for flight in lost:
            flight.reason = "fast_retransmission"
        if lost and self.acked >= self.recovery_until:
            self.congestion = max(2, self.congestion // 2)
            self.recovery_until = self.next_byte
            self.send_again(lost[0])

    def is_passed(self, flight: Flight) -> bool:
        """Returns whether enough later segments are SACKed."""
        above = sum(other.sacked for other in self.flights if other.start >= flight.end)
        return above >= self.rules.sacked_needed

    # timers

    def set_timer(self) -> None:
        """Starts the timer that applies: tail loss probe, RTO or window probe."""
        self.timer += 1
        all_sent = bool(self.writes) and self.next_byte == self.writes[-1]
        if self.flights and self.rules.tail_probe_ns and all_sent and not self.probed:
            self.clock.after(self.rules.tail_probe_ns, self.when_timer, self.timer, self.probe_tail)
        elif self.flights:
            self.clock.after(self.rules.timeout_ns << self.waits, self.when_timer, self.timer, self.time_out)
        elif self.writes and not all_sent:
            self.clock.after(self.rules.timeout_ns << self.waits, self.when_timer, self.timer, self.probe_window)

    def when_timer(self, timer: int, call: Callable[[], None]) -> None:
        """Ignores a timer that was restarted since."""
        if timer == self.timer:
            call()

    def time_out(self) -> None:
        """RTO: all segments without SACK count as lost, and slow start begins (RFC 5681 section 3.1)."""
        for flight in self.flights:
            flight.reason = "" if flight.sacked else "timeout_retransmission"
        self.waits += 1
        self.congestion, self.recovery_until = 1, self.acked
        self.send_more()
        self.set_timer()

    def probe_tail(self) -> None:
        """Retransmits the last segment to elicit an ACK."""
        self.probed = True
        self.put(self.flights[-1], "probe_retransmission")
        self.set_timer()

    def probe_window(self) -> None:
        """Probes a zero window with the byte above it, or with no byte one below it."""
        self.waits += 1
        start = self.acked - 1 + self.rules.probe_bytes
        end = start + self.rules.probe_bytes
        probe = Segment(start, self.peer_offset, end, window=502 << 7, kind="window_probe")
        self.send(probe, -1, self.waits)
        self.set_timer()
