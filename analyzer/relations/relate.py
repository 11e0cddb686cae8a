# SPDX-License-Identifier: Apache-2.0
"""The table of relations, made after the pass from key columns of all flows: by a run, a run on a cluster and a store alike.

Flows that may be one are few, because they share a pair of sequence numbers, or addresses and ports under another path. Only
their columns are read. Subflows of a multipath connection share a token (RFC 8684), and are related but not one.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.relations.legs import COPY_NS, Ends, Leg, Proof, Side, prove, prove_half

if TYPE_CHECKING:
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

LEGS_MAX = 64  # flows with the same sequence numbers; more are those of a generator or a scan
NULL = 2**32 - 1  # as it is packed
NO_NUMBERS = NULL << 32 | NULL
FLAGS = ("initiator_known", "multipath_join")
SIDE_FIELDS = [
    *((name, "I", 0, 1) for name in ("packets", "initial_sequence", "first_tsval", "syns")),
    *((name, "d", 0, 1) for name in ("payload_bytes", "unique_bytes", "ttl_min", "ttl_max")),
]


class Relation(NamedTuple):
    """A row of the relations table (docs/tables.md)."""

    flow: int
    other: int
    kind: str
    judged: int | None
    evidence: str
    delay_ns: int | None
    hops: int | None

    @classmethod
    def of(cls, flow: int, other: int, judged: int | None, proof: Proof) -> Relation:
        """Returns the row of two flows and what shows that they are related."""
        return cls(flow, other, proof.kind, judged, " ".join(proof.evidence), proof.delay_ns, proof.hops)


class Flows:
    """Key columns of the flows of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._paths: list[str] | None = None

    @property
    def paths(self) -> list[str]:
        """The encapsulations of each flow."""
        if self._paths is None:
            self._paths = [path or "" for path in self._trace.flows.column("path")]
        return self._paths

    @property
    def ends(self) -> list[Ends]:
        """The ends of each flow, the initiator first."""
        flows = self._trace.flows
        sides = [
            zip(flows.column(name), array("I", flows._packed(f"{name}_port", "I")), strict=True)
            for name in ("source", "destination")
        ]
        return list(zip(*sides, strict=True))

    @cached_property
    def _flags(self) -> dict[str, bytes]:
        """Flags of each flow, a byte each; another one is null."""
        packed = self._trace.flows._packed_columns([(name, "B", 0, 1) for name in FLAGS])
        return dict(zip(FLAGS, packed, strict=True))

    def numbers(self) -> array[int]:
        """Returns both first sequence numbers of each flow as one number, the lesser first if the initiator is unknown."""
        numbers = array("Q", self._trace.directions._packed("initial_sequence", "I"))
        identified = self._flags["initiator_known"]
        if identified.count(0):
            for flow, is_known in enumerate(identified):
                if not is_known:
                    low, high = sorted((numbers[flow] & NULL, numbers[flow] >> 32))
                    numbers[flow] = high << 32 | low
        return numbers

    def by_numbers(self) -> Iterator[list[int]]:
        """Yields the flows that share their first sequence numbers."""
        numbers = self.numbers()
        if len(set(numbers)) == len(numbers):
            return
        counts = Counter(numbers)
        del counts[NO_NUMBERS]
        groups: dict[int, list[int]] = {number: [] for number, count in counts.items() if 1 < count <= LEGS_MAX}
        if groups:
            for flow, number in enumerate(numbers):
                if number in groups:
                    groups[number].append(flow)
        yield from groups.values()

    def by_ends(self) -> Iterator[list[int]]:
        """Yields the flows that share protocol, addresses and ports, under two paths or more."""
        paths = self.paths
        if len(set(paths)) < 2:
            return
        protocols = self._trace.flows._packed("protocol_number", "B")
        groups: dict[tuple[Ends, int], list[int]] = {}
        for flow, (ends, protocol) in enumerate(zip(self.ends, protocols, strict=True)):
            groups.setdefault((ends if ends[0] <= ends[1] else ends[::-1], protocol), []).append(flow)
        for flows in groups.values():
            if 1 < len(flows) <= LEGS_MAX and len({paths[flow] for flow in flows}) > 1:
                yield flows

    def legs(self, flows: Iterable[int]) -> dict[int, Leg]:
        """Returns the legs of some flows."""
        numbers = sorted(set(flows))
        if not numbers:
            return {}
        ends, paths = self.ends, self.paths
        protocols = self._trace.flows._packed("protocol_number", "B", flows=numbers)
        columns = self._trace.directions._packed_columns(SIDE_FIELDS, numbers)
        counted = [array(code, data) for (_, code, *_), data in zip(SIDE_FIELDS, columns, strict=True)]
        times = self._times(self._trace.directions, numbers)
        sides = list(map(side_of, *counted, *times))
        return {
            flow: Leg(flow, protocols[i], ends[flow], paths[flow], (sides[2 * i], sides[2 * i + 1]))
            for i, flow in enumerate(numbers)
        }

    def _times(self, table: Table, flows: list[int] | None = None) -> list[array[float]]:
        """Returns the first and the last time of each row, from the first packet of the trace on: doubles are exact."""
        base_ns = min((ns for ns in self._trace.interfaces.column("first_ns") if ns is not None), default=0)
        fields = [(name, "d", base_ns, 1) for name in ("first_ns", "last_ns")]
        return [array("d", data) for data in table._packed_columns(fields, flows)]

    def at_once(self, groups: Iterable[list[int]]) -> list[list[int]]:
        """Returns those of each group whose lives overlap, or follow one another as closely as a proof permits.

        No proof spans two such runs. Captures of several days repeat ends and sequence numbers, and a leg takes 1 kB.
        """
        if not (left := list(groups)):
            return []
        first_ns, last_ns = self._times(self._trace.flows)
        runs: list[list[int]] = []
        for group in left:
            end_ns = -math.inf
            for flow in sorted((flow for flow in group if not math.isnan(first_ns[flow])), key=first_ns.__getitem__):
                if first_ns[flow] > end_ns + COPY_NS:
                    runs.append([])
                runs[-1].append(flow)
                end_ns = max(end_ns, last_ns[flow])
        return [run for run in runs if len(run) > 1]

    def subflows(self) -> Iterator[tuple[int, list[int]]]:
        """Yields each flow that joined a multipath connection, and the flows of which an end has this token: joined ones last."""
        began = self._flags["multipath_join"]
        if not began.count(1):
            return
        tokens = array("I", self._trace.directions._packed("multipath_token", "I"))
        by_token: dict[int, list[int]] = {}
        joining = [flow for flow, is_join in enumerate(began) if is_join == 1]
        for flow in [flow for flow, is_join in enumerate(began) if is_join == 0] + joining:
            for token in set(tokens[2 * flow : 2 * flow + 2]) - {NULL}:
                by_token.setdefault(token, []).append(flow)
        for flow in joining:
            for token in set(tokens[2 * flow : 2 * flow + 2]) - {NULL}:
                yield flow, by_token[token]

    def reused(self) -> Iterator[tuple[int, int]]:
        """Yields each flow that ended because its ports were opened again, and the next flow of the same ends and path."""
        ended = self._trace.flows._rows_where("end", "ports_reused")
        if not ended:
            return
        waiting: dict[tuple[Ends, str], int] = {}
        ended_set, paths = set(ended), self.paths
        for flow, ends in enumerate(self.ends):
            key = (ends if ends[0] <= ends[1] else ends[::-1], paths[flow])
            if (before := waiting.pop(key, None)) is not None:
                yield before, flow
            if flow in ended_set:
                waiting[key] = flow


