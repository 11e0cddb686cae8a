# SPDX-License-Identifier: Apache-2.0
"""All rules in the order of their findings, and the ranking of findings.

Rules must read columns, never packets, and must claim nothing that the tables leave null. A healthy capture must have no
warning, and costs nothing, because rules run at the end of every analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings import (
    application,
    capture,
    connection,
    decoding,
    fragmentation,
    handshake,
    loss_pattern,
    queueing,
    quic,
    throughput_limit,
    turns,
)
from wiretale.analyzer.findings.cost import Concern, severity_by_cost
from wiretale.analyzer.findings.counts import loss, numbered, order, window
from wiretale.analyzer.findings.counts.count_rule import CountRule
from wiretale.analyzer.findings.model import MEMBERS_MAX, SHOWN, Finding, Rule, duration_of, row_at
from wiretale.analyzer.findings.shared import cause, sharing
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import plural

SEVERITIES = ("error", "warning", "info")
ADDITIVE_UNITS = {"seconds", "bytes", "packets", "segments", "connections", "timeouts"}
FLOWS_SHOWN = 20
Page = Rule | CountRule

#: Findings of equal rank are in the order of their rules, except that these come last: they explain less.
LAST = (
    *("retransmission-cost", "icmp-errors", "path-mtu", "loss-amplified", "datagram-incomplete", "fragmentation"),
    *("ecn-ignored", "keep-alive-unanswered", "mss-clamped", "small-packets", "jitter", "microburst"),
    *("unfair-share", "wire-full", "loss-limited-window", "path-limited", "window-scaling-off", "slow-start"),
    "sender-idle",
)
#: The findings of losses with their place, and those of their effects, which rank behind a loss that took most of their time.
LOSSES = {"lost-downstream", "lost-upstream"}
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
        decoding,
        handshake,
        connection,
        throughput_limit,
        turns,
        queueing,
        sharing,
        loss,
        order,
        window,
        numbered,
        loss_pattern,
        cause,
        fragmentation,
        application,
        quic,
    )
}
RULES: dict[str, Page] = {rule.code: rule for rules in CHAPTERS.values() for rule in rules}
ORDERED = sorted(RULES.values(), key=lambda rule: LAST.index(rule.code) if rule.code in LAST else -1)


def page_of(code: str) -> Page:
    """Returns the rule of a code. Raises UsageError if no rule has it."""
    if code not in RULES:
        near = " or ".join(name for name in sorted(RULES) if code and code.split("-")[0] in name.split("-"))
        hint = f" (did you mean {near}?)" if near else ""
        raise UsageError(f"there is no finding {code!r}{hint}; `wiretale explain --list` lists all")
    return RULES[code]


def example_of(code: str) -> dict[str, str] | None:
    """Returns capture, severity, cost and sentence of the example of a finding (.ci/make_docs.py makes them); None without."""
    import json

    found: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("examples.json").read_text("utf-8"))
    return found.get(code)


def rank(finding: Finding) -> tuple[int, bool, float, float]:
    """Returns the sort key: FIRST; findings that weaken results, unless they are notes; severity, time lost, impact."""
    affects_all, impact = finding.scope == "capture" and finding.impact is None, finding.impact or 0.0
    if finding.severity != "info" and (finding.code == FIRST or RULES[finding.code].weakens):
        return -1 - (finding.code == FIRST), not affects_all, 0.0, -impact
    return SEVERITIES.index(finding.severity), not affects_all, -round(finding.lost_ns or 0.0), -impact


def concern_of(transfers: Transfers, flow: int) -> Concern:
    """Returns the transfer of a flow."""
    row = row_at(transfers.trace.flows, flow)
    return Concern(duration_of(row) or 0.0, row["wire_bytes"])


def judged(transfers: Transfers, page: Page, finding: Finding) -> Finding:
    """Returns the finding with its time lost, and with the severity that follows from its cost.

    Findings about the capture keep theirs, because they weaken results, as do those about delays and the
    time of several flows. Bytes of several flows are compared with those of the trace.
    """
    if finding.cost is None or page.weakens:
        return finding
    if finding.code in NOTHING_SAVED:
        return finding._replace(cost=None, cost_unit=None)
    if finding.flow is None:
        lost_ns = Concern(0.0, 0.0).time_ns(finding.cost, finding.cost_unit)
        share = Concern(0.0, transfers.wire_bytes).share(finding.cost, finding.cost_unit)
        return finding._replace(severity=severity_by_cost(finding.severity, share), lost_ns=lost_ns)
    concern = concern_of(transfers, finding.flow)
    share = None if page.delays else concern.share(finding.cost, finding.cost_unit)
    return finding._replace(
        severity=severity_by_cost(finding.severity, share), lost_ns=concern.time_ns(finding.cost, finding.cost_unit)
    )


def time_lost(found: Sequence[Finding]) -> float:
    """Returns the time that findings cost together, as far as it is known."""
    return sum(one.lost_ns or 0.0 for one in found)


def summary_of_rest(rest: Sequence[Finding]) -> Finding:
    """Returns one finding for those of a code that are not shown one by one."""
    flows, units = sorted({one.flow for one in rest if one.flow is not None}), {one.cost_unit for one in rest}
    adds_up = len(units) == 1 and units <= ADDITIVE_UNITS and all(one.cost is not None for one in rest)
    shown = ", ".join(map(str, flows[:FLOWS_SHOWN])) + (", …" if len(flows) > FLOWS_SHOWN else "")
    return Finding(
        rest[0].code,
        min((one.severity for one in rest), key=SEVERITIES.index),
        "flow",
        f"{plural(len(rest), 'more transfer has', 'more transfers have')} this finding.",
        "Check their columns in the directions table.",
        cost=sum(one.cost or 0.0 for one in rest) if adds_up else None,
        cost_unit=rest[0].cost_unit if adds_up else None,
        lost_ns=time_lost(rest),
        evidence=f"{'flow' if len(flows) == 1 else 'flows'} {shown}",
        place=rest[0].place,
        members=tuple(flows[:MEMBERS_MAX]) if len(flows) > 1 else (),
    )


def collapse(found: Iterable[Finding]) -> Iterator[Finding]:
    """Returns the first few findings of each code about single flows, and a summary of the others."""
    by_code: dict[str, list[Finding]] = {}
    for finding in found:
        by_code.setdefault(finding.code, []).append(finding)
    for members in by_code.values():
        single = [one for one in members if one.flow is not None and one.scope == "flow"]
        rest = sorted(single, key=rank)[SHOWN:]
        left_out = set(rest)
        yield from (one for one in members if one not in left_out)
        if rest:
            yield summary_of_rest(rest)


def after_causes(found: Sequence[Finding]) -> Iterator[Finding]:
    """Returns the findings; an effect of losses that took half of its time or more, or the rate they allow, ranks behind them."""
    causes: dict[int | None, float] = {}
    for one in found:
        if one.code in LOSSES:
            causes[one.flow] = max(causes.get(one.flow, 0.0), one.lost_ns or 0.0)
    for one in found:
        cause, own = causes.get(one.flow, 0.0), one.lost_ns or 0.0
        effect = one.code == RATE_OF_LOSS or (one.code in EFFECTS_OF_LOSS and own / 2 <= cause)
        follows = effect and one.flow is not None and 0 < cause <= own
        yield one._replace(lost_ns=cause - 1) if follows else one  # 1 ns: of equal ones, impact would decide


def find(transfers: Transfers) -> list[Finding]:
    """Returns all findings, the most severe and costly first."""
    found = sorted(collapse(every_finding(transfers)), key=rank)
    transfers.release_counts()
    return found


def every_finding(transfers: Transfers) -> list[Finding]:
    """Returns the findings one by one: many flows may have the same. The caller must release the counts of the transfers."""
    cause.queues_of(transfers)
    return list(after_causes([judged(transfers, rule, one) for rule in ORDERED for one in rule.findings(transfers)]))


def find_about_capture(transfers: Transfers) -> list[Finding]:
    """Returns the findings about the capture itself, the most severe first."""
    rules = [rule for rule in ORDERED if isinstance(rule, Rule) and rule.scope == "capture"]
    found = sorted((judged(transfers, rule, one) for rule in rules for one in rule.findings(transfers)), key=rank)
    transfers.release_counts()
    return found
