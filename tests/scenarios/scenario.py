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

from scenario_wire import Fields, Frame, build_frame, cut, inside

HEADERS = (
    *("rule", "case", "near", "variants", "needs", "without", "isn", "ids"),
    *("order", "captured", "behind_ip", "inside", "blocks"),
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
        """Whether the flow has verdicts on TCP segments; those of a UDP flow are null."""
        return not any(" frag " in line or " udp " in line for line in self.packets)

    def expected(self, end: str, variant: str) -> dict[str, int | None]:
        """The counters of an end that are not 0."""
        found = self.counters.get((end, ""), {})
        for lack in sorted(lacking(variant)):
            found = self.counters.get((end, lack), found)
        return found


def lacking(variant: str) -> set[str]:
    """The evidence that a variant's capture does not have."""
    return LACKS.get(variant.split()[0], set())


def read_scenario(path: Path, root: Path) -> Scenario:
    """Raises ScenarioError for anything that is not in the format."""
    about, _, rest = path.read_text().partition("\n\n")
    scenario = Scenario(str(path.relative_to(root).with_suffix("")), " ".join(about.split()))
    for number, line in enumerate(rest.splitlines(), about.count("\n") + 3):
        text = line.partition("#")[0].rstrip()
        header, _, value = text.partition(": ")
        if not text:
            continue
        if text[0] == " ":
            scenario.packets.append(text.strip())
        elif header in HEADERS and header not in scenario.headers:
            scenario.headers[header] = value
        elif found := COUNTERS.fullmatch(text):
            pairs = (pair.split(" ") for pair in found[3].split(", "))
            counts = {name: None if count == "null" else int(count) for name, count in pairs}
            scenario.counters.setdefault((found[1], found[2] or ""), {}).update(counts)
        elif found := CHECK.fullmatch(text):
            scenario.checks.append((found[1], found[2], found[3] or ""))
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
    found = Fields(step.ms, "><".index(words[0]))
    rest = iter(words[1:])
    for word in rest:
        if FLAGS.fullmatch(word):
            found.flags = word
        elif RANGE.fullmatch(word):
            place, _, advance = word.partition("+")
            first, _, end = place.partition(":")
            found.at, found.size = int(first), int(end or first) - int(first)
            found.at += turn * int(advance or found.size)
        elif word == "sack":
            found.sack = [(number(low, turn), number(high, turn)) for low, high in pairs_of(next(rest))]
        elif word in ("ack", "win", "tsval", "tsecr", "id", "ttl", "tos"):
            setattr(found, word, number(next(rest), turn))
        elif word in ("mss", "wscale", "option"):
            found.options.append((word, next(rest)))
        elif word == "sackok":
            found.options.append((word, ""))
        elif word in ("frag", "udp"):
            found.datagram = [word, *(stepped(text, turn) for text in rest)]
        else:
            raise ScenarioError(f"unknown word {word} in: {' '.join(words)}")
    return found


def pairs_of(text: str) -> Iterator[tuple[str, str]]:
    """Ranges LOW:HIGH, separated by commas."""
    for block in text.split(","):
        low, _, high = block.partition(":")
        yield low, high


def handshake(ms: float, words: list[str]) -> Iterator[Fields]:
    """Three packets; `near` is the part of the round trip between the initiator and the capture point."""
    given = dict(zip(words[::2], words[1::2], strict=True))
    rtt, near = float(given.get("rtt", 20)), float(given.get("near", 0))
    options = [("mss", "1460"), ("sackok", "")]
    if given.get("wscale") != "none":
        options.append(("wscale", given.get("wscale", "7")))
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


def captured(scenario: Scenario, variant: str) -> list[Frame]:
    """The frames of a scenario in one variant, in the order of the capture."""
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
                if not packet.datagram:
                    ends.fill(packet, lacks)
                frames.append(build_frame(packet, version, int(headers.get("blocks", 0))))
                frames[-1].events = step.events
    return at_the_capture_point(frames, copies, headers)


def new_endpoints(isn: str, ids: str) -> Endpoints:
    """Both ends of a connection before its first packet."""
    return Endpoints([int(n) for n in isn.split()], [int(n) for n in ids.split()])


def at_the_capture_point(frames: list[Frame], copies: list[Step], headers: dict[str, str]) -> list[Frame]:
    """The frames with their copies, in their encapsulation, as far as they are captured."""
    if "inside" in headers:
        frames = [inside(frame, headers["inside"]) for frame in frames]
    originals = frames
    for step in copies:
        which, changes = step.words[1], step.words[2:]
        first, _, last = which.partition("-")
        chosen = originals if which == "all" else originals[int(first) - 1 : int(last or first)]
        frames = [*frames, *(replace(frame.copy(step.ms, changes), events=step.events) for frame in chosen)]
    if "order" not in headers:
        frames = sorted(frames, key=lambda frame: frame.ns)
    if "captured" in headers:
        frames = [frame for frame in frames if frame.side == "><".index(headers["captured"])]
    if "behind_ip" in headers:
        frames = [cut(frame, int(headers["behind_ip"])) for frame in frames]
    return frames


def expected_events(frames: list[Frame], variant: str) -> list[tuple[int, str]]:
    """Frame numbers and events: a kind, then the place and `spurious`, if they are known."""
    found = []
    for place, frame in enumerate(frames, 1):
        chosen, *others = frame.events.split(" | ")
        for other in others:
            lack, _, events = other.removeprefix("without ").partition(": ")
            if lack in lacking(variant):
                chosen = events
        found += [(place, event) for event in chosen.split(", ") if event not in ("", "nothing")]
    return found
