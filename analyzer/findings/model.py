# SPDX-License-Identifier: Apache-2.0
"""A finding, and the rule that makes it: page, sentence and computation in one place.

`@finding(...)` above a function makes it a Rule. The function yields a Match for each occurrence, whose words must fill the
templates of sentence and advice. Integers in templates take the form of their noun:

    {n}                   1,234
    {n:segment}           1 segment, 2 segments
    {n:loss|losses}       1 loss, 2 losses
    {n:~it was|they were} it was, they were

The parts in brackets are left out of a headline as long as it is too long: further sentences first, then what is in
parentheses, then the other parts from the right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from wiretale.analyzer.findings.cost import BY_COST, BYTES, SECONDS
from wiretale.analyzer.findings.evidence import MEMBERS_MAX, SHOWN, Cited, Side, evidence_fields
from wiretale.analyzer.table import integer_in
from wiretale.analyzer.units import plural, show_duration

if TYPE_CHECKING:
    from typing import TypeAlias

    from wiretale.analyzer.findings.counts.count_rule import CountRule
    from wiretale.analyzer.findings.transfers import Transfers
    from wiretale.analyzer.rows import DirectionRow, FlowRow, InterfaceRow
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace

    Page: TypeAlias = "Rule | CountRule"

SECOND = 1e9  # ns
HEADLINE_MAX = 110  # characters
#: names of protocols and applications that are not in capitals
PROTOCOL_NAMES = {"icmpv6": "ICMPv6", "iperf2": "iperf2", "iperf3": "iperf3"}
Words = dict[str, Any]  # of a template, or fields of a match
Row = TypeVar("Row")
#: columns of directions that count captured packets, and those that count segments on the wire (docs/tables.md)
ON_WIRE = {
    "data_packets": "wire_segments",
    "retransmissions": "wire_retransmissions",
    "spurious_retransmissions": "wire_spurious",
    "unplaced_retransmissions": "wire_unplaced",
    "lost_upstream": "wire_lost_upstream",
    "lost_downstream": "wire_lost_downstream",
}
#: columns that count retransmissions, and those that count the SYNs and FINs among them, which are no data segments
SYN_FIN = {
    "retransmissions": "syn_fin_retransmissions",
    "spurious_retransmissions": "syn_fin_spurious",
    "lost_upstream": "syn_fin_lost_upstream",
    "lost_downstream": "syn_fin_lost_downstream",
}
PLACED = ("spurious_retransmissions", "lost_upstream", "lost_downstream")


class Finding(NamedTuple):
    """A row of the findings table (docs/tables.md) without its number, and its rows of finding_frames and finding_flows."""

    code: str
    severity: str
    scope: str
    flow: int | None
    direction: int | None
    sentence: str
    headline: str
    advice: str
    waited_ns: int | None = None
    saving_ns: int | None = None
    cost: float | None = None
    cost_unit: str | None = None
    bytes: int | None = None
    failed: int | None = None
    members: int | None = None
    impact: float | None = 0.0
    first_ns: int | None = None
    last_ns: int | None = None
    explained_by: int | None = None
    packets: int | None = None
    figures: str | None = None
    filter: str | None = None
    frames: tuple[Cited, ...] = ()
    flows: tuple[Side, ...] = ()

    def rows(self, number: int) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yields table and row of the finding and of its evidence, as the core takes them."""
        impact = None if self.impact is None else round(self.impact, 6)
        yield "findings", (number, *self._replace(impact=impact)[:-2])
        for packet in self.frames:
            yield "finding_frames", (number, packet.capture, packet.frame, packet.role)
        for side in self.flows:
            yield "finding_flows", (number, *side)


class Count(int):
    """An integer that a template formats with its noun (see the head of this file)."""

    def __format__(self, spec: str) -> str:
        singular, _, several = spec.lstrip("~").partition("|")
        if spec.startswith("~"):
            return singular if self == 1 else several
        return plural(int(self), singular, several or None) if spec else f"{int(self):,}"


def fill(template: str, words: Words) -> str:
    """Fills a template; see the head of this file."""
    return template.format_map({name: Count(word) if type(word) is int else word for name, word in words.items()})


