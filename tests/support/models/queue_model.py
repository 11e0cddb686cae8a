# SPDX-License-Identifier: Apache-2.0
"""RED, CoDel, FQ-CoDel and PIE once more, written from their papers and not from the link's C: who is dropped or marked.

`python tests/support/models/queue_model.py` writes traffic/link/test/queue_model.h, with which the link's C test is compared.
Times are whole nanoseconds; the link takes 800 ns a byte (10 Mbit/s) or 8000 ns (1 Mbit/s), so that none is rounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path

from numbered_payloads import MASK, STEP, mix

HEADER = Path(__file__).parents[3] / "traffic" / "link" / "test" / "queue_model.h"
MS = 1_000_000


@dataclass(frozen=True)
class Packet:
    """Numbered from 1 on."""

    number: int
    time: int
    size: int

    @property
    def flow(self) -> int:
        """Its source port."""
        return 3 if self.number % 7 == 0 else 1 + self.number % 2

    @property
    def is_capable(self) -> bool:
        """Whether it is ECN-capable (RFC 3168)."""
        return self.number % 4 != 0


def chance(seed: int, purpose: int, number: int) -> float:
    """Returns a draw as traffic/link/packet/link_packet.h defines it."""
    direction = mix(mix(seed) + 1 & MASK)
    drawn = mix(mix(direction + purpose * STEP & MASK) + number & MASK)
    return (drawn >> 11) / (1 << 53)


# Phases of the traffic: packets, nanoseconds between them, then silence. The C test has the same.
PHASES = (
    (2500, 907_000, 0),  # a tenth more than the link carries, which is 1.008 ms
    (300, 3_000_000, 0),  # the queue empties
    (1500, 850_000, 0),  # soon too much again
    (10, 5_000_000, 4_000_000_000),  # and long nothing
    (1500, 800_000, 30_000_000),  # too much again, after more than 16 intervals
    (900, 500_000, 0),  # twice too much
    (700, 1_008_000, 0),  # exactly its capacity
)


def traffic(slower: int) -> Iterator[Packet]:
    """Full packets, and every fifth a small one; `slower`: times the gaps."""
    time, number = 1000 * MS, 0
    for count, gap, silence in PHASES:
        for _ in range(count):
            time += gap * slower
            number += 1
            yield Packet(number, time, 300 if number % 5 == 0 else 1500)
        time += silence


@dataclass
class Codel:
    """RFC 8289, 5: its pseudocode, line for line. A limit of packets besides, the one being sent among them."""

    byte_ns: int
    target: int = 5 * MS
    interval: int = 100 * MS
    limit: int = 1000
    waiting: deque[Packet] = field(default_factory=deque)
    bytes_waiting: int = 0
    free: int = 0
    first_above_time: int = 0
    drop_next: int = 0
    count: int = 0
    last_count: int = 0
    dropping: bool = False
    max_packet: int = 0
    ecn: bool = False
    dropped: dict[int, str] = field(default_factory=dict)

    def control_law(self, time: int) -> int:
        return time + int(self.interval / sqrt(self.count))

    def do_dequeue(self, now: int) -> tuple[Packet | None, bool]:
        if not self.waiting:
            self.first_above_time = 0
            return None, False
        packet = self.waiting.popleft()
        self.bytes_waiting -= packet.size
        if now - packet.time < self.target or self.bytes_waiting <= self.max_packet:
            self.first_above_time = 0
        elif self.first_above_time == 0:
            self.first_above_time = now + self.interval
        elif now >= self.first_above_time:
            return packet, True
        return packet, False

    def drop(self, packet: Packet | None) -> None:
        assert packet
        self.dropped[packet.number] = "codel"

    def marks(self, packet: Packet | None) -> bool:
        """Marks a packet in place of dropping it, if that is possible."""
        assert packet
        if self.ecn and packet.is_capable:
            self.dropped[packet.number] = "marked"
            return True
        return False

    def dequeue(self, now: int) -> Packet | None:
        packet, ok_to_drop = self.do_dequeue(now)
        if self.dropping:
            if not ok_to_drop:
                self.dropping = False
            while now >= self.drop_next and self.dropping:
                self.count += 1
                if self.marks(packet):
                    self.drop_next = self.control_law(self.drop_next)
                    return packet
                self.drop(packet)
                packet, ok_to_drop = self.do_dequeue(now)
                if not ok_to_drop:
                    self.dropping = False
                else:
                    self.drop_next = self.control_law(self.drop_next)
        elif ok_to_drop:
            if not self.marks(packet):
                self.drop(packet)
                packet, ok_to_drop = self.do_dequeue(now)
            self.dropping = True
            delta = self.count - self.last_count
            self.count = 1
            if delta > 1 and now - self.drop_next < 16 * self.interval:
                self.count = delta
            self.drop_next = self.control_law(now)
            self.last_count = self.count
        return packet

    def send_until(self, now: int) -> None:
        while self.waiting and (start := max(self.free, self.waiting[0].time)) <= now:
            packet = self.dequeue(start)
            if packet:
                self.free = start + packet.size * self.byte_ns

    def arrive(self, packet: Packet) -> None:
        self.send_until(packet.time)
        if len(self.waiting) + (self.free > packet.time) >= self.limit:
            self.dropped[packet.number] = "queue"
            return
        self.waiting.append(packet)
        self.bytes_waiting += packet.size
        self.max_packet = max(self.max_packet, packet.size)
        self.send_until(packet.time)


@dataclass
class Red:
    """Floyd and Jacobson 1993, figure 2, with Floyd's gentle slope above the upper threshold (2000)."""

    byte_ns: int
    limit: int
    weight: float
    in_bytes: bool
    seed: int
    avg: float = 0.0
    q_time: int = 0
    count: int = -1
    ends: deque[tuple[int, int]] = field(default_factory=deque)  # when each is out, its size
    free: int = 0
    dropped: dict[int, str] = field(default_factory=dict)

    def arrive(self, packet: Packet) -> None:
        max_th = self.limit / 2
        min_th = max_th / 3
        while self.ends and self.ends[0][0] <= packet.time:
            self.q_time = self.ends.popleft()[0]
        q = sum(size for _, size in self.ends) if self.in_bytes else len(self.ends)
        if q:
            self.avg = (1 - self.weight) * self.avg + self.weight * q
        else:
            m = (packet.time - self.q_time) / (packet.size * self.byte_ns)
            self.avg = (1 - self.weight) ** m * self.avg
        if self.avg >= min_th:
            self.count += 1
            if self.avg < max_th:
                p_b = 0.1 * (self.avg - min_th) / (max_th - min_th)
            else:
                p_b = min(1.0, 0.1 + 0.9 * (self.avg - max_th) / max_th)
            certain = 1 - self.count * p_b <= 0
            p_a = 1.0 if certain else p_b / (1 - self.count * p_b)
            if chance(self.seed, 4, packet.number) < p_a:
                self.dropped[packet.number] = "red"
                self.count = 0
                return
        else:
            self.count = -1
        if q + (packet.size if self.in_bytes else 1) > self.limit:
            self.dropped[packet.number] = "queue"
            self.count = 0
            return
        self.free = max(self.free, packet.time) + packet.size * self.byte_ns
        self.ends.append((self.free, packet.size))


