# SPDX-License-Identifier: Apache-2.0
"""Decides each difference that `wiretale verify` lists by the log of the path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from score.claims import AGAIN
from score.labels import Label
from wiretale.analyzer.trace import Trace
from wiretale.analyzer.verify.file import compare_file
from wiretale.analyzer.verify.tshark import Dissector, Flagged

SIMPLE = {"out_of_order": "reordered", "network_duplicate": "duplicate", "mirror_duplicate": "mirror"}
OUTCOMES = ("wiretale", "Wireshark", "both", "neither", "left open", "not settled")


def is_right_retransmission(cause: str | None, spurious: bool, label: Label) -> bool:
    """Returns whether a claimed retransmission is one, with a cause that fits if the claim names one."""
    if label.what != "retransmission" or (spurious and label.spurious is False):
        return False
    return not cause or not label.causes or cause in label.causes


def is_right(verdict: str | None, spurious: bool, label: Label) -> bool | None:
    """Returns whether a verdict is right, None if the log does not decide it."""
    if verdict in AGAIN:
        return is_right_retransmission(AGAIN[verdict], spurious, label)
    if verdict == "spurious_retransmission":
        return label.spurious if label.what == "retransmission" else False
    if verdict in SIMPLE:
        return label.what == SIMPLE[verdict]
    if verdict == "acked_unseen_segment":
        return label.unseen > 0
    if verdict is None:
        return (label.what in ("new", "ack") and not label.unseen) or (None if not label.decidable else False)
    return None


def outcome(wiretale: bool | None, wireshark: bool | None, ambiguous: bool) -> str:
    if ambiguous:
        return "left open"
    if wiretale is None or wireshark is None:
        return "not settled"
    return {(True, False): "wiretale", (False, True): "Wireshark", (True, True): "both"}.get(
        (wiretale, wireshark), "neither"
    )


@dataclass
class Settled:
    """Differences by reason, verdicts and outcome."""

    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)  # reason, both verdicts, outcome
    left_out: Counter[str] = field(default_factory=Counter)  # verdicts on frames without a label

    def take(self, trace: Trace, path: Path, flags: Mapping[int, Flagged], labels: Mapping[int, Label]) -> None:
        replayed: Any = SimpleNamespace(
            problem=None, frames=lambda path: iter(flags.items())
        )  # of an earlier run of tshark
        comparison = compare_file(trace, str(path), cast(Dissector, replayed), None)
        for difference in comparison.differences:
            label = labels.get(difference.frame)
            verdict, wireshark = difference.wiretale, difference.wireshark
            if label is None:
                self.left_out[verdict or wireshark or ""] += 1
                continue
            spurious = bool(difference.spurious)
            settled = outcome(
                is_right(verdict, spurious, label),
                is_right(wireshark, False, label),
                verdict == "ambiguous",
            )
            claim = f"{verdict or '–'}{', spurious' if spurious else ''}"
            self.counts[difference.rule or "no rule", claim, wireshark or "–", settled] += 1
