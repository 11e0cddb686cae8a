# SPDX-License-Identifier: Apache-2.0
"""Reads scenarios: tests/scenarios/README.md defines the format.

A scenario is parsed once. `captured(scenario, variant)` then builds its packets as a variant's capture point sees them:
lines are expanded, sorted by time, and get the IP IDs, timestamps and options of that variant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from scenario_fragments import SPACING_NS, Form, divided, in_sequence
from scenario_wire import Fields, Frame, build_frame, cut, inside

HEADERS = (
    *("rule", "case", "near", "variants", "needs", "without", "isn", "ids"),
    *("order", "captured", "behind_ip", "inside", "blocks", "tick", "checksums"),
)
COUNTERS = re.compile(r"(initiator|responder)(?: without (ids|timestamps|sack))?: (.*)")
CHECK = re.compile(r"((?:sum )?[a-z_]+(?:\.[a-z_]+)?) (=|<|>|~|has|lacks)(?: (.*))?")
REPEAT = re.compile(r" x(\d+) every ([\d.]+)$")
STEPPED = re.compile(r"\d+\+\d+")
FLAGS = re.compile(r"[SFRPAUEC]+")
RANGE = re.compile(r"-?\d+(:\d+)?(\+\d+)?")

# The sets of variants in which a scenario may run.
WRAPPINGS = tuple(f"ipv{version} {writer}" for writer in ("pcap", "pcapng", "vxlan", "rotated") for version in (4, 6))
LACKS = {
    "ipv4": set(),
    "ipv6": {"ids"},
    "no-ids": {"ids"},
    "no-timestamps": {"timestamps"},
    "no-sack": {"sack"},
    "bare": {"ids", "timestamps", "sack"},
}
VARIANTS = {"wrappings": WRAPPINGS, "evidence": tuple(LACKS)}


class ScenarioError(Exception):
    """A file does not have the format; the message names the file and the line."""


@dataclass
class Scenario:
    """One file."""

    name: str
    about: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    packets: list[str] = field(default_factory=list)
    counters: dict[tuple[str, str], dict[str, int | None]] = field(default_factory=dict)  # by end and lacking evidence
    checks: list[tuple[str, str, str]] = field(default_factory=list)  # path, operator, values

    def variants(self) -> Iterator[str]:
        """The variants that have all the evidence that the scenario needs."""
        needs = self.headers.get("needs", "")
        for name in self.headers["variants"].split(", "):
            for variant in VARIANTS.get(name, (name,)):
                present = {"ids", "timestamps", "sack"} - lacking(variant)
                if (set(needs.split(" or ")) & present) if " or " in needs else (set(needs.split()) <= present):
                    yield variant

    @property
    def of_tcp(self) -> bool:
        """Whether the first flow has verdicts on TCP segments; those of a UDP flow are null."""
        return any(" handshake " in line for line in self.packets) or not any(
            " frag " in line or " udp " in line for line in self.packets
        )

    def checksum_of(self, packet: Fields) -> str:
        """What a packet has in place of the right checksum: its own, or that of its end."""
        ends = dict(pair.split() for pair in self.headers.get("checksums", "").split(", ") if pair)
        return packet.checksum or ends.get("><"[packet.side], "")

    @property
    def of_checksums(self) -> bool:
        """Whether checksums decide, which a segment in fragments has not in one packet."""
        return "checksums" in self.headers or any(" checksum " in line for line in self.packets)

    def expected(self, end: str, variant: str) -> dict[str, int | None]:
        """The counters of an end that are not 0."""
        counts = self.counters.get((end, ""), {})
        for lack in sorted(lacking(variant)):
            counts = self.counters.get((end, lack), counts)
        return counts


def lacking(variant: str) -> set[str]:
    """The evidence that a variant's capture does not have."""
    return LACKS.get(variant.split()[0], set())


