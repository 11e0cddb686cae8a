# SPDX-License-Identifier: Apache-2.0
"""The frames that findings cite show the thing in tshark's dissection, over all samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from checkout import CAPTURES, SAMPLES
from placed import placed
from tshark_fields import fields_of

pytestmark = needs.TSHARK

FILES = [*CAPTURES, *sorted((SAMPLES / "findings").iterdir())]
Frame = dict[str, str]
#: of a finding's row, and of its first and last frame
Shows = Callable[[dict[str, Any], Frame, Frame], bool]

AGAIN = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
ANALYSIS = (*AGAIN, "window_full", "ack_lost_segment", "bytes_in_flight", "ack_rtt", "acks_frame")
HEADERS = ("frame.len", "tcp.len", "tcp.flags.syn", "tcp.flags.ack", "tcp.window_size", "tcp.options.mss_val")
OTHERS = (
    "tcp.options.wscale.shift",
    "ip.len",
    "ip.flags.mf",
    "ip.frag_offset",
    "ip.dsfield.ecn",
    "icmp.type",
    "dns.flags.rcode",
    "tls.alert_message",
)
FIELDS = [*(f"tcp.analysis.{name}" for name in ANALYSIS), *HEADERS, *OTHERS, "dns.time"]
SYN = ("1", "True")


def analysed(frame: Frame, *names: str) -> bool:
    return any(frame[f"tcp.analysis.{name}"] for name in names)


def number(frame: Frame, name: str) -> float:
    return float(frame[name] or 0)


def waited(row: dict[str, Any]) -> float:
    """Seconds between first and last frame."""
    return float(row["last_ns"] - row["first_ns"]) / 1e9


def is_syn(row: dict[str, Any], first: Frame, last: Frame) -> bool:
    return first["tcp.flags.syn"] in SYN and first["tcp.flags.ack"] not in SYN


def is_again(row: dict[str, Any], first: Frame, last: Frame) -> bool:
    return analysed(first, *AGAIN)


def holds_data(row: dict[str, Any], first: Frame, last: Frame) -> bool:
    return number(first, "tcp.len") > 0 and number(last, "tcp.len") > 0


def is_fragment(row: dict[str, Any], first: Frame, last: Frame) -> bool:
    return all(
        fields_row["ip.flags.mf"] in SYN or number(fields_row, "ip.frag_offset") > 0 for fields_row in (first, last)
    )


def is_acked_slowly(row: dict[str, Any], first: Frame, last: Frame) -> bool:
    """The last frame acknowledges the first one, after at least the round trip under load that the sentence names."""
    acked = int(last["tcp.analysis.acks_frame"] or 0) == row["first_frame"]
    return (
        acked
        and number(last, "tcp.analysis.ack_rtt") == pytest.approx(waited(row), abs=1e-6)
        and waited(row) >= row["cost"]
    )


SHOWS: dict[str, Shows] = {
    "zero-window": lambda row, first, last: first["tcp.window_size"] == "0",
    "window-full": lambda row, first, last: analysed(first, "window_full"),
    "lost-downstream": is_again,
    "lost-upstream": is_again,
    "spurious": is_again,
    "reordered": is_again,
    "recovery-limited": is_again,
    "retransmission-cost": is_again,
    "loss-limited-window": is_again,
    "timeout-stalls": lambda row, first, last: (
        waited(row) > 0.1
        and (analysed(last, *AGAIN) or ("suspected" in row["sentence"] and holds_data(row, first, last)))
    ),
    "capture-missed": lambda row, first, last: analysed(first, "ack_lost_segment"),
    "bufferbloat": is_acked_slowly,
    "delayed-ack": lambda row, first, last: holds_data(row, first, last) and 0.03 <= waited(row) < 0.3,
    "sender-idle": lambda row, first, last: (
        holds_data(row, first, last)
        and first["tcp.len"] != ""
        and last["tcp.analysis.bytes_in_flight"] == last["tcp.len"]
    ),
    "send-buffer-limited": holds_data,
    "path-limited": holds_data,
    "receive-window-limited": holds_data,
    "slow-start": lambda row, first, last: is_syn(row, first, last) and number(last, "tcp.len") > 0,
    "window-scaling-off": lambda row, first, last: is_syn(row, first, last) and not first["tcp.options.wscale.shift"],
    "mss-clamped": lambda row, first, last: 0 < number(first, "tcp.options.mss_val") <= 1400,
    "scan": is_syn,
    "fragmentation": is_fragment,
    "datagram-incomplete": is_fragment,
    "loss-amplified": is_fragment,
    "offload": lambda row, first, last: number(first, "ip.len") > 9216 or first["ip.len"] == "0",
    "lengths-cut": lambda row, first, last: number(first, "ip.len") > number(first, "frame.len"),
    "icmp-errors": lambda row, first, last: first["icmp.type"] in ("3", "11"),
    "congestion-marks": lambda row, first, last: first["ip.dsfield.ecn"] == "3",
    "ecn-ignored": lambda row, first, last: first["ip.dsfield.ecn"] == "3",
    "tls-alert": lambda row, first, last: first["tls.alert_message"] != "" or "encrypted" in row["sentence"],
    "path-mtu": lambda row, first, last: first["icmp.type"] == "3",
    "dns-failed": lambda row, first, last: number(last, "dns.flags.rcode") > 0,
    "dns-slow": lambda row, first, last: number(last, "dns.time") == pytest.approx(waited(row), abs=1e-6),
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_cited_frames_show_it(path: Path) -> None:
    rows = [row for row in placed(wiretale.analyze(path)) if row["code"] in SHOWS]
    if not rows:
        return
    frames = fields_of(path, {row[f"{end}_frame"] for row in rows for end in ("first", "last")}, FIELDS)
    for row in rows:
        first, last = frames[row["first_frame"]], frames[row["last_frame"]]
        assert SHOWS[row["code"]](row, first, last), (row["code"], row["sentence"], first, last)
