# SPDX-License-Identifier: Apache-2.0
"""All rules in the order of their findings, and the ranking of findings.

Rules must read columns, never packets, and must claim nothing that the tables leave null. A healthy capture must have no
warning, and costs nothing, because rules run at the end of every analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings import (
    capture,
    connection,
    decoding,
    fragmentation,
    handshake,
    loss_pattern,
    queueing,
    throughput_limit,
    tracer,
)
from wiretale.analyzer.findings.cost import Concern, severity_by_cost
from wiretale.analyzer.findings.counts import loss, numbered, order, window
from wiretale.analyzer.findings.counts.count_rule import CountRule
from wiretale.analyzer.findings.evidence import ENDS, MEMBERS_MAX, SHOWN
from wiretale.analyzer.findings.exchanges import application, turns, unanswered
from wiretale.analyzer.findings.hosts import dhcp, echo, multicast, neighbors, wlan
from wiretale.analyzer.findings.model import Finding, Rule, duration_of, row_at
from wiretale.analyzer.findings.shared import cause, legs, sharing
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import plural

SEVERITIES = ("error", "warning", "info")
ADDITIVE_UNITS = {"seconds", "bytes", "packets", "segments", "connections", "timeouts"}
Page = Rule | CountRule

#: Findings of equal rank are in the order of their rules, except that these come last: they explain less.
LAST = (
    *("retransmission-cost", "icmp-errors", "path-mtu", "loss-amplified", "datagram-incomplete", "fragmentation"),
    *("ecn-ignored", "keep-alive-unanswered", "mss-clamped", "small-packets", "jitter", "microburst"),
    *("unfair-share", "wire-full", "loss-limited-window", "path-limited", "window-scaling-off", "slow-start"),
    "sender-idle",
)
#: Findings of losses with their place and of damage, and those of their effects, which rank behind one that took most time.
LOSSES = {"lost-downstream", "lost-upstream", "damaged-packets"}
EFFECTS_OF_LOSS = {"recovery-limited", "timeout-stalls", "retransmission-cost"}
RATE_OF_LOSS = "loss-limited-window"  # an effect of the losses, whatever time they took by themselves
#: If it is no info, it comes before all others: these are about the packets that were decoded.
FIRST = "undecoded"
#: Their advice saves nothing: the time that they name is how a healthy transfer works.
NOTHING_SAVED = {"path-limited"}
CHAPTERS: dict[str, tuple[Page, ...]] = {
    module.CHAPTER: tuple(rule for rule in vars(module).values() if isinstance(rule, (Rule, CountRule)))
    for module in (
        capture,
        tracer,
        decoding,
        handshake,
        connection,
        throughput_limit,
        turns,
        unanswered,
        queueing,
        sharing,
        legs,
        loss,
        order,
        window,
        numbered,
        loss_pattern,
        cause,
        fragmentation,
        application,
        neighbors,
        dhcp,
        echo,
        multicast,
        wlan,
    )
}
RULES: dict[str, Page] = {rule.code: rule for rules in CHAPTERS.values() for rule in rules}
ORDERED = sorted(RULES.values(), key=lambda rule: LAST.index(rule.code) if rule.code in LAST else -1)


def page_of(code: str) -> Page:
    """Returns the rule of a code. Raises UsageError if no rule has it."""
    if code not in RULES:
        near = " or ".join(name for name in sorted(RULES) if code and code.split("-")[0] in name.split("-"))
        hint = f" (did you mean {near}?)" if near else ""
        raise UsageError(f"there is no finding {code!r}{hint}; `wiretale analyze --list` lists all")
    return RULES[code]


def example_of(code: str) -> dict[str, str] | None:
    """Returns capture, severity, cost and sentence of the example of a finding (.ci/make_docs.py makes them); None without."""
    import json

    by_code: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
    return by_code.get(code)


class Ranked(NamedTuple):
    """A finding, and what its rank follows from beside it."""

    finding: Finding
    time_ns: float = 0.0  # its cost as time of its transfer; 0 if it is none
    cause: Ranked | None = None  # the losses of which it is an effect: it ranks behind them

    @property
    def weight_ns(self) -> float:
        """The time by which it ranks: its own, at most that of its cause."""
        return min(self.time_ns, self.cause.time_ns) if self.cause else self.time_ns


def rank(ranked: Ranked) -> tuple[int, bool, float, bool, float]:
    """Returns the sort key: FIRST; findings that weaken results, unless they are notes; then severity, time, whether it is an
    effect, impact."""
    finding = ranked.finding
    affects_all, impact = finding.scope == "capture" and finding.impact is None, finding.impact or 0.0
    if finding.severity != "info" and (finding.code == FIRST or RULES[finding.code].weakens):
        return -1 - (finding.code == FIRST), not affects_all, 0.0, False, -impact
    return (
        SEVERITIES.index(finding.severity),
        not affects_all,
        -round(ranked.weight_ns),
        ranked.cause is not None,
        -impact,
    )


def concern_of(transfers: Transfers, flow: int) -> Concern:
    """Returns the transfer of a flow."""
    row = row_at(transfers.trace.flows, flow)
    return Concern(duration_of(row) or 0.0, row["wire_bytes"])


def judged(transfers: Transfers, page: Page, finding: Finding) -> Ranked:
    """Returns the finding with its cost as time, and with the severity that follows from its cost.

    Findings about the capture keep theirs, because they weaken results, as do those about delays and the
    time of several flows. Bytes of several flows are compared with those of the trace.
    """
    if finding.cost is None or page.weakens:
        return Ranked(finding)
    if finding.code in NOTHING_SAVED:
        return Ranked(finding._replace(cost=None, cost_unit=None, waited_ns=None))
    flow = finding.flow
    concern = Concern(0.0, 0.0) if flow is None else concern_of(transfers, flow)
    base = Concern(0.0, transfers.wire_bytes) if flow is None else concern
    share = None if page.delays and flow is not None else base.share(finding.cost, finding.cost_unit)
    time_ns = concern.time_ns(finding.cost, finding.cost_unit) or 0.0
    return Ranked(finding._replace(severity=severity_by_cost(finding.severity, share)), time_ns)


def sum_of(numbers: Iterable[int | None]) -> int | None:
    """Returns the sum; None if one is unknown."""
    counted = list(numbers)
    return None if None in counted else sum(number for number in counted if number is not None)


def sum_of_costs(findings: Sequence[Finding]) -> tuple[float | None, str | None]:
    """Returns the cost of several findings and its unit; nothing if it is unknown of one, or if it does not add up."""
    costs, units = [finding.cost for finding in findings], {finding.cost_unit for finding in findings}
    if len(units) != 1 or not units <= ADDITIVE_UNITS or None in costs:
        return None, None
    return sum(cost or 0.0 for cost in costs), units.pop()


def summary_of(ranked: Sequence[Ranked]) -> Ranked:
    """Returns one finding for those of a code that are not shown one by one."""
    findings = [member.finding for member in ranked]
    first, sides = findings[0], sorted({side for finding in findings for side in finding.flows[:1]})
    (cost, unit), single = sum_of_costs(findings), len({flow for flow, _ in sides}) == 1
    sentence = f"{plural(len(findings), 'more transfer has', 'more transfers have')} this finding."
    summary = Finding(
        first.code,
        min((finding.severity for finding in findings), key=SEVERITIES.index),
        "flow",
        *((first.flow, first.direction if len(sides) == 1 else None) if single else (None, None)),
        sentence,
        sentence,
        "Check their columns in the directions table.",
        cost=cost,
        cost_unit=unit,
        bytes=sum_of(finding.bytes for finding in findings),
        failed=sum_of(finding.failed for finding in findings),
        members=len(findings),
        first_ns=first.first_ns,
        last_ns=first.last_ns,
        frames=tuple(packet for packet in first.frames if packet.role in ENDS),
        flows=tuple(dict.fromkeys((*first.flows[:1], *sides)))[:MEMBERS_MAX],
    )
    return Ranked(summary, sum(member.weight_ns for member in ranked))


def collapse(findings: Iterable[Ranked]) -> Iterator[Ranked]:
    """Returns the first few findings of each code about single flows, and a summary of the others."""
    by_code: dict[str, list[Ranked]] = {}
    for ranked in findings:
        by_code.setdefault(ranked.finding.code, []).append(ranked)
    for members in by_code.values():
        single = [ranked for ranked in members if ranked.finding.flow is not None and ranked.finding.scope == "flow"]
        further = sorted(single, key=rank)[SHOWN:]
        left_out = {id(ranked) for ranked in further}
        yield from (ranked for ranked in members if id(ranked) not in left_out)
        if further:
            yield summary_of(further)


def with_causes(findings: Sequence[Ranked]) -> Iterator[Ranked]:
    """Returns the findings; an effect of losses that took half of its time or more, or the rate they allow, has them as cause."""
    causes: dict[int | None, Ranked] = {}
    for ranked in findings:
        if ranked.finding.code in LOSSES:
            causes[ranked.finding.flow] = max(
                causes.get(ranked.finding.flow, ranked), ranked, key=lambda loss: loss.time_ns
            )
    for ranked in findings:
        cause, code = causes.get(ranked.finding.flow), ranked.finding.code
        if cause is None or ranked.finding.flow is None or not cause.time_ns:
            yield ranked
            continue
        effect = code == RATE_OF_LOSS or (code in EFFECTS_OF_LOSS and ranked.time_ns / 2 <= cause.time_ns)
        yield ranked._replace(cause=cause) if effect else ranked


def in_order(findings: Iterable[Ranked]) -> list[Finding]:
    """Returns the findings, the most severe and costly first, with the numbers, from 1, of those that explain them."""
    ranked = sorted(collapse(findings), key=rank)
    numbers: dict[tuple[str, int], int] = {}
    for number, entry in enumerate(ranked, 1):
        for flow, _ in entry.finding.flows:
            numbers.setdefault((entry.finding.code, flow), number)
    explained = (
        entry.cause and numbers.get((entry.cause.finding.code, entry.cause.finding.flows[0][0])) for entry in ranked
    )
    return [entry.finding._replace(explained_by=number) for entry, number in zip(ranked, explained, strict=True)]


def every_finding(transfers: Transfers) -> list[Ranked]:
    """Returns the findings one by one: many flows may have the same. The caller must release the counts of the transfers."""
    cause.queues_of(transfers)
    return list(with_causes([judged(transfers, rule, match) for rule in ORDERED for match in rule.findings(transfers)]))


def find(transfers: Transfers) -> list[Finding]:
    """Returns all findings, the most severe and costly first. The caller must release the counts of the transfers."""
    return in_order(every_finding(transfers))