@dataclass
class FqCodel:
    """RFC 8290, 4: queues by flow, with CoDel each, and two lists of those that have packets."""

    byte_ns: int
    limit: int
    seed: int
    ecn: bool = False
    quantum: int = 1514
    queues: dict[int, Codel] = field(default_factory=dict)
    credits: dict[int, int] = field(default_factory=dict)
    new: deque[int] = field(default_factory=deque)
    old: deque[int] = field(default_factory=deque)
    free: int = 0
    last: int = 0
    max_packet: int = 0
    dropped: dict[int, str] = field(default_factory=dict)

    def place_of(self, packet: Packet) -> int:
        """Returns the queue of its flow, by the hash of fq_codel.c: addresses 10.0.0.0, UDP."""
        hashed = mix(mix(self.seed) + 1 & MASK)
        for word in (10, 0, 10, 0):
            hashed = mix(hashed ^ word)
        return mix(hashed ^ (packet.flow << 24 | 17)) % 1024

    @property
    def waiting(self) -> int:
        return sum(len(queue.waiting) for queue in self.queues.values())

    def dequeue(self, now: int) -> Packet | None:
        while self.new or self.old:
            places = self.new or self.old
            place = places[0]
            if self.credits[place] <= 0:
                self.credits[place] += self.quantum
                self.old.append(places.popleft())
                continue
            queue = self.queues[place]
            queue.max_packet = self.max_packet
            packet = queue.dequeue(now)
            if packet:
                self.credits[place] -= packet.size
                return packet
            queue.dropping = False
            was_new = places is self.new
            places.popleft()
            if was_new and self.old:
                self.old.append(place)
        return None

    def send_until(self, now: int) -> None:
        while self.waiting and (start := max(self.free, self.last)) <= now:
            packet = self.dequeue(start)
            if packet:
                self.free = start + packet.size * self.byte_ns

    def arrive(self, packet: Packet) -> None:
        self.send_until(packet.time)
        self.last = packet.time
        self.max_packet = max(self.max_packet, packet.size)
        place = self.place_of(packet)
        queue = self.queues.setdefault(place, Codel(self.byte_ns, ecn=self.ecn, dropped=self.dropped))
        queue.waiting.append(packet)
        queue.bytes_waiting += packet.size
        if place not in self.new and place not in self.old:
            self.credits[place] = self.quantum
            self.new.append(place)
        while self.waiting + (self.free > packet.time) > self.limit:
            _, longest = max(self.queues.items(), key=lambda item: (item[1].bytes_waiting, -item[0]))
            for _ in range(min(max(len(longest.waiting) // 2, 1), 64)):
                lost = longest.waiting.popleft()
                longest.bytes_waiting -= lost.size
                self.dropped[lost.number] = "queue"
        self.send_until(packet.time)


@dataclass
class Pie:
    """RFC 8033, 4.1, 4.2 and 4.4, with 5.1 (ECN), 5.4 (accumulated probability) and 5.5 (capped steps)."""

    byte_ns: int
    limit: int
    seed: int
    ecn: bool = False
    target: int = 15 * MS
    waiting: deque[Packet] = field(default_factory=deque)
    free: int = 0
    next_update: int = 0
    drop_prob: float = 0.0
    accu_prob: float = 0.0
    qdelay_old: int = 0
    burst_allowance: int = 150 * MS
    dropped: dict[int, str] = field(default_factory=dict)

    def qdelay(self, now: int) -> int:
        return max(now - self.waiting[0].time, 0) if self.waiting else 0

    def calculate_drop_prob(self, now: int) -> None:
        delay = self.qdelay(now)
        p = 0.125 * (delay - self.target) / 1e9 + 1.25 * (delay - self.qdelay_old) / 1e9
        for below, divisor in ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2)):
            if self.drop_prob < below:
                p /= divisor
                break
        if self.drop_prob >= 0.1:
            p = min(p, 0.02)
        self.drop_prob += p
        if max(delay, self.qdelay_old) < self.target // 2:
            self.drop_prob *= 0.98
        self.drop_prob = min(max(self.drop_prob, 0.0), 1.0)
        self.qdelay_old = delay
        self.burst_allowance = max(self.burst_allowance - 15 * MS, 0)

    def update_until(self, now: int) -> None:
        self.next_update = self.next_update or now + 15 * MS
        while self.next_update <= now:
            self.calculate_drop_prob(self.next_update)
            self.next_update += 15 * MS

    def drop_early(self, packet: Packet) -> bool:
        if self.qdelay_old < self.target // 2 and self.drop_prob < 0.2:
            return False
        if sum(queued.size for queued in self.waiting) <= 2 * 1500:
            return False
        if self.drop_prob == 0:
            self.accu_prob = 0.0
        self.accu_prob += self.drop_prob
        if self.accu_prob < 0.85:
            return False
        if self.accu_prob < 8.5 and chance(self.seed, 4, packet.number) >= self.drop_prob:
            return False
        self.accu_prob = 0.0
        return True

    def send_until(self, now: int) -> None:
        while self.waiting and (start := max(self.free, self.waiting[0].time)) <= now:
            self.update_until(start)
            self.free = start + self.waiting.popleft().size * self.byte_ns

    def arrive(self, packet: Packet) -> None:
        self.send_until(packet.time)
        if len(self.waiting) + (self.free > packet.time) >= self.limit:
            self.dropped[packet.number] = "queue"
            return
        self.update_until(packet.time)
        if self.burst_allowance == 0 and self.drop_early(packet):
            marks = self.ecn and self.drop_prob < 0.1 and packet.is_capable
            self.dropped[packet.number] = "marked" if marks else "pie"
            if not marks:
                return
        elif self.drop_prob == 0 and max(self.qdelay(packet.time), self.qdelay_old) < self.target // 2:
            self.burst_allowance = 150 * MS
        self.waiting.append(packet)
        self.send_until(packet.time)


Model = Codel | Red | FqCodel | Pie

# Settings of the link, how much slower packets come, and the model.
CASES: tuple[tuple[str, int, Callable[[], Model]], ...] = (
    ("rate=10Mbit discipline=codel queue=1000", 1, lambda: Codel(800)),
    ("rate=1Mbit discipline=codel queue=1000", 10, lambda: Codel(8000)),
    (
        "rate=10Mbit discipline=codel target=20ms interval=40ms queue=25",
        1,
        lambda: Codel(800, 20 * MS, 40 * MS, 25),
    ),
    ("rate=10Mbit discipline=red queue=60", 1, lambda: Red(800, 60, 0.002, False, 9)),
    ("rate=10Mbit discipline=red queue=40000B red-weight=0.02", 1, lambda: Red(800, 40000, 0.02, True, 9)),
    ("rate=10Mbit discipline=codel ecn=yes queue=1000", 1, lambda: Codel(800, ecn=True)),
    ("rate=10Mbit discipline=fq_codel queue=1000", 1, lambda: FqCodel(800, 1000, 9)),
    ("rate=10Mbit discipline=fq_codel ecn=yes queue=100", 1, lambda: FqCodel(800, 100, 9, ecn=True)),
    ("rate=10Mbit discipline=pie queue=1000", 1, lambda: Pie(800, 1000, 9)),
    ("rate=10Mbit discipline=pie ecn=yes target=30ms queue=200", 1, lambda: Pie(800, 200, 9, True, 30 * MS)),
)


def drops(case: int) -> dict[int, str]:
    """Number of each dropped or marked packet, and the reason."""
    _, slower, make = CASES[case]
    model = make()
    for packet in traffic(slower):
        model.arrive(packet)
    if isinstance(model, Codel | FqCodel):
        model.send_until(1 << 62)
    return model.dropped


def digest(dropped: dict[int, str]) -> int:
    """Returns FNV-1a of a line for each dropped packet, in order: its number and the reason."""
    hashed = 0xCBF29CE484222325
    for byte in "".join(f"{number} {why}\n" for number, why in sorted(dropped.items())).encode():
        hashed = (hashed ^ byte) * 0x100000001B3 & MASK
    return hashed


def c_text() -> str:
    """The header with the drops of the models."""
    lines = [
        # REUSE-IgnoreStart
        "/* SPDX-License-Identifier: Apache-2.0 */",
        # REUSE-IgnoreEnd
        "/* Made by tests/support/models/queue_model.py: models of queue disciplines, from their papers. */",
        "#ifndef WIRETALE_LINK_TEST_QUEUE_MODEL_H",
        "#define WIRETALE_LINK_TEST_QUEUE_MODEL_H",
        "",
        "#include <stdint.h>",
        "",
        "/* clang-format off */",
        "",
        "static const struct model_phase {",
        "    uint32_t packets;",
        "    int64_t gap_ns, silence_ns;",
        "} model_phases[] = {",
        *(f"    {{{count}, {gap}, {silence}}}," for count, gap, silence in PHASES),
        "};",
        "",
        "static const struct model_case {",
        "    const char *settings;",
        "    int64_t slower;",
        "    uint32_t drops;",
        "    uint64_t digest; /* FNV-1a of a line for each dropped packet, in order: its number and fate */",
        "} model_cases[] = {",
    ]
    for case, (settings, slower, _) in enumerate(CASES):
        dropped = drops(case)
        lines.append(f'    {{"{settings}", {slower}, {len(dropped)}, UINT64_C({digest(dropped):#x})}},')
    return "\n".join([*lines, "};", "", "/* clang-format on */", "", "#endif", ""])


if __name__ == "__main__":
    HEADER.write_text(c_text())
    for each in range(len(CASES)):  # to be compared with what the C test prints if it fails
        print(CASES[each][0], *(f"{number} {why}" for number, why in sorted(drops(each).items())), sep="\n")
