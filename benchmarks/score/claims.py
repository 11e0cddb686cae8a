# SPDX-License-Identifier: Apache-2.0
"""Claims of the three analyzers about the frames of a capture, in one vocabulary."""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretale.analyzer.trace import Trace
from wiretale.analyzer.verify.tshark import Dissector, Flagged

Row = dict[str, Any]
AGAIN = {
    "fast_retransmission": "fast",
    "timeout_retransmission": "timeout",
    "probe_retransmission": "probe",
    "retransmission": None,
}
# Wireshark names one cause, fast; its plain retransmissions are counted as claims of a timeout.
WIRESHARK_AGAIN = {"fast_retransmission": "fast", "retransmission": "timeout", "spurious_retransmission": None}


@dataclass
class Claim:
    """Claims about one frame."""

    verdicts: set[str] = field(default_factory=set)  # words of Label.what, and ambiguous, suspected, unseen, gap
    cause: str | None = None
    place: str | None = None
    spurious: bool = False


WORDS = {
    "out_of_order": "reordered",
    "ambiguous": "ambiguous",
    "network_duplicate": "duplicate",
    "mirror_duplicate": "mirror",
    "suspected_timeout": "suspected",
    "idle_gap": "suspected",
    "acked_unseen_segment": "unseen",
    "block_out_of_order": "datagram reordered",
    "block_duplicate": "datagram duplicate",
}


def wiretale_claims(trace: Trace) -> dict[int, Claim]:
    claims: dict[int, Claim] = defaultdict(Claim)
    for row in trace.events.rows():
        if row["kind"] in AGAIN:
            claim = claims[row["frame"]]
            claim.verdicts.add("retransmission")
            claim.cause = AGAIN[row["kind"]]
            claim.place = None if row["spurious"] else row["place"]
            claim.spurious = bool(row["spurious"])
        elif row["kind"] in WORDS:
            claims[row["frame"]].verdicts.add(WORDS[row["kind"]])
    return dict(claims)


def wireshark_flags(path: Path) -> dict[int, Flagged]:
    return dict(Dissector().frames(str(path)))


def wireshark_claims(flags: Mapping[int, Flagged], openers: Mapping[int, int | None]) -> dict[int, Claim]:
    """Maps tcp.analysis flags. A retransmission is lost upstream if its gap was flagged as a lost segment, else downstream."""
    claims = {}
    for frame, flagged in flags.items():
        claim = Claim()
        for word in flagged.words & WIRESHARK_AGAIN.keys():
            claim.verdicts.add("retransmission")
            claim.cause = WIRESHARK_AGAIN[word]
            claim.spurious = word == "spurious_retransmission"
        if "retransmission" in claim.verdicts and not claim.spurious:
            opener = openers.get(frame)
            gap = opener is not None and opener in flags and "gap" in flags[opener].words
            claim.place = "upstream" if gap else "downstream"
        claim.verdicts |= {"reordered"} & {WORDS.get(word, "") for word in flagged.words}
        claim.verdicts |= {WORDS.get(word, word) for word in flagged.words & {"acked_unseen_segment", "gap"}}
        claims[frame] = claim
    return claims


TCPTRACE = {"retransmission": "rexmt data pkts", "reordered": "outoforder pkts"}


def tcptrace_counts(path: Path) -> dict[str, int]:
    """Returns counts over all connections and directions; tcptrace reports no frames."""
    done = subprocess.run(
        ["tcptrace", "-n", "-lr", os.path.abspath(path)], capture_output=True, text=True, errors="replace", timeout=60
    )
    return {
        what: sum(int(count) for count in re.findall(rf"^\s*{label}:\s+(\d+)", done.stdout, re.M))
        for what, label in TCPTRACE.items()
    }
