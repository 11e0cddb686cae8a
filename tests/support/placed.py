# SPDX-License-Identifier: Apache-2.0
"""Findings with what shows them in one row, for tests: the text of their evidence, flow, and first and last frame."""

from __future__ import annotations

from typing import Any

import wiretale
from wiretale.analyzer.findings.evidence import evidence_of
from wiretale.reports.phrases import with_evidence


def placed(trace: wiretale.Trace) -> list[dict[str, Any]]:
    """Findings with the text of their evidence, its flow, first and last frame, and `named`: role and frame of other packets."""
    rows = []
    for row, evidence in zip(with_evidence(trace, trace.findings.rows()), evidence_of(trace), strict=True):
        first, last = evidence.ends
        place = {
            "cited_flow": evidence.flow,
            "capture": first and first["capture"],
            "first_frame": first and first["frame"],
            "last_frame": last and last["frame"],
            "named": [(packet["role"], packet["frame"]) for packet in evidence.named],
        }
        rows.append({**row, **place})
    return rows
