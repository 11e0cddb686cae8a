# SPDX-License-Identifier: Apache-2.0
"""The part of a trace that was judged for loss, round trips and limits, and why the rest was not.

The core sums traffic by reason when it writes the rows of a flow (analyzer/core/rows/judged.c), so that no row is read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.findings.model import protocol_str
from wiretale.analyzer.units import plural, show_share

if TYPE_CHECKING:
    from typing import Any

    from wiretale.analyzer.trace import Trace

MEASURES = {"loss": "loss", "rtt": "round trips", "limits": "limits"}
ALL = tuple(MEASURES)
REASONS = {
    "one_way": "only one direction was captured",
    "headers_cut": "TCP headers were cut or malformed",
    "no_times": "the packets have no timestamps",
    "no_round_trip": "no packet and its answer give a round trip",
    "short": "too few packets",
    "no_acknowledgments": "numbered datagrams have no acknowledgments",
    "echo": "pings have no rate",
    "dns": "DNS has no sequence numbers",
    "quic": "QUIC is encrypted",
    "esp": "ESP is encrypted",
    "udp": "UDP has no sequence numbers",
}
CAUSES = {"not IP": "not_ip", "not decoded": "not_understood", "headers cut": "cut_headers", "malformed": "malformed"}
HALVED = "only one direction was captured, or the other one under another tag"
NO_ROUND_TRIP = {
    "quic": ", and no handshake shows a round trip",
    "echo": ", and none was answered",
    "dns": ", and no answer shows a round trip",
}
WITHOUT_LIMITS = ("short", "echo")
A_FIFTH = 5  # of the packets: less is not worth a reason
REASONS_SHOWN, EVERY_MEASURE = 5, "loss, round trips or limits"


class Amount(NamedTuple):
    """Packets and their wire bytes."""

    packets: int = 0
    wire_bytes: int = 0


def added(amount: Amount, other: Amount) -> Amount:
    """Returns the sum."""
    return Amount(amount.packets + other.packets, amount.wire_bytes + other.wire_bytes)


class Unjudged(NamedTuple):
    """Traffic that was not judged for some measures."""

    reason: str  # of REASONS, no_flow, or a protocol
    text: str
    measures: tuple[str, ...]
    amount: Amount


class Judged(NamedTuple):
    """A trace's traffic, what was judged for each measure, and the rest by reason, most packets first."""

    total: Amount
    measures: dict[str, Amount]
    unjudged: list[Unjudged]

    @property
    def everything(self) -> bool:
        """Whether all packets were judged for all measures."""
        return not self.unjudged

    @property
    def nothing(self) -> bool:
        """Whether no packet was judged for any measure."""
        return not any(amount.packets for amount in self.measures.values())

    def sentence(self) -> str:
        """Returns the line of each report; empty without a packet."""
        if self.total.packets and self.nothing:
            return f"Nothing was judged for {EVERY_MEASURE}: {self._reasons()}."
        return f"Judged: {self.text()}" if self.total.packets else ""

    def parts(self) -> tuple[str, str]:
        """Returns what was judged in short, and the details; each empty without."""
        if not self.total.packets:
            return "", ""
        if self.nothing:
            return f"Nothing was judged for {EVERY_MEASURE}.", f"Not judged: {self._reasons()}."
        shares = [amount.packets / self.total.packets for amount in self.measures.values() if amount.packets]
        least, most = (show_share(share, 1) for share in (min(shares), max(shares)))
        packets = (
            "all packets"
            if min(shares) == 1
            else f"{least} of packets"
            if least == most
            else f"{least} to {most} of packets"
        )
        return f"Judged: {packets}.", self.sentence()

    def text(self) -> str:
        """Returns the same without the word `Judged`, if anything was judged."""
        names_of: dict[str, list[str]] = {}
        for name, amount in self.measures.items():
            if amount.packets:
                names_of.setdefault(self._share(amount), []).append(MEASURES[name])
        judged = "; ".join(f"{share} for {listed(names, 'and')}" for share, names in names_of.items())
        return f"{judged}.{f' Not judged: {self._reasons()}.' if self.unjudged else ''}"

    def brief(self, reasons: bool = True) -> str:
        """Returns the line of the screen, perhaps with the reasons of a fifth of the packets or more; empty without a packet.

        Questions of DNS are judged as such, and a short flow or a ping has no limit that is missed.
        """
        if not self.total.packets:
            return ""
        missed = [part for part in self.unjudged if reasons and self._is_missed(part)]
        shares = self._shares()
        if not shares:
            why = listed([part.text for part in missed] or [self.unjudged[0].text], "and")
            return f"nothing for {EVERY_MEASURE}: {why}."
        return f"{'; '.join([', '.join(shares), *map(self._left_out, missed)])}."

    def _shares(self) -> list[str]:
        """Returns the packets that were judged: `83 of 104 packets for loss and round trips`, `21 as DNS questions`."""
        packets, questions = self.total.packets, self._questions()
        groups = [(count, names) for count, names in self._counts() if count * A_FIFTH >= packets]
        shares = [(count, f"for {listed(names, 'and')}") for count, names in groups]
        shares += [(questions, f"as DNS {'question' if questions == 1 else 'questions'}")] if questions else []
        total = plural(packets, "packet")
        every = f"all {total}" if packets > 1 else total
        return [
            f"{count:,} {use}" if number else f"{every if count == packets else f'{count:,} of {total}'} {use}"
            for number, (count, use) in enumerate(shares)
        ]

    def _questions(self, measure: str = "loss") -> int:
        """Returns the packets of DNS that were not judged for a measure."""
        return sum(part.amount.packets for part in self.unjudged if part.reason == "dns" and measure in part.measures)

    def _counts(self) -> list[tuple[int, list[str]]]:
        """Returns the packets that were judged beside DNS, with the measures that have about as many, most first."""
        counts = {name: amount.packets for name, amount in self.measures.items()}
        counts["rtt"] -= self._questions() - self._questions("rtt")
        groups: list[tuple[int, list[str]]] = []
        for name, count in sorted(counts.items(), key=lambda each: -each[1]):
            if groups and count * A_FIFTH >= groups[-1][0] * (A_FIFTH - 1):
                groups[-1] = (count, [*groups[-1][1], MEASURES[name]])
            elif count:
                groups.append((count, [MEASURES[name]]))
        return groups

    def _is_missed(self, part: Unjudged) -> bool:
        is_told = part.reason == "dns" or (part.reason in WITHOUT_LIMITS and part.measures == ("limits",))
        return not is_told and part.amount.packets * A_FIFTH >= self.total.packets

    def _left_out(self, part: Unjudged) -> str:
        count = "" if part.amount == self.total else f"{part.amount.packets:,} "
        names = listed([MEASURES[name] for name in part.measures], "or")
        return f"{count}not{'' if part.measures == ALL else f' for {names}'}: {part.text}"

    def _reasons(self) -> str:
        left = len(self.unjudged) - REASONS_SHOWN
        reasons = "; ".join(self._reason(part) for part in self.unjudged[:REASONS_SHOWN])
        return f"{reasons}; and {left} more" if left > 0 else reasons

    def as_object(self) -> dict[str, Any]:
        """Returns the member `judged` of the JSON output."""
        return {
            **self.total._asdict(),
            **{name: amount._asdict() for name, amount in self.measures.items()},
            "not_judged": [
                {"reason": part.reason, "text": part.text, "for": list(part.measures), **part.amount._asdict()}
                for part in self.unjudged
            ],
            "sentence": self.sentence(),
        }

    def _share(self, amount: Amount) -> str:
        if amount == self.total:
            return "all packets"
        packets, size = (show_share(part, total) for part, total in zip(amount, self.total, strict=True))
        return f"{packets} of packets and bytes" if packets == size else f"{packets} of packets and {size} of bytes"

    def _reason(self, part: Unjudged) -> str:
        share = f"{show_share(part.amount.packets, self.total.packets)} of packets"
        if self.nothing:
            return f"{part.text} ({share})"
        if part.measures == ALL:
            return f"{share} ({part.text})"
        names = listed([MEASURES[name] for name in part.measures], "and")
        return f"{names} ({part.text})" if part.amount == self.total else f"{names} for {share} ({part.text})"