class Match:
    """One occurrence of a finding."""

    def __init__(
        self,
        severity: str | None = None,
        *,
        flows: Sequence[int | Side] = (),
        cited: Sequence[Cited] = (),
        frames: Sequence[Cited] | None = None,
        packets: int | None = None,
        cost: float | None = None,
        cost_unit: str | None = None,
        waited_ns: float | None = None,
        saving_ns: float | None = None,
        bytes: int | None = None,
        failed: int | None = None,
        members: int | None = None,
        figures: str | None = None,
        filter: str | None = None,
        impact: float | None = None,
        **words: Any,
    ) -> None:
        self.severity = severity  # None: the rule's
        #: the flows that it is about
        self.flows = [(side, None) if isinstance(side, int) else side for side in flows[:MEMBERS_MAX]]
        self.cited = cited  # the packets of its span; none: the whole of its flow
        self.frames = frames  # those that show it by themselves; None: the same
        self.packets = packets  # the number of all of them; None: only these, or unknown
        self.cost_unit = cost_unit  # None: the rule's
        self.waited_ns = waited_ns  # None: the cost, if it is the time of a transfer
        self.saving_ns = saving_ns  # None: unknown
        self.fields: Words = {
            "cost": cost,
            "bytes": bytes,
            "failed": failed,
            "members": members or len(flows) or None,
            "figures": figures,
            "filter": filter,
            "impact": impact,
        }
        self.words = words

    @property
    def only_flow(self) -> Side | None:
        """The flow that it is about if it is one, with the direction if that is one too."""
        sides = set(self.flows)
        if len({flow for flow, _ in sides}) != 1:
            return None
        (flow, direction), *further = sides
        return flow, None if further else direction


Matches = Iterator[Match]


class Rule(NamedTuple):
    """One finding: the function that looks for it, and its page."""

    matches: Callable[[Transfers], Matches]
    code: str
    title: str
    computed: str  # with thresholds
    unknown: str  # limits of the computation
    sentence: str
    advice: str
    headline: tuple[
        str, ...
    ] = ()  # templates, in whose order the first form that is short enough is taken; none: the sentence
    summary: str | None = None  # of several transfers: "3 transfers {summary}"; None: each is a cause of its own
    severity: str = "warning"  # a severity, or how it is chosen
    scope: str = "flow"
    unit: str | None = None  # of the cost
    layer: str = "on the wire"  # of a cost in bytes
    weakens: str | None = None  # results that a finding about the capture affects
    delays: bool = False  # the cost is the delay of a packet, not time of the transfer
    without_packets: str | None = (
        None  # why none of its packets stands out: it shows in all of a flow, or they are not in the file
    )

    def findings(self, transfers: Transfers) -> Iterator[Finding]:
        """Returns one finding per match."""
        return (finding_of(self, transfers, match) for match in self.matches(transfers))


def shorter_forms(template: str, words: Words) -> Iterator[str]:
    """Yields a filled template, then without ever more of its optional parts."""
    parts = [fill(part, words) for part in template.replace("]", "[").split("[")]  # each second one is optional
    sentences = [i for i in range(1, len(parts), 2) if parts[i].startswith(". ") or parts[i].endswith(".")]
    asides = [i for i in range(1, len(parts), 2) if parts[i].startswith(" (")]
    for left_out in ([], sentences, asides, *([i] for i in range(len(parts) - 1, 0, -1) if i % 2)):
        for i in left_out:
            parts[i] = ""
        yield "".join(parts)


def headline_of(templates: Sequence[str], words: Words) -> str:
    """Returns the first form that is short enough, else the last."""
    text = ""
    for text in chain.from_iterable(shorter_forms(template, words) for template in templates):
        if len(text) <= HEADLINE_MAX:
            break
    return text


def waited_in(page: Page, match: Match, life_ns: int | None) -> int | None:
    """Returns the time in which somebody waited, at most the life of a single flow; None if it is unknown."""
    waited, cost = match.waited_ns, match.fields["cost"]
    if match.only_flow is None:
        return None if waited is None else round(waited)
    if waited is None and cost and not page.delays and (match.cost_unit or page.unit) == SECONDS:
        waited = cost * SECOND
    return None if waited is None or life_ns is None else round(min(waited, life_ns))


def fields_of(page: Page, match: Match) -> Words:
    """Returns the fields of a finding that a match gives, with those that follow from its cost and its scope."""
    fields = {**match.fields, "cost_unit": None if match.fields["cost"] is None else match.cost_unit or page.unit}
    if fields["impact"] is None and page.scope != "capture":
        fields["impact"] = 0.0
    if fields["bytes"] is None and fields["cost_unit"] == BYTES:
        fields["bytes"] = round(fields["cost"])
    return fields


def finding_of(page: Page, transfers: Transfers, match: Match) -> Finding:
    """Returns the finding of a match."""
    flow, direction = match.only_flow or (None, None)
    life_ns = None if flow is None else duration_of(row_at(transfers.trace.flows, flow))
    cited = match.cited or (() if flow is None else transfers.span(flow))
    sentence = next(shorter_forms(page.sentence, match.words))
    words = {**match.words, "sentence": sentence, "life": f" of {show_duration(life_ns)}" if life_ns else ""}
    return Finding(
        page.code,
        match.severity or ("warning" if page.severity == BY_COST else page.severity),
        page.scope,
        flow,
        direction,
        sentence,
        headline_of(page.headline or (page.sentence,), words),
        fill(page.advice, match.words),
        waited_in(page, match, life_ns),
        None if match.saving_ns is None else round(match.saving_ns),
        **fields_of(page, match),
        **evidence_fields(cited, match.frames, match.packets, match.flows)._asdict(),
    )


