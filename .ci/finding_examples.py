# SPDX-License-Identifier: Apache-2.0
"""The example of each finding in docs/findings.md: a named capture, and the sentence and cost that the rules give for it.

python .ci/finding_examples.py writes the captures in sample_pcaps/findings/. A finding without an entry in CAPTURES has the
capture of its name in that folder.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import wiretale
from wiretale.analyzer.findings.registry import RULES, find
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.reports.phrases import cost_text

ROOT = Path(__file__).parents[1]
SAMPLES, SCENARIOS = ROOT / "sample_pcaps", ROOT / "tests" / "scenarios"
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("support", "support/models", "scenarios")]

#: findings, and the sample or the scenario that shows them; a sample has its suffix
CAPTURES = {
    "capture-damaged": "damaged.pcap",
    "damaged-packets": "damage/damaged_segment",
    "capture-dropped": "capture_drops.pcapng",
    "capture-missed": "capture_drops.pcapng",
    "mirror-duplicates": "mirror_router.pcap",
    "offload": "super_segments.pcap",
    "interrupted": "tcp_losses.pcap",
    "filter-refused": "two_interfaces.pcapng",
    "flows-evicted": "vlan_ipv6.pcap",
    "icmp-errors": "two_interfaces.pcapng",
    "timeout-stalls": "go_back_n.pcap",
    "receive-window-limited": "zero_window.pcap",
    "recovery-limited": "tcp_losses.pcap",
    "loss-limited-window": "findings/retransmission-cost.pcap.gz",
    "lost-downstream": "tcp_losses.pcap",
    "lost-upstream": "fast_retransmissions.pcap",
    "never-arrived": "sack/a_hole_that_nothing_fills",
    "suspected-timeout": "lost_tail.pcap",
    "spurious": "reordering.pcap",
    "reordered": "reordering.pcap",
    "reordering-extent": "reordering.pcap",
    "network-duplicates": "network_duplicate.pcap",
    "zero-window": "zero_window.pcap",
    "window-full": "window_full.pcap",
    "blocks-lost": "udp_blocks.pcap",
    "blocks-reordered": "udp_blocks.pcap",
    "blocks-duplicate": "udp_blocks.pcap",
    "head-of-line": "tcp_blocks.pcapng",
    "loss-amplified": "ip_fragments.pcap",
    "datagram-incomplete": "udp_fragments.pcap",
    "fragmentation": "udp_fragments.pcap",
    "time-backward": "partial_capture/the_clock_steps_back",
    "one-way": "partial_capture/only_the_acks_were_captured",
    "headers-cut": "partial_capture/dsack_cut_off",
    "capture-reordered": "partial_capture/ack_stored_before_two_segments",
    "sack-gaps": "partial_capture/three_sack_gaps_without_the_data",
    "syn-unanswered": "open_close/syn_without_an_answer",
    "connection-refused": "open_close/refused_three_times",
    "half-open": "open_close/half_open",
    "syn-lost": "open_close/syn_ack_lost_on_a_long_path",
    "initial-rto-short": "open_close/syn_sooner_than_a_round_trip",
    "accept-deferred": "open_close/defer_accept_for_31_s",
    "reset": "open_close/half_open_and_reset",
    "congestion-marks": "congestion/congestion_marks",
    "keep-alive-unanswered": "window/keep_alives_without_an_answer",
    "retransmission-unlocated": "fast_retransmission/more_gaps_than_are_kept",
    "ambiguous-gap": "partial_capture/begins_with_a_swap_without_evidence",
    "unknown-duplicates": "duplicate/one_ack_copied_at_once",
}
#: the options of analyze() that an example needs, and their name on the command line
OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "filter-refused": ({"filter": "ether host 02:00:00:00:00:01"}, " with `--filter 'ether host 02:00:00:00:00:01'`"),
    "flows-evicted": ({"max_flows": 2}, " with `--max-flows 2`"),
    "interrupted": ({}, ", interrupted at its end"),
}
#: sentences about captures of 4,001,000 rows, which take too long to make each time (finding_captures.HUGE)
RECORDED = {
    "blocks-dropped": "The blocks table has no rows for 1,000 blocks, because it is full; counters are complete.",
}


def scenario_files(name: str, folder: Path) -> list[Path]:
    """Writes the capture of a scenario in its first variant."""
    scenario, wire = importlib.import_module("scenario"), importlib.import_module("scenario_wire")
    packets = scenario.read_scenario(SCENARIOS / f"{name}.txt", SCENARIOS)
    address, _, writer = next(packets.variants()).partition(" ")
    written: list[Path] = wire.WRITERS[writer or "pcap"](scenario.captured(packets, address), folder)
    return written


def label_of(code: str) -> str:
    """Returns the path of the capture, as the documents name it, with the options."""
    name = CAPTURES.get(code, f"findings/{code}.pcap.gz")
    path = f"sample_pcaps/{name}" if ".pcap" in name else f"tests/scenarios/{name}.txt"
    made = importlib.import_module("finding_captures")
    if code in made.LARGE or code in made.HUGE:
        path = "tests/support/finding_captures.py"
    return f"`{path}`{OPTIONS.get(code, ({}, ''))[1]}"


def has_capture(code: str) -> bool:
    """Returns whether a capture is known that shows a finding; test_finding_examples.py requires one."""
    made = importlib.import_module("finding_captures")
    return code in CAPTURES or code in made.CAPTURES or code in made.LARGE


def trace_of(code: str, folder: Path) -> wiretale.Trace:
    """Returns the trace of the capture of a code."""
    large = importlib.import_module("finding_captures").LARGE
    name = CAPTURES.get(code, f"findings/{code}.pcap.gz")
    if code in large:
        files = [large[code](folder / "capture.pcap")]
    else:
        files = [SAMPLES / name] if ".pcap" in name else scenario_files(name, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wiretale.DamagedInputWarning)  # the example of a damaged capture
        trace = wiretale.analyze(*files, **OPTIONS.get(code, ({}, ""))[0])
    trace.interrupted = code == "interrupted"
    return trace


@cache
def findings_of(code: str) -> tuple[Any, ...]:
    """Returns all findings of the capture of a code."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(find(Transfers(trace_of(code, Path(folder)))))


def example_of(code: str) -> dict[str, str] | None:
    """Returns capture, severity, cost and sentence of the first finding of a code; None if no capture is known."""
    if code in RECORDED:
        return {"capture": f"{label_of(code)}, run by hand", "severity": "info", "cost": "", "sentence": RECORDED[code]}
    if not has_capture(code):
        return None
    name = ROOT.as_posix() + "/"
    shown_finding = next((finding for finding in findings_of(code) if finding.code == code), None)
    if shown_finding is None:
        raise SystemExit(f"the capture of {code} ({label_of(code)}) does not show it")
    sentence = shown_finding.sentence.replace(name, "")
    cost = cost_text(shown_finding._asdict())
    return {"capture": label_of(code), "severity": shown_finding.severity, "cost": cost, "sentence": sentence}


def examples() -> dict[str, dict[str, str]]:
    """Returns the examples of all findings that have one."""
    return {code: example for code in RULES if (example := example_of(code))}


if __name__ == "__main__":
    importlib.import_module("finding_captures").write_all()
