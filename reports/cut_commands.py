# SPDX-License-Identifier: Apache-2.0
"""The command that copies the packets of a finding, for the terminal and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wiretale.analyzer.options import NO_OPTIONS
from wiretale.analyzer.trace import is_lasting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretale.analyzer.findings.evidence import Evidence
    from wiretale.analyzer.trace import Trace

AROUND = "0.1"  # seconds of traffic before and after the packets of a finding that its command copies


def numbers_are_usual(trace: Trace) -> bool:
    """Returns whether flows have the numbers that an analysis without options gives, as `wiretale cut` does."""
    usual = trace.options._replace(max_flows=NO_OPTIONS.max_flows, jobs=None) == NO_OPTIONS
    return usual and len(trace.flows) <= trace.options.max_flows


def cut_start(trace: Trace, files: Sequence[str]) -> dict[str, Any]:
    """Returns the first words of a cut of these files, empty if they cannot be read again, and whether flows may be named."""
    words = ["wiretale cut", *files] if all(map(is_lasting, trace.inputs)) else []
    return {"command": " ".join(words), "flows": numbers_are_usual(trace)}


def cut_of_finding(trace: Trace, start: dict[str, Any], number: int, evidence: Evidence) -> str | None:
    """Returns the command that copies the packets of finding `number` of the table, with the words of cut_start(); None if
    it concerns no packets, if the input cannot be read again, or if the analysis gave flows and findings other numbers."""
    if not ((evidence.frames or evidence.flows) and start["command"] and start["flows"]) or trace.interrupted:
        return None
    return f"{start['command']} --finding {number} --around {AROUND} --annotate -o finding-{number}.pcapng"