def finding(**page: Any) -> Callable[[Callable[[Transfers], Matches]], Rule]:
    """Makes a rule of the function below it; `page` is the other members of Rule. The registry collects the rules."""
    return partial(Rule, **page)


def seconds(ns: float) -> float:
    """Returns nanoseconds as a cost in seconds."""
    return round(ns / SECOND, 6)


def percent(part: float, total: float = 1, digits: int = 3) -> float:
    """Returns a share as a cost in percent."""
    return round(100 * part / total, digits)


def segments(row: DirectionRow, column: str) -> int | None:
    """Returns a count of a directions row in segments on the wire; as captured if that is unknown, or for other columns."""
    on_the_wire = integer_in(row, ON_WIRE.get(column, column))
    return integer_in(row, column) if on_the_wire is None else on_the_wire


def syns_and_fins(row: DirectionRow, column: str) -> int:
    """Returns the SYNs, and the FINs without data, that a column of retransmissions counts; 0 of another column."""
    if column == "unplaced_retransmissions":
        placed = sum(syns_and_fins(row, name) for name in PLACED)
        return max(syns_and_fins(row, "retransmissions") - placed, 0)
    return integer_in(row, SYN_FIN[column]) or 0 if column in SYN_FIN else 0


def data_segments(row: DirectionRow, column: str) -> int | None:
    """Returns a count of a directions row in segments with payload, on the wire if that is known."""
    count = segments(row, column)
    return None if count is None else max(count - syns_and_fins(row, column), 0)


def on_wire(counted: dict[str, list[tuple[int, int]]], column: str) -> list[tuple[int, int]]:
    """Returns the nonzero counts of a column of ON_WIRE by row in segments on the wire, or as captured if that is unknown."""
    counts, wire_counts = counted[column], counted[ON_WIRE[column]]
    if wire_counts == counts:  # no super-segments
        return counts
    by_number = dict(wire_counts)
    return [(number, by_number.get(number, count)) for number, count in counts]


def nonzero_rows(table: Table, column: str) -> list[int]:
    """Returns the rows in which a column is neither null, 0 nor false."""
    return [number for number, _ in table._nonzero([column])[column]]


def row_at(table: Table[Row], number: int) -> Row:
    """Returns one row."""
    return table.rows(number, number + 1)[0]


def opposite(trace: Trace, row: DirectionRow) -> DirectionRow:
    """Returns the directions row of the opposite direction."""
    return row_at(trace.directions, 2 * row["flow"] + 1 - row["direction"])


def duration_of(row: FlowRow | DirectionRow | InterfaceRow) -> int | None:
    """Returns the ns from the first packet to the last; None without timestamps."""
    first, last = row["first_ns"], row["last_ns"]
    return None if first is None or last is None else last - first


def endpoint_str(address: str, port: int | None) -> str:
    """`10.0.0.1:80`, `[2001:db8::1]:80`; the address alone without a port."""
    host = f"[{address}]" if ":" in address and port is not None else address
    return host if port is None else f"{host}:{port}"


def protocol_str(word: str) -> str:
    """Returns the name of a protocol or an application: `TCP`, `ICMPv6`, `iperf3`."""
    return PROTOCOL_NAMES.get(word, word.upper())


def flow_str(row: FlowRow | DirectionRow) -> str:
    """`10.0.0.1:5000 → 10.0.0.2:80` of a flows or directions row."""
    source = endpoint_str(row["source"], row["source_port"])
    return f"{source} → {endpoint_str(row['destination'], row['destination_port'])}"


def process_str(name: str | None, number: int | None) -> str:
    """Returns the process of a flow: its name, its number if that is all the file has, an empty text without either."""
    return name or ("" if number is None else str(number))


def flow_list(trace: Trace, numbers: Sequence[int], count: int) -> str:
    """`flow 3 10.0.0.1:5000 → 10.0.0.2:80; …; and 7 more` of `count`."""
    texts = "; ".join(f"flow {n} {flow_str(row_at(trace.flows, n))}" for n in numbers[:SHOWN])
    return texts + (f"; and {count - SHOWN:,} more" if count > SHOWN else "")


def flows_match(transfers: Transfers, flows: Sequence[int], **fields: Any) -> Matches:
    """Yields a match about these flows if there are any; its words include their `count`."""
    if flows:
        yield Match(**{"count": len(flows), "flows": flows, "cited": transfers.span(flows[0]), **fields})
