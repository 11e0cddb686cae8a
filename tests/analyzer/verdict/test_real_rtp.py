# SPDX-License-Identifier: Apache-2.0
"""Real RTP streams of GStreamer over a path that drops and reorders: wiretale's counts against the path's and the sender's.

The recorded ones (tests/recorded) are of the same streams, for where there is no GStreamer; their truth stands beside
them: what the sender's capture and nftables counted.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scapy.utils import RawPcapReader

import needs
import wiretale
from dropping_path import ON_ONE, PORT, RECEIVER, DroppingPath
from numbered_payloads import jitter_of
from processes import wait_until

pytestmark = pytest.mark.xdist_group("counted")

LAUNCH = "gst-launch-1.0"
RECORDED = Path(__file__).parent / "recorded"
UDP_PAYLOAD, IP_PROTOCOL = 14 + 20 + 8, 14 + 9


class Stream(NamedTuple):
    """The pipeline, and its payload."""

    elements: str
    ticks: int  # of its time stamps, a second
    slow: int  # of 1000 packets, those that others overtake


STREAMS = {
    # 5 ms a packet: none overtakes another.
    "speech": Stream(
        "audiotestsrc is-live=true num-buffers=600 samplesperbuffer=40 ! audio/x-raw,rate=8000,channels=1 "
        "! mulawenc ! rtppcmupay max-ptime=5000000",
        8000,
        0,
    ),
    # Some ten packets a picture, one right behind the other.
    "video": Stream(
        "videotestsrc is-live=true num-buffers=25 pattern=snow ! video/x-raw,format=I420,width=320,height=240,framerate=25/1 "
        "! jpegenc ! rtpjpegpay",
        90000,
        60,
    ),
}


class Packet(NamedTuple):
    """As a capture has it."""

    number: int
    ticks: int
    came_ns: int


def packets_of(file: Path) -> list[Packet]:
    """In the order in which they passed, read without wiretale; numbers go on past 2^16."""
    packets: list[Packet] = []
    with RawPcapReader(str(file)) as reader:
        for data, meta in reader:
            words = data[UDP_PAYLOAD:]
            if data[IP_PROTOCOL] != 17 or len(words) < 12 or words[0] >> 6 != 2:
                continue
            number, ticks = struct.unpack_from(">HI", words, 2)
            before = packets[-1].number if packets else number
            number = before + (number - before + 2**15) % 2**16 - 2**15
            packets.append(Packet(number, ticks, (meta.sec * 10**6 + meta.usec) * 1000))
    return packets


def jitter_ns(packets: list[Packet], ticks: int) -> float:
    """RFC 3550 section 6.4.1, in floating point."""
    passed, transits = 0, [0.0]
    for before, after in pairwise(packets):
        passed += (after.ticks - before.ticks + 2**31) % 2**32 - 2**31
        transits.append(after.came_ns - packets[0].came_ns - passed * 10**9 / ticks)
    return jitter_of(transits)


def truth_of(sent: list[Packet], came: list[Packet], ticks: int, dropped: int) -> dict[str, Any]:
    """Losses that a capture of `came` can show: none before the first or after the last packet."""
    numbers = [packet.number for packet in came]
    within = [packet.number for packet in sent if min(numbers) <= packet.number <= max(numbers)]
    assert len(sent) - len(came) == dropped  # both captures have it all
    highest, reordered = -1, 0
    for number in numbers:
        reordered += number < highest
        highest = max(highest, number)
    return {
        "sent": len(sent),
        "dropped": dropped,
        "blocks": len(came),
        "blocks_lost": len(set(within) - set(numbers)),
        "blocks_out_of_order": reordered,
        "jitter_ns": jitter_ns(came, ticks),
    }


def assert_judged(file: Path, truth: dict[str, Any]) -> None:
    trace = wiretale.analyze(file)
    (row,) = [row for row in trace.directions.rows() if row["blocks"] is not None]
    assert trace.flows.rows()[row["flow"]]["application"] == "rtp"
    counts = ("blocks", "blocks_lost", "blocks_out_of_order")
    assert {name: row[name] for name in counts} == {name: truth[name] for name in counts}
    assert (row["blocks_duplicate"], row["block_restarts"]) == (0, 0)
    assert row["jitter_ns"] == pytest.approx(truth["jitter_ns"], rel=1e-3, abs=1000)


@pytest.mark.parametrize("file", sorted(RECORDED.glob("rtp_*.pcap")), ids=lambda file: file.stem)
def test_a_recorded_stream(file: Path) -> None:
    assert file.stat().st_size <= 200_000
    assert_judged(file, json.loads(file.with_suffix(".truth.json").read_text()))


def test_there_are_recorded_streams() -> None:
    assert {file.stem for file in RECORDED.glob("rtp_*.pcap")} == {f"rtp_{name}" for name in STREAMS}


# --- made here


def why_no_stream() -> str | None:
    if not shutil.which(LAUNCH):
        return "needs gstreamer1.0-tools and gstreamer1.0-plugins-good"
    for element in ("rtppcmupay", "mulawenc", "rtpjpegpay", "jpegenc", "videotestsrc", "audiotestsrc", "udpsink"):
        if subprocess.run(["gst-inspect-1.0", "--exists", element], capture_output=True, timeout=60).returncode:
            return f"needs gstreamer1.0-plugins-good: no element {element}"
    return None


@pytest.fixture(scope="module")
def path(path: DroppingPath) -> DroppingPath:
    needs.skip_without(why_no_stream())
    return path


def run_stream(path: DroppingPath, stream: Stream) -> None:
    """From the sender to a receiver that takes it."""
    sink = [LAUNCH, "-q", "udpsrc", f"port={PORT}", "!", "fakesink"]
    receiver = subprocess.Popen(path.inside(path.receiver, *sink), stdout=subprocess.DEVNULL)
    try:
        wait_until(path.listens, "the receiver listens")
        source = [LAUNCH, "-q", *stream.elements.split(), "!", "udpsink", f"host={RECEIVER}", f"port={PORT}"]
        path.run(path.sender, *ON_ONE, *source)
        time.sleep(0.3)  # for packets still in a queue
    finally:
        receiver.send_signal(signal.SIGINT)
        try:
            receiver.wait(timeout=60)
        except subprocess.TimeoutExpired:
            receiver.kill()
            receiver.wait(timeout=60)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_made_here(path: DroppingPath, tmp_path: Path, name: str) -> None:
    stream = STREAMS[name]
    path.disturb(f"udp dport {PORT}", dropped=50, slow=stream.slow)  # fewer than 3 of 500 once in 10^8 times
    with path.capturing_both(tmp_path) as files:
        run_stream(path, stream)
    sent, came = map(packets_of, files)
    truth = truth_of(sent, came, stream.ticks, path.dropped())
    if target := os.environ.get("WIRETALE_KEEP"):
        shutil.copy(files[1], Path(target, f"rtp_{name}.pcap"))
        Path(target, f"rtp_{name}.truth.json").write_text(json.dumps(truth, indent=2) + "\n")
    assert len(sent) > 500 and truth["blocks_lost"] >= 3
    assert (truth["blocks_out_of_order"] > 0) == (stream.slow > 0)
    assert_judged(files[1], truth)
