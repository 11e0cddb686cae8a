# SPDX-License-Identifier: Apache-2.0
"""check(): the conditions of `wiretale analyze --fail-if` in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from wiretale.analyzer.diff.trace_condition import Checks, check_trace, parse_condition
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.options import NO_OPTIONS, AnalysisKeywords, AnalysisOptions
from wiretale.analyzer.trace import Trace, analyze_whole

if TYPE_CHECKING:
    from wiretale.analyzer.capture_paths import Paths


def check(capture: Trace | Paths, *conditions: str, **options: Unpack[AnalysisKeywords]) -> Checks:
    """Checks conditions such as "lost>0" or "cause=policer" on a Trace, or on a capture, for which it takes the options of
    analyze(). `wiretale analyze --help` has what they can name. Raises UsageError if one is wrong.

    >>> import wiretale
    >>> print(wiretale.check("sample_pcaps/tcp_losses.pcap", "lost>0", "failed>0"))
    lost>0: FAILED (2)
    failed>0: passed (0)
    """
    parsed, checked = list(map(parse_condition, conditions)), AnalysisOptions.of(options)
    if isinstance(capture, Trace) and checked != NO_OPTIONS:
        raise UsageError("expected one Trace without options of analyze(), or a capture")
    return check_trace(capture if isinstance(capture, Trace) else analyze_whole(capture, options=checked), parsed)