def listed(words: list[str], last: str) -> str:
    """`a, b and c`."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else words[0]


def text_of(reason: str, measures: str) -> str:
    """Returns the reason in words."""
    if reason in NO_ROUND_TRIP and "rtt" in measures:
        return REASONS[reason] + NO_ROUND_TRIP[reason]
    return REASONS.get(reason, f"no rules for {protocol_str(reason)}")


def outside_flows(trace: Trace, flows: Amount) -> Unjudged:
    """Returns the packets without a flow, because no IP header of them was read, and the possible causes."""
    interfaces = trace.interfaces
    amount = Amount(interfaces.total("packets") - flows.packets, interfaces.total("no_flow_bytes"))
    causes = [text for text, column in CAUSES.items() if interfaces.total(column)] or ["no IP header"]
    if interfaces.total("not_ip") == amount.packets:  # packets of other causes have an IP header, and a flow
        causes = causes[:1]
    return Unjudged("no_flow", listed(causes, "or"), ALL, amount)


def judge(trace: Trace) -> Judged:
    """Returns what was judged."""
    sums: dict[tuple[str, str], Amount] = {}
    for reason, measures, packets, wire_bytes in trace.flow_sums:
        before = sums.get((reason, measures), Amount())  # several protocols are named "ip"
        sums[reason, measures] = added(before, Amount(packets, wire_bytes))
    flows = sums.pop(("", ""), Amount())
    halved = {"one_way": HALVED} if any(row["kind"] == "half" for row in trace.relations) else {}
    unjudged = [
        Unjudged(reason, halved.get(reason) or text_of(reason, measures), tuple(measures.split()), amount)
        for (reason, measures), amount in sums.items()
    ]
    outside = outside_flows(trace, flows)
    if outside.amount.packets:
        unjudged.append(outside)
    everything = added(flows, outside.amount)
    judged = dict.fromkeys(MEASURES, everything)
    for unjudged_part in unjudged:
        for name in unjudged_part.measures:
            judged[name] = Amount(
                *(total - part for total, part in zip(judged[name], unjudged_part.amount, strict=True))
            )
    return Judged(
        everything,
        judged,
        sorted(
            unjudged,
            key=lambda unjudged_part: (-unjudged_part.amount.packets, unjudged_part.reason, unjudged_part.measures),
        ),
    )
