# SPDX-License-Identifier: Apache-2.0
"""Whether two flows are the same packets at two places, by the columns of both.

A leg is a flow at one place of its path. Two legs of one TCP connection have the same initial sequence numbers (RFC 9293
section 3.4.1), whatever a NAT wrote into addresses and ports, and the same first TSvals (RFC 7323). Each packet passes one leg
before the other, and its answers pass them in reverse, so the times of the legs are nested: two connections of a traffic
generator that repeats its sequence numbers are not. A proof needs more the less two legs have in common; a pair without
one is not related.
"""

from __future__ import annotations

from typing import NamedTuple

End = tuple[str, int]  # address and port
Ends = tuple[End, End]  # the initiator first

TCP = 6
RANDOM_LEAST = (
    65_536  # a sequence number or TSval below was hardly drawn at random: crafted captures begin at 0 or 1,000
)
AT_ONCE_NS = 100_000  # between two interfaces of a host, of a direction without the other and without another TTL
CLOSE_NS = 10_000_000  # between two legs, if little else shows that they are one
NEAR_NS = 100_000_000  # the same, if sequence numbers of both directions do
COPY_NS = 1_000_000_000  # the same, if addresses and ports agree too
WINDOW = 65_536  # bytes by which sequence numbers of one connection differ if both legs begin in the middle
TSVAL_NEAR = 10_000  # the same of TSvals, which tick once in a ms or slower
FEW_PACKETS, LOST_SHARE = 50, 0.02  # of a direction; copies of a longer one may lack this share
#: steps of a path that are tunnels over IP; the others are tags of a link
TUNNELS = frozenset(
    ("gre", "ipip", "vxlan", "geneve", "etherip", "pim", "gtp-u", "teredo", "ayiya", "capwap", "lisp", "amt", "l2tp")
)
#: beginnings of addresses that a host uses on several links at once: link-local, multicast, broadcast, unspecified
ON_EACH_LINK = (
    "169.254.",
    "0.0.0.0",
    "fe8",
    "fe9",
    "fea",
    "feb",
    "ff",
    "::",
    *(f"{first}." for first in range(224, 256)),
)


class Side(NamedTuple):
    """One direction of a leg. Times are ns; None is unknown."""

    packets: int
    payload: int | None
    unique: int | None  # payload bytes, each position once
    first_ns: float | None
    last_ns: float | None
    ttl: int | None  # None if it varies
    sequence: int | None  # of the SYN, else of the first byte
    tsval: int | None  # the first
    is_opened: bool  # it has a SYN


class Leg(NamedTuple):
    """A flow at one place of its path."""

    flow: int
    protocol: int
    ends: Ends
    path: str
    sides: tuple[Side, Side]

    @property
    def packets(self) -> int:
        """Packets of both directions."""
        return self.sides[0].packets + self.sides[1].packets

    @property
    def is_one_way(self) -> bool:
        """Whether only one direction was captured."""
        return not all(side.packets for side in self.sides)

    @property
    def rank(self) -> tuple[bool, int, int]:
        """The sort key: the leg that shows most of the conversation comes first."""
        return self.is_one_way, -self.packets, self.flow

    def turned(self) -> Leg:
        """Returns the same leg from the view of its other end."""
        return self._replace(ends=self.ends[::-1], sides=self.sides[::-1])


class Proof(NamedTuple):
    """What shows that a leg belongs to another."""

    kind: str  # of relations.kind
    evidence: tuple[str, ...]  # words of relations.evidence
    delay_ns: int | None  # from the first packet of the other leg to that of this one
    hops: int | None  # TTL of the other leg less that of this one, in the direction of the initiator