def side_of(
    packets: int,
    sequence: int,
    tsval: int,
    syns: int,
    payload: float,
    unique: float,
    ttl_min: float,
    ttl_max: float,
    first_ns: float,
    last_ns: float,
) -> Side:
    """Returns a direction of its packed values."""
    return Side(
        packets,
        None if payload != payload else int(payload),
        None if unique != unique else int(unique),
        None if first_ns != first_ns else first_ns,
        None if last_ns != last_ns else last_ns,
        int(ttl_min) if ttl_min == ttl_max else None,
        None if sequence == NULL else sequence,
        None if tsval == NULL else tsval,
        0 < syns < NULL,
    )


def legs_of(group: Iterable[Leg]) -> Iterator[Relation]:
    """Yields the relations of flows that may be one conversation: the leg that shows most of it is judged for all."""
    left = sorted(group, key=lambda leg: leg.rank)
    while len(left) > 1:
        judged, *candidates = left
        left = []
        for leg in candidates:
            if proof := prove(judged, leg):
                yield Relation.of(leg.flow, judged.flow, judged.flow, proof)
            else:
                left.append(leg)


def halves_of(group: Iterable[Leg]) -> Iterator[Relation]:
    """Yields the relations of flows that are one direction each of a connection."""
    left = sorted(group, key=lambda leg: leg.flow)
    while left:
        first, *candidates = left
        left = candidates
        for leg in candidates:
            if proof := prove_half(first, leg):
                yield Relation.of(leg.flow, first.flow, None, proof)
                left = [other for other in candidates if other is not leg]
                break


