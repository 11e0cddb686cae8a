# SPDX-License-Identifier: Apache-2.0
"""What the three analyzers say of the frames of a capture, in one set of words."""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretale.analyzer.dissector import Dissector, Flagged
from wiretale.analyzer.trace import Trace

Row = dict[str, Any]
AGAIN = {
    "fast_retransmission": "fast",
    "timeout_retransmission": "timeout",
    "probe_retransmission": "probe",
    "retransmission": None,
}
# Wireshark names no cause but fast; what it calls a plain retransmission is taken for a timeout's.
WIRESHARK_AGAIN = {"fast_retransmission": "fast", "retransmission": "timeout", "spurious_retransmission": None}


@dataclass
class Claim:
    """What is said of one frame."""

    whats: set[str] = field(default_factory=set)  # again, late, copy, mirror, ambiguous, suspected, unseen, gap
    cause: str | None = None
    place: str | None = None
    spurious: bool = False


WORDS = {
    "out_of_order": "late",
    "ambiguous": "ambiguous",
    "network_duplicate": "copy",
    "mirror_duplicate": "mirror",
    "suspected_timeout": "suspected",
    "idle_gap": "suspected",
    "acked_unseen_segment": "unseen",
    "block_out_of_order": "datagram late",
    "block_duplicate": "datagram copy",
}


def wiretale_claims(trace: Trace) -> dict[int, Claim]:
    """From the events table."""
    claims: dict[int, Claim] = defaultdict(Claim)
    for row in trace.events.rows():
        claim = claims[row["frame"]] if row["kind"] in WORDS or row["kind"] in AGAIN else None
        if claim is None:
            continue
        if row["kind"] in AGAIN:
            claim.whats.add("again")
            claim.cause = AGAIN[row["kind"]]
            claim.place = None if row["spurious"] else row["place"]
            claim.spurious = bool(row["spurious"])
        else:
            claim.whats.add(WORDS[row["kind"]])
    return dict(claims)


def wireshark_flags(path: Path) -> dict[int, Flagged]:
    """As wiretale verify has them."""
    return dict(Dissector().frames(str(path)))


def wireshark_claims(flags: Mapping[int, Flagged], openers: Mapping[int, int | None]) -> dict[int, Claim]:
    """From tcp.analysis.*: sent again in a gap that was flagged means lost before, any other lost behind."""
    claims = {}
    for frame, flagged in flags.items():
        claim = Claim()
        for word in flagged.words & WIRESHARK_AGAIN.keys():
            claim.whats.add("again")
            claim.cause = WIRESHARK_AGAIN[word]
            claim.spurious = word == "spurious_retransmission"
        if "again" in claim.whats and not claim.spurious:
            opener = openers.get(frame)
            gap = opener is not None and opener in flags and "gap" in flags[opener].words
            claim.place = "upstream" if gap else "downstream"
        claim.whats |= {"late"} & {WORDS.get(word, "") for word in flagged.words}
        claim.whats |= {WORDS.get(word, word) for word in flagged.words & {"acked_unseen_segment", "gap"}}
        claims[frame] = claim
    return claims


TCPTRACE = {"again": "rexmt data pkts", "late": "outoforder pkts"}


def tcptrace_counts(path: Path) -> dict[str, int]:
    """Of all connections, from the initiator on: tcptrace tells counts alone."""
    done = subprocess.run(
        ["tcptrace", "-n", "-lr", os.path.abspath(path)], capture_output=True, text=True, errors="replace", timeout=60
    )
    return {
        what: sum(int(count) for count in re.findall(rf"^\s*{label}:\s+(\d+)", done.stdout, re.M))
        for what, label in TCPTRACE.items()
    }
