# SPDX-License-Identifier: Apache-2.0
"""What is odd in a capture, what it costs and what to do: a table of rules over the tables.

A rule is a function from a Trace to findings, listed in RULES. It reads columns, never packets, and claims nothing
that the tables leave null. A healthy capture gives no warning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from wiretale.analyzer import capture_rules, flow_rules, fragment_rules, verdict_rules
from wiretale.analyzer.finding import Finding, Rule

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SEVERITIES = ("error", "warning", "info")

RULES: tuple[Rule, ...] = (
    capture_rules.capture_damaged,
    capture_rules.interrupted,
    capture_rules.capture_drops,
    capture_rules.capture_missed,
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
    flow_rules.resets,
    verdict_rules.verdicts,
    flow_rules.icmp_errors,
    fragment_rules.datagrams_incomplete,
    fragment_rules.fragmentation_overhead,
)


def find(trace: Trace) -> list[Finding]:
    """All findings: errors, then warnings, then the rest; within those the capture's own first, in RULES' order."""
    found: Iterable[Finding] = (finding for rule in RULES for finding in rule(trace))
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