class Pair(NamedTuple):
    """Two legs, of which the second is turned like the first."""

    first: Leg
    second: Leg

    @classmethod
    def of(cls, first: Leg, second: Leg) -> Pair:
        """Returns the pair: the ends decide, else the sequence numbers."""
        if first.ends == second.ends[::-1]:
            return cls(first, second.turned())
        numbers = [[side.sequence for side in leg.sides] for leg in (first, second)]
        is_turned = first.ends != second.ends and numbers[0] != numbers[1] and numbers[0] == numbers[1][::-1]
        return cls(first, second.turned() if is_turned else second)

    @property
    def sides(self) -> list[tuple[Side, Side]]:
        """The directions that both legs have."""
        pairs = zip(self.first.sides, self.second.sides, strict=True)
        return [pair for pair in pairs if pair[0].packets and pair[1].packets]

    @property
    def has_same_ends(self) -> bool:
        """Whether addresses and ports are the same."""
        return self.first.ends == self.second.ends

    @property
    def has_same_end(self) -> bool:
        """Whether one end has the same address and port in both, as it has if a NAT rewrites the other."""
        return any(here == there for here, there in zip(self.first.ends, self.second.ends, strict=True))

    @property
    def has_same_numbers(self) -> bool:
        """Whether the first sequence numbers are known and the same in each direction."""
        return all(here.sequence == there.sequence is not None for here, there in self.sides)

    @property
    def is_opened(self) -> bool:
        """Whether both legs have the SYN of each direction that they have."""
        return all(here.is_opened and there.is_opened for here, there in self.sides)

    @property
    def is_random(self) -> bool:
        """Whether the sequence numbers look like drawn ones."""
        return all((here.sequence or 0) >= RANDOM_LEAST for here, _ in self.sides)

    @property
    def is_stamped(self) -> bool:
        """Whether both legs begin with the same TSval in each direction."""
        return all(here.tsval == there.tsval is not None for here, there in self.sides)

    @property
    def is_unstamped(self) -> bool:
        """Whether no side has timestamps."""
        return all(here.tsval is there.tsval is None for here, there in self.sides)

    @property
    def contradicts(self) -> bool:
        """Whether TSvals differ."""
        return any(None not in (here.tsval, there.tsval) and here.tsval != there.tsval for here, there in self.sides)

    @property
    def is_both_ways(self) -> bool:
        """Whether both legs have both directions."""
        return len(self.sides) == 2

    @property
    def delays(self) -> list[float]:
        """From the first packet of the first leg to that of the second, by direction; NaN if unknown."""
        unknown = float("nan")
        return [
            unknown if here.first_ns is None or there.first_ns is None else there.first_ns - here.first_ns
            for here, there in self.sides
        ]

    def is_within(self, most_ns: float) -> bool:
        """Returns whether each direction begins at both legs within this time."""
        return all(abs(delay) <= most_ns for delay in self.delays)

    @property
    def is_nested(self) -> bool:
        """Whether one leg has the first packet of one direction earlier, and that of the other direction later."""
        there, back = self.delays
        return there * back <= 0 and there != back

    @property
    def is_in_order(self) -> bool:
        """The same, or both legs have the first packets at the same time: the clock is coarse, or one host stored them twice."""
        there, back = self.delays
        return there * back <= 0

    @property
    def is_routed(self) -> bool:
        """Whether the TTL of one leg is lower in one direction, and that of the other leg in the other direction."""
        levels = [here.ttl - there.ttl for here, there in self.sides if here.ttl is not None and there.ttl is not None]
        return len(levels) == len(self.sides) and all(levels) and (len(levels) < 2 or levels[0] * levels[1] < 0)

    @property
    def is_on_one_path(self) -> bool:
        """Whether one leg is before the other: other hosts may use the same addresses, ports and numbers elsewhere at once."""
        if self.is_routed:
            return True
        if self.is_both_ways:
            return self.is_in_order
        return self.is_within(AT_ONCE_NS) and self.ends_within(AT_ONCE_NS)

    @property
    def is_same_size(self) -> bool:
        """Whether packets and payload agree in each direction."""
        return all(is_as_many(*sides) for sides in self.sides)

    def ends_within(self, most_ns: float) -> bool:
        """Returns whether each direction ends at both legs within this time."""
        return all(
            here.last_ns is not None and there.last_ns is not None and abs(here.last_ns - there.last_ns) <= most_ns
            for here, there in self.sides
        )

    @property
    def hops(self) -> int | None:
        """The TTL of the first leg less that of the second."""
        here, there = self.sides[0]
        return None if here.ttl is None or there.ttl is None else here.ttl - there.ttl

    def proof(self, kind: str, *evidence: str) -> Proof:
        """Returns the proof that the second leg belongs to the first."""
        delay = self.delays[0]
        words = [*evidence, *(["hops"] if self.hops else [])]
        return Proof(kind, tuple(words), None if delay != delay else int(delay), self.hops)


def is_as_many(here: Side, there: Side) -> bool:
    """Returns whether two directions have as many packets and bytes; if they are many, but for a few that a capture lost."""
    if here.packets == there.packets:
        return here.payload == there.payload
    most = max(here.packets, there.packets)
    return most >= FEW_PACKETS and abs(here.packets - there.packets) <= LOST_SHARE * most


def distance(here: int, there: int) -> int:
    """Returns how far two 32-bit numbers are apart, modulo 2^32."""
    apart = (here - there) % 2**32
    return min(apart, 2**32 - apart)


def overlaps(here: Side, there: Side) -> bool:
    """Returns whether two directions that begin in the middle are parts of one stream."""
    if here.sequence is None or there.sequence is None:
        return False
    if here.tsval is not None and there.tsval is not None and distance(here.tsval, there.tsval) > TSVAL_NEAR:
        return False
    return distance(here.sequence, there.sequence) <= max(here.unique or 0, there.unique or 0, WINDOW)


def life_of(leg: Leg) -> tuple[float, float] | None:
    """Returns the first and the last time of a flow; None without times."""
    starts = [side.first_ns for side in leg.sides if side.first_ns is not None]
    ends = [side.last_ns for side in leg.sides if side.last_ns is not None]
    return (min(starts), max(ends)) if starts and ends else None