def by_flow(relations: Iterable[Relation]) -> dict[int, Relation]:
    """Returns relations by their flow."""
    return {relation.flow: relation for relation in relations}


def relations_of(trace: Trace) -> list[Relation]:
    """Returns the relations between the flows of a trace, in the order of flows."""
    flows = Flows(trace)
    same_numbers, same_ends = flows.at_once(flows.by_numbers()), flows.at_once(flows.by_ends())
    legs = flows.legs(flow for group in (*same_numbers, *same_ends) for flow in group)
    relations: dict[int, Relation] = {}
    for group in (*same_numbers, *same_ends):
        relations |= by_flow(legs_of(legs[flow] for flow in group if flow not in relations))
    rows = list(relations.values())
    for group in same_ends:
        rows += halves_of(legs[flow] for flow in group if flow not in relations)
    opened = ((before, flow) for before, flow in flows.reused() if trace.directions[2 * flow]["syns"])
    rows += [reuse(trace, before, flow) for before, flow in opened]  # else an answer came after an RST
    rows += subflows(trace, flows, relations)
    return sorted(rows, key=lambda row: (row.flow, row.other, row.kind))


def reuse(trace: Trace, before: int, flow: int) -> Relation:
    """Returns the relation of a flow to the one whose ports it opened again; `sequence`: by the same SYN."""
    first_ns, last_ns = trace.flows[flow]["first_ns"], trace.flows[before]["last_ns"]
    numbers = [trace.directions[2 * number]["initial_sequence"] for number in (before, flow)]
    evidence = ["ends", "syn", *(["sequence"] if numbers[0] == numbers[1] else [])]
    delay_ns = None if first_ns is None or last_ns is None else first_ns - last_ns
    return Relation(flow, before, "reuse", None, " ".join(evidence), delay_ns, None)


def subflows(trace: Trace, flows: Flows, legs: Container[int]) -> Iterator[Relation]:
    """Yields the relations of flows that joined a multipath connection to the one that began it, else to the first that joined.

    Of flows that are legs of others, only the judged one counts.
    """
    for flow, same in flows.subflows():
        first = next((other for other in same if other not in legs), flow)
        if first != flow and flow not in legs:
            began, joined = trace.flows[first]["first_ns"], trace.flows[flow]["first_ns"]
            delay_ns = None if began is None or joined is None else joined - began
            yield Relation(flow, first, "subflow", None, "token", delay_ns, None)


def add_relations(trace: Trace) -> None:
    """Fills the table of relations, and the parents of exchanges (exchanges.within)."""
    trace._core.nest_exchanges()
    for relation in relations_of(trace):
        trace._core.add_row("relations", relation)