def read_scenario(path: Path, root: Path) -> Scenario:
    """Raises ScenarioError for anything that is not in the format."""
    about, _, body = path.read_text().partition("\n\n")
    scenario = Scenario(str(path.relative_to(root).with_suffix("")), " ".join(about.split()))
    for number, line in enumerate(body.splitlines(), about.count("\n") + 3):
        text = line.partition("#")[0].rstrip()
        header, _, value = text.partition(": ")
        if not text:
            continue
        if text[0] == " ":
            scenario.packets.append(text.strip())
        elif header in HEADERS and header not in scenario.headers:
            scenario.headers[header] = value
        elif match := COUNTERS.fullmatch(text):
            pairs = (pair.split(" ") for pair in match[3].split(", "))
            counts = {name: None if count == "null" else int(count) for name, count in pairs}
            scenario.counters.setdefault((match[1], match[2] or ""), {}).update(counts)
        elif match := CHECK.fullmatch(text):
            scenario.checks.append((match[1], match[2], match[3] or ""))
        else:
            raise ScenarioError(f"{path}:{number}: {line}")
    return scenario


# --- packets


def number(text: str, turn: int) -> int:
    """A number, or a first one with its step: 1000+500."""
    first, _, step = text.partition("+")
    return int(first) + turn * int(step or 0)


def stepped(text: str, turn: int) -> str:
    """A word, of which a number with a step is the one of this turn."""
    return str(number(text, turn)) if STEPPED.fullmatch(text) else text


@dataclass
class Step:
    """A line, or one turn of a line that stands for several packets."""

    ms: float
    words: list[str]
    turn: int
    events: str


def expanded(text: str) -> Iterator[Step]:
    """The steps of a line."""
    line, _, events = text.partition(" => ")
    line = line.rstrip()
    repeat = REPEAT.search(line)
    line, count, gap = (line[: repeat.start()], int(repeat[1]), float(repeat[2])) if repeat else (line, 1, 0.0)
    time, *words = line.split()
    for turn in range(count):
        yield Step(round(float(time) + turn * gap, 6), words, turn, events)


def read_packet(step: Step) -> Fields:
    """The fields of one packet, as written."""
    words, turn = step.words, step.turn
    packet = Fields(step.ms, "><".index(words[0]))
    fields = iter(words[1:])
    for word in fields:
        if FLAGS.fullmatch(word):
            packet.flags = word
        elif RANGE.fullmatch(word):
            place, _, advance = word.partition("+")
            first, _, end = place.partition(":")
            packet.at, packet.size = int(first), int(end or first) - int(first)
            packet.at += turn * int(advance or packet.size)
        elif word == "sack":
            packet.sack = [(number(low, turn), number(high, turn)) for low, high in pairs_of(next(fields))]
        elif word in ("ack", "win", "tsval", "tsecr", "id", "ttl", "tos"):
            setattr(packet, word, number(next(fields), turn))
        elif word in ("mss", "wscale", "option"):
            packet.options.append((word, next(fields)))
        elif word == "sackok":
            packet.options.append((word, ""))
        elif word == "checksum":
            packet.checksum = next(fields)
        elif word in ("frag", "udp"):
            packet.datagram = [word, *(stepped(text, turn) for text in fields)]
        else:
            raise ScenarioError(f"unknown word {word} in: {' '.join(words)}")
    return packet


def pairs_of(text: str) -> Iterator[tuple[str, str]]:
    """Ranges LOW:HIGH, separated by commas."""
    for block in text.split(","):
        low, _, high = block.partition(":")
        yield low, high


def handshake(ms: float, words: list[str]) -> Iterator[Fields]:
    """Three packets; `near` is the part of the round trip between the initiator and the capture point."""
    settings = dict(zip(words[::2], words[1::2], strict=True))
    rtt, near = float(settings.get("rtt", 20)), float(settings.get("near", 0))
    options = [("mss", "1460"), ("sackok", "")]
    if settings.get("wscale") != "none":
        options.append(("wscale", settings.get("wscale", "7")))
    yield Fields(ms, 0, flags="S", options=options)
    yield Fields(ms + rtt - near, 1, flags="SA", options=options)
    yield Fields(ms + rtt, 0)


