# SPDX-License-Identifier: Apache-2.0
"""What is odd in a capture, what it costs and what to do: a table of rules over the tables.

A rule is a function from a Trace to findings, listed in RULES. It reads columns, never packets, and claims nothing
that the tables leave null. A healthy capture gives no warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from wiretale.analyzer.findings import capture as capture_rules
from wiretale.analyzer.findings import connection as connection_rules
from wiretale.analyzer.findings import flow_rules, odd_counts, wire_rules
from wiretale.analyzer.findings import fragmentation as fragment_rules
from wiretale.analyzer.findings import loss_pattern as loss_rules
from wiretale.analyzer.findings import queueing as queue_rules
from wiretale.analyzer.findings import retransmission as verdict_rules
from wiretale.analyzer.findings import throughput_limit as limit_rules
from wiretale.analyzer.findings.model import HARMLESS, SHOWN, Finding, Rule
from wiretale.analyzer.units import plural

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SEVERITIES = ("error", "warning", "info")
SUMMED = {"seconds", "bytes", "packets", "segments", "connections", "timeouts"}  # units of costs that add up
FLOWS_NAMED = 20

RULES: tuple[Rule, ...] = (
    capture_rules.capture_damaged,
    capture_rules.interrupted,
    capture_rules.capture_drops,
    capture_rules.capture_missed,
    capture_rules.several_points,
    capture_rules.time_backward,
    capture_rules.time_unknown,
    capture_rules.super_segments,
    capture_rules.headers_cut,
    capture_rules.malformed,
    capture_rules.not_understood,
    capture_rules.filter_refused,
    capture_rules.bounds_reached,
    capture_rules.one_way,
    flow_rules.handshake_failed,
    connection_rules.syn_lost,
    flow_rules.resets,
    connection_rules.idle_reset,
    connection_rules.path_mtu_black_hole,
    limit_rules.timeouts,
    limit_rules.receive_window,
    limit_rules.window_by_rate,
    limit_rules.delayed_acks,
    limit_rules.recovery,
    queue_rules.bufferbloat,
    queue_rules.offered_above_rate,
    verdict_rules.verdicts,
    loss_rules.loss_pattern,
    loss_rules.reordering_extent,
    limit_rules.retransmission_cost,
    flow_rules.icmp_errors,
    connection_rules.fragmentation_needed,
    fragment_rules.loss_amplified,  # says why, and so comes before what it costs as much as
    fragment_rules.datagrams_incomplete,
    fragment_rules.fragmentation_overhead,
    connection_rules.ecn_ignored,
    connection_rules.keep_alives_unanswered,
    connection_rules.mss_clamped,
    connection_rules.small_blocks,
    queue_rules.jitter,
    queue_rules.bursts,
    queue_rules.fairness,
    wire_rules.wire_full,
    limit_rules.path_or_window,
    limit_rules.scaling_missing,
    limit_rules.slow_start,
    limit_rules.sender_idle,
)


def rank(finding: Finding) -> tuple[int, bool, float]:
    """Errors, then warnings, then the rest; within those the capture's own first, if they matter, then what costs most."""
    of_capture = finding.scope == "capture" and finding.impact != HARMLESS
    return SEVERITIES.index(finding.severity), not of_capture, -finding.impact


def rest_of(rest: Sequence[Finding]) -> Finding:
    """Findings of one code that are not shown one by one, in sum."""
    flows, units = sorted({one.flow for one in rest if one.flow is not None}), {one.cost_unit for one in rest}
    adds_up = units <= SUMMED and all(one.cost is not None for one in rest)
    shown = ", ".join(map(str, flows[:FLOWS_NAMED])) + (", …" if len(flows) > FLOWS_NAMED else "")
    return Finding(
        *(rest[0].code, min((one.severity for one in rest), key=SEVERITIES.index), "flow"),
        f"{plural(len(rest), 'more transfer')} likewise.",
        "See their columns in the directions table.",
        cost=sum(one.cost or 0.0 for one in rest) if adds_up else None,
        cost_unit=rest[0].cost_unit if adds_up else None,
        evidence=f"{'flow' if len(flows) == 1 else 'flows'} {shown}",
    )


def summed_up(found: Iterable[Finding]) -> Iterator[Finding]:
    """Of each code the first few about single flows, and the others in sum."""
    by_code: dict[str, list[Finding]] = {}
    for finding in found:
        by_code.setdefault(finding.code, []).append(finding)
    for members in by_code.values():
        single = [one for one in members if one.flow is not None and one.scope == "flow"]
        hidden = sorted(single, key=rank)[SHOWN:]
        left_out = set(hidden)
        yield from (one for one in members if one not in left_out)
        if hidden:
            yield rest_of(hidden)


def find(trace: Trace) -> list[Finding]:
    """All findings, the gravest and costliest first; those that cost the same in RULES' order."""
    found = sorted(summed_up(finding for rule in RULES for finding in rule(trace)), key=rank)
    odd_counts.forget(trace)
    return found