def is_at_once(first: Leg, second: Leg) -> bool:
    """Returns whether the lives of two flows overlap, or are CLOSE_NS apart at most."""
    lives = (life_of(first), life_of(second))
    if lives[0] is None or lives[1] is None:
        return False
    return max(lives[0][0], lives[1][0]) <= min(lives[0][1], lives[1][1]) + CLOSE_NS


def tunnels_of(path: str) -> list[str]:
    """Returns the tunnels of a path, the outermost first."""
    return [step for step in path.split(" / ") if step.partition(" ")[0] in TUNNELS]


def kind_of_copy(pair: Pair) -> str:
    """Returns tunnel if one leg is inside a tunnel in which the other is not, else copy."""
    return "tunnel" if tunnels_of(pair.first.path) != tunnels_of(pair.second.path) else "copy"


def prove_copy(pair: Pair) -> Proof | None:
    """Returns why two TCP flows with the same ends are one by their first sequence numbers; None if it is not shown."""
    kind, stamps = kind_of_copy(pair), ["tsval"] if pair.is_stamped else []
    if not pair.has_same_numbers or pair.contradicts or not pair.is_within(COPY_NS) or not pair.is_on_one_path:
        return None
    if pair.is_random and (pair.is_both_ways or pair.is_stamped):
        return pair.proof(kind, "sequence", *stamps, "time")
    is_crafted_copy = (pair.is_opened or pair.is_stamped) and pair.is_same_size and pair.is_within(CLOSE_NS)
    return pair.proof(kind, "sequence", *stamps, "size", "time") if is_crafted_copy else None


def prove_part(pair: Pair) -> Proof | None:
    """Returns why two TCP flows with the same ends are one although each begins elsewhere; None if it is not shown."""
    is_begun = any(side.is_opened for sides in pair.sides for side in sides)
    if is_begun or not pair.is_routed or not is_at_once(pair.first, pair.second):
        return None
    return pair.proof(kind_of_copy(pair), "range", "time") if all(overlaps(*sides) for sides in pair.sides) else None


def prove_translation(pair: Pair) -> Proof | None:
    """Returns why two TCP flows with different ends are one; None if it is not shown."""
    if not pair.has_same_numbers or pair.contradicts or not pair.is_random:
        return None
    return prove_nested(pair) if pair.is_both_ways else prove_attempt(pair)


def prove_nested(pair: Pair) -> Proof | None:
    """Returns the proof of a translation with packets of both directions."""
    is_exact = pair.is_stamped or (pair.is_opened and pair.is_unstamped and pair.has_same_end)
    if not is_exact or not pair.is_within(NEAR_NS) or not pair.is_nested:
        return None
    return pair.proof("translation", "sequence", *(["tsval"] if pair.is_stamped else []), "order", "time")


def prove_attempt(pair: Pair) -> Proof | None:
    """Returns the proof of a translation of which one direction was captured, as of SYNs without an answer."""
    is_exact = pair.is_opened and pair.is_stamped and pair.has_same_end and pair.is_within(CLOSE_NS)
    is_drawn = all((here.tsval or 0) >= RANDOM_LEAST for here, _ in pair.sides)
    return pair.proof("translation", "sequence", "tsval", "time") if is_exact and is_drawn else None


def prove_datagrams(pair: Pair) -> Proof | None:
    """Returns why two flows of datagrams with the same ends are one; None if it is not shown."""
    if any(address.startswith(ON_EACH_LINK) or address.endswith(".255") for address, _ in pair.first.ends):
        return None
    if len(pair.sides) < 2 - (pair.first.is_one_way and pair.second.is_one_way):
        return None
    if pair.is_within(CLOSE_NS) and pair.ends_within(CLOSE_NS) and pair.is_same_size and pair.is_on_one_path:
        return pair.proof(kind_of_copy(pair), "size", "time")
    return None


def prove(first: Leg, second: Leg) -> Proof | None:
    """Returns why the second leg is the conversation of the first; None if it is not shown."""
    if first.protocol != second.protocol:
        return None
    pair = Pair.of(first, second)
    if not pair.sides or (pair.has_same_ends and first.path == second.path):  # the latter opened the same ports again
        return None
    if not pair.has_same_ends:
        return prove_translation(pair) if first.protocol == TCP else None
    return prove_copy(pair) or prove_part(pair) if first.protocol == TCP else prove_datagrams(pair)


def prove_half(first: Leg, second: Leg) -> Proof | None:
    """Returns why each of two flows is one direction of a connection; None if it is not shown."""
    if first.protocol != TCP or not first.is_one_way or not second.is_one_way:
        return None
    pair = Pair.of(first, second)
    if not pair.has_same_ends or pair.sides or not is_at_once(first, second):
        return None
    starts = [[side.first_ns for side in leg.sides if side.first_ns is not None] for leg in (first, second)]
    return Proof("half", ("direction", "time"), int(min(starts[1]) - min(starts[0])), None)