@dataclass
class Endpoints:
    """State of both ends that packets take their numbers from."""

    isn: list[int]
    next_id: list[int]
    echo: list[int] = field(default_factory=lambda: [0, 0])

    def fill(self, packet: Fields, lacks: set[str]) -> None:
        """IP ID, timestamps, SACK and sequence numbers, if the variant has them."""
        side = packet.side
        packet.isn = (self.isn[side], self.isn[1 - side])
        if packet.id is None:
            packet.id = self.next_id[side]
            self.next_id[side] += 1
        if "ids" in lacks:
            packet.id = 0
        if "timestamps" in lacks:
            packet.tsval = packet.tsecr = None
        else:
            packet.tsval = 10_000 + int(packet.ms) if packet.tsval is None else packet.tsval
            packet.tsecr = self.echo[side] if packet.tsecr is None else packet.tsecr
            self.echo[1 - side] = packet.tsval
        if "sack" in lacks:
            packet.sack = []
            packet.options = [option for option in packet.options if option[0] != "sackok"]


def captured(scenario: Scenario, variant: str, form: Form | None = None) -> list[Frame]:
    """The frames of a scenario in one variant, in the order of the capture; `form`: its segments are in fragments."""
    headers = scenario.headers
    lacks = lacking(variant) | set(headers.get("without", "").split())
    version = 6 if variant.split()[0] in ("ipv6", "bare") else 4
    ends = new_endpoints(headers.get("isn", "1000 500000"), headers.get("ids", "1000 7000"))
    frames: list[Frame] = []
    steps = [step for line in scenario.packets for step in expanded(line)]
    copies = [step for step in steps if step.words[0] == "copy"]
    for step in steps if "order" in headers else sorted(steps, key=lambda step: step.ms):
        kind, *more = step.words
        if kind == "isn":
            ends = new_endpoints(" ".join(more), "1000 7000")
        elif more[:1] == ["unseen"]:
            ends.next_id["><".index(kind)] += int(more[1])
        elif more[:1] == ["ids"]:
            ends.next_id["><".index(kind)] = int(more[1])
        elif kind != "copy":
            for packet in handshake(step.ms, more) if kind == "handshake" else [read_packet(step)]:
                packet.checksum = scenario.checksum_of(packet)
                if not packet.datagram:
                    ends.fill(packet, lacks)
                frames.append(build_frame(packet, version, int(headers.get("blocks", 0))))
                frames[-1].events = step.events
    return at_the_capture_point(frames, copies, headers, form)


def new_endpoints(isn: str, ids: str) -> Endpoints:
    """Both ends of a connection before its first packet."""
    return Endpoints([int(n) for n in isn.split()], [int(n) for n in ids.split()])


def copied(packets: list[list[Frame]], step: Step) -> Iterator[list[Frame]]:
    """The copies of the packets that a line names."""
    which, changes = step.words[1], step.words[2:]
    first, _, last = which.partition("-")
    for packet in packets if which == "all" else packets[int(first) - 1 : int(last or first)]:
        copy = [frame.copy(step.ms, changes) for frame in packet]
        copy[-1] = replace(copy[-1], events=step.events)
        yield copy


def at_the_capture_point(
    frames: list[Frame], copies: list[Step], headers: dict[str, str], form: Form | None
) -> list[Frame]:
    """The frames with their copies, in their encapsulation, as far as they are captured."""
    packets = [divided(frame, form, number) for number, frame in enumerate(frames, 1)]
    if "inside" in headers:
        packets = [[inside(frame, headers["inside"]) for frame in packet] for packet in packets]
    packets += [copy for step in copies for copy in copied(packets, step)]
    if "order" not in headers:
        packets = sorted(packets, key=lambda packet: packet[-1].ns)
    if "captured" in headers:
        packets = [packet for packet in packets if packet[0].side == "><".index(headers["captured"])]
    frames = list(in_sequence(packets, form, 0 if "tick" in headers else SPACING_NS))
    if "behind_ip" in headers:
        frames = [cut(frame, int(headers["behind_ip"])) for frame in frames]
    return frames


def expected_events(frames: list[Frame], variant: str) -> list[tuple[int, str]]:
    """Frame numbers and events: a kind, then the place and `spurious`, if they are known."""
    expected = []
    for place, frame in enumerate(frames, 1):
        selected, *alternatives = frame.events.split(" | ")
        for alternative in alternatives:
            lack, _, events = alternative.removeprefix("without ").partition(": ")
            if lack in lacking(variant):
                selected = events
        expected += [(place, event) for event in selected.split(", ") if event not in ("", "nothing")]
    return expected
