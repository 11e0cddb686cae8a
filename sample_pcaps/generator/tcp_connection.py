# SPDX-License-Identifier: Apache-2.0
"""A TCP connection from SYN to FIN past a capture point, with the fate of each packet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from network_path import Arrive, CapturePoint, NetworkPath
from simulation import BESIDE_SENDER, PLAIN, ByteRanges, Clock, Distance, Fate
from tcp_receiver import Receiver
from tcp_segment import Blocks, Endpoint, Host, Segment
from tcp_sender import Sender, SenderRules
from write_captures import MICROSECOND

REQUEST = 120  # bytes that a client sends to request a download
SENDER_WINDOW = 502 << 7


@dataclass
class Script:
    """Settings of a connection. Segments have numbers from 0 in the order of first transmission."""

    writes: Sequence[int] = ()  # bytes that the sender's application queues before the connection is open
    start_ns: int = 0
    upload: bool = True  # the initiator sends the data
    distance: Distance = BESIDE_SENDER
    rules: SenderRules = field(default_factory=SenderRules)
    scale: int = 7
    buffer: int = 2048 << 7
    every: int = 2  # segments per acknowledgment
    fates: dict[tuple[int, int], Fate] = field(
        default_factory=dict
    )  # by segment number and number of earlier transmissions
    ack_fates: dict[tuple[int, int], Fate] = field(
        default_factory=dict
    )  # by bytes acknowledged and number of earlier such ACKs
    close_ns: int = 0  # earliest time of the FIN


def hosts(number: int) -> tuple[Host, Host]:
    """Returns client and server of that connection, with documentation addresses (RFC 5737)."""
    step = number * 0x01234567
    addresses = f"192.0.2.{10 + number}", f"198.51.100.{20 + number}"
    client = Host(0x10 + number, addresses[0], 40_110 + 7 * number, 64, 0x5A3C1000 + step, 0x2100, 71_400_200)
    server = Host(0x40 + number, addresses[1], 5_201, 61, 0x21F70400 + step, 0x8400, 2_210_340_900)
    return client, server


class Connection:
    """Two hosts and the path between them."""

    def __init__(self, script: Script, number: int = 0) -> None:
        """Schedules the initiator's SYN at the script's start."""
        clock = Clock()
        client, server = (Endpoint(clock, host, script.scale, script.rules.mss + 12) for host in hosts(number))
        offset = 0 if script.upload else REQUEST
        self.clock, self.script = clock, script
        self.sender_end, self.receiver_end = (client, server) if script.upload else (server, client)
        self.point = CapturePoint(clock, 0 if script.upload else 1)
        self.path = NetworkPath(clock, script.distance, self.point, script.rules.mss)
        self.sender = Sender(clock, self.sender_end, self.send_data, self.finish, script.rules, offset)
        self.receiver = Receiver(clock, self.receiver_end, self.send_ack, script.buffer, script.every, offset)
        self.under_way = ByteRanges()  # data that arrived or will arrive
        self.acks_sent: dict[int, int] = {}
        self.closing = False
        for length in script.writes:
            self.sender.write(length)
        clock.at(script.start_ns, self.send_syn)

    # data and acknowledgments

    def send_data(self, segment: Segment, number: int, times: int) -> None:
        """Sends a segment of data; its fate is determined at this point."""
        fate = self.script.fates.get((number, times), PLAIN)
        length = segment.end - segment.start
        self.sender_end.make(segment, self.receiver_end, max(1, length // self.script.rules.mss))
        segment.spurious = length > 0 and self.under_way.covers(segment.start, segment.end)
        if not fate.lost:
            self.under_way.add(segment.start, segment.end)
        self.point.sent = max(self.point.sent, segment.end)
        self.path.carry_data(segment, self.receiver.receive, fate)

    def send_ack(self, segment: Segment) -> None:
        """Sends an acknowledgment of the receiver."""
        times = self.acks_sent.get(segment.ack, 0)
        self.acks_sent[segment.ack] = times + 1
        self.receiver_end.make(segment, self.sender_end)
        self.path.carry_ack(segment, self.sender.take, self.script.ack_fates.get((segment.ack, times), PLAIN))

    # handshake, request, keep-alive, close

    def send(self, segment: Segment, by_sender: bool, arrive: Arrive) -> None:
        """Sends a segment that is neither data nor its acknowledgment."""
        ends = (self.sender_end, self.receiver_end)
        source, target = ends if by_sender else ends[::-1]
        source.make(segment, target)

        def take(arrived: Segment) -> None:
            target.echo = arrived.stamp
            arrive(arrived)

        self.path.carry_control(segment, by_sender, take)

    def send_soon(self, delay_us: int, segment: Segment, by_sender: bool, arrive: Arrive) -> None:
        """Sends such a segment a moment later."""
        self.clock.after(delay_us * MICROSECOND, self.send, segment, by_sender, arrive)

    def send_syn(self) -> None:
        window = 64_240 if self.script.upload else min(64_240, self.script.buffer)
        self.send(Segment(0, 0, flags="S", window=window), self.script.upload, self.answer_syn)

    def answer_syn(self, _: Segment) -> None:
        window = min(64_240, self.script.buffer) if self.script.upload else 64_240
        self.send_soon(30, Segment(0, 0, flags="SA", window=window), not self.script.upload, self.acknowledge_syn)

    def acknowledge_syn(self, syn: Segment) -> None:
        """Sends the third packet of the handshake and the initiator's request or data."""
        upload = self.script.upload
        window = SENDER_WINDOW if upload else self.script.buffer
        self.send_soon(20, Segment(0, 0, window=window), upload, lambda _: None)
        if upload:
            self.clock.after(200 * MICROSECOND, self.sender.start, syn.window)
        else:
            request = Segment(0, 0, REQUEST, "PA", self.script.buffer)
            self.send_soon(90, request, False, self.answer_request)

    def answer_request(self, request: Segment) -> None:
        """Acknowledges the request and starts the download."""
        self.send_soon(15, Segment(0, REQUEST, window=SENDER_WINDOW), True, lambda _: None)
        self.clock.after(400 * MICROSECOND, self.sender.start, request.window)

    def keep_alive(self, by_sender: bool, length: int) -> None:
        """Sends a keep-alive one byte below snd_nxt (RFC 9293 section 3.8.4), with or without a byte of garbage."""
        data, replies = self.sender.acked, self.receiver.offset
        start, ack = (data - 1, replies) if by_sender else (replies - 1, data)
        window = SENDER_WINDOW if by_sender else self.receiver.window()
        segment = Segment(start, ack, start + length, window=window, kind="keep_alive", payload=bytes(length))
        if by_sender:
            self.sender_end.make(segment, self.receiver_end)
            self.path.carry_data(segment, self.receiver.receive)
        else:
            self.send(segment, False, self.answer_keep_alive)

    def answer_keep_alive(self, keep_alive: Segment) -> None:
        """Answers a keep-alive; a byte of garbage gets a DSACK, as a duplicate must (RFC 2883)."""
        blocks: Blocks = ((keep_alive.start, keep_alive.end),) if keep_alive.end > keep_alive.start else ()
        start, ack = self.sender.acked, self.receiver.offset
        answer = Segment(start, ack, window=SENDER_WINDOW, blocks=blocks, kind="keep_alive_ack")
        self.send_soon(10, answer, True, lambda _: None)

    def finish(self) -> None:
        """Sends FIN once, if all data is acknowledged and close_ns has passed."""
        if self.closing or self.clock.now < self.script.close_ns:
            return
        self.closing = True
        end, offset = self.sender.acked, self.receiver.offset
        self.send(Segment(end, offset, flags="FA", window=SENDER_WINDOW), True, self.answer_fin)

    def answer_fin(self, fin: Segment) -> None:
        """Sends the FIN of the other side; the last ACK follows."""
        end, offset = fin.start + 1, self.receiver.offset
        last = Segment(end, offset + 1, window=SENDER_WINDOW)
        answer = Segment(offset, end, flags="FA", window=self.receiver.window())
        self.send_soon(60, answer, False, lambda _: self.send_soon(25, last, True, lambda _: None))
