# SPDX-License-Identifier: Apache-2.0
"""What wiretale verify lists as different, settled by the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from score.labels import Label
from wiretale.analyzer.dissector import Dissector, Flagged
from wiretale.analyzer.trace import Trace
from wiretale.cli.verify import compare_file

CAUSES = {
    "fast_retransmission": "fast",
    "timeout_retransmission": "timeout",
    "probe_retransmission": "probe",
    "retransmission": None,
}
SIMPLE = {"out_of_order": "late", "network_duplicate": "copy", "mirror_duplicate": "mirror"}
OUTCOMES = ("wiretale", "Wireshark", "both", "neither", "left open", "not settled")


class Replay:
    """Flags that tshark has given before, for who would run it once more."""

    problem = None

    def __init__(self, flags: Mapping[int, Flagged]) -> None:
        self.flags = flags

    def frames(self, _: str) -> Iterator[tuple[int, Flagged]]:
        """As Dissector has it."""
        yield from self.flags.items()


def is_right_again(cause: str | None, spurious: bool, label: Label) -> bool:
    """Of a retransmission with its cause, if one is named."""
    if label.what != "again" or (spurious and label.needless is False):
        return False
    return not cause or not label.causes or cause in label.causes


def is_right(verdict: str | None, spurious: bool, label: Label) -> bool | None:
    """Of one verdict; None where the truth does not say."""
    if verdict in CAUSES:
        return is_right_again(CAUSES[verdict], spurious, label)
    if verdict == "spurious_retransmission":
        return label.needless if label.what == "again" else False
    if verdict in SIMPLE:
        return label.what == SIMPLE[verdict]
    if verdict == "acked_unseen_segment":
        return label.unseen > 0
    if verdict is None:
        return (label.what in ("new", "ack") and not label.unseen) or (None if not label.told else False)
    return None


def outcome(ours: bool | None, theirs: bool | None, ambiguous: bool) -> str:
    """Who was right."""
    if ambiguous:
        return "left open"
    if ours is None or theirs is None:
        return "not settled"
    return {(True, False): "wiretale", (False, True): "Wireshark", (True, True): "both"}.get((ours, theirs), "neither")


@dataclass
class Settled:
    """Differences by reason: who was right how often."""

    counts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)  # reason, both verdicts, outcome
    left_out: Counter[str] = field(default_factory=Counter)  # verdicts on what the truth does not tell

    def take(self, trace: Trace, path: Path, flags: Mapping[int, Flagged], labels: Mapping[int, Label]) -> None:
        """One capture."""
        comparison = compare_file(trace, str(path), cast(Dissector, cast(Any, Replay(flags))), None)
        for difference in comparison.differences:
            label = labels.get(difference.frame)
            ours, theirs = difference.wiretale, difference.wireshark
            if label is None:
                self.left_out[ours or theirs or ""] += 1
                continue
            spurious = bool(difference.spurious)
            settled = outcome(is_right(ours, spurious, label), is_right(theirs, False, label), ours == "ambiguous")
            mine = f"{ours or '–'}{', spurious' if spurious else ''}"
            self.counts[difference.rule or "no rule", mine, theirs or "–", settled] += 1
