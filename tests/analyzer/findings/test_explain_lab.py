# SPDX-License-Identifier: Apache-2.0
"""Real transfers over a real bottleneck: the limit of each is known, and wiretale must name it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import wiretale
from dropping_path import PORT, RECEIVER, DroppingPath
from traffic_ends import undisturbed
from wiretale.analyzer.findings.explain import Explained, explain

pytestmark = pytest.mark.xdist_group("live")

SECONDS = "3"
FAST, SLOW = 40, 5  # Mb/s
SHORT, DEEP = 30, 300  # packets of queue


@pytest.fixture(scope="module")
def path(path: DroppingPath) -> DroppingPath:
    path.run(
        path.router, *["tc", "qdisc", "add", "dev", "right", "parent", "1:10", "handle", "10:", "pfifo", "limit", "30"]
    )
    return path


class Told:
    """wiretale's explanation of the larger flow that was captured at one end."""

    def __init__(self, file: Path) -> None:
        trace = wiretale.analyze(file)
        self.first: Explained = max(explain(trace), key=lambda explained: explained.transfer.row["payload_bytes"])
        flow = self.first.transfer.row["flow"]
        rows = [row for row in trace.findings.rows() if row["flow"] == flow and row["scope"] != "capture"]
        self.codes = [row["code"] for row in rows]
        self.warned = {row["code"] for row in rows if row["severity"] != "info"}
        self.sentences = {row["code"]: row["sentence"] for row in rows}


def transfer(
    path: DroppingPath, folder: Path, rate: int, queue: int, *options: str, dropped: int = 0
) -> tuple[Told, Told]:
    """iperf3 over a link of this rate and queue, as explained at the sender and at the receiver."""
    path.run(
        path.router, *f"tc class change dev right parent 1: classid 1:10 htb rate {rate}mbit burst 2k cburst 2k".split()
    )
    path.run(path.router, *f"tc qdisc change dev right parent 1:10 handle 10: pfifo limit {queue}".split())
    path.disturb("meta length > 400", dropped=dropped)
    client = ["iperf3", "-c", RECEIVER, "-p", PORT, "-t", SECONDS, *options]
    with path.capturing_both(folder) as ends:
        path.transfer(["iperf3", "-s", "-4", "-1", "-p", PORT], client)
    return Told(ends[0]), Told(ends[1])


def test_a_deep_queue_is_found_at_the_sender(path: DroppingPath, tmp_path: Path) -> None:
    sender, receiver = transfer(path, tmp_path, SLOW, DEEP)
    assert "bufferbloat" in sender.warned
    assert "the path's rate" in sender.first.headline
    assert "bufferbloat" not in receiver.codes  # the queue is upstream of it


def test_a_link_with_room_has_no_queue(path: DroppingPath, tmp_path: Path) -> None:
    sender, receiver = transfer(path, tmp_path, FAST, DEEP, "-b", "2M", "-l", "1000")
    assert "bufferbloat" not in sender.warned
    assert all("the sending application" in side.first.headline for side in (sender, receiver))


@pytest.mark.alone
def test_a_small_receive_buffer_over_a_full_link_limits_nothing(path: DroppingPath, tmp_path: Path) -> None:
    """Without delay a few kB fill the link, so a larger buffer would lengthen the queue alone."""

    def check() -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        sender, _ = transfer(path, folder, FAST, DEEP, "-w", "8K")
        assert "receive-window-limited" not in sender.codes and "the path's rate" in sender.first.headline
        assert sender.first.transfer.row["goodput_bps"] > 0.85e6 * FAST

    undisturbed(check, tries=3)  # a receiver that is held up reads too late to keep the link full


@pytest.mark.alone
def test_an_offer_above_the_rate_is_found_at_the_receiver(path: DroppingPath, tmp_path: Path) -> None:
    def check() -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        sender, receiver = transfer(path, folder, SLOW, SHORT, "-u", "-b", "10M", "-l", "1200")
        assert receiver.codes[0] == "udp-above-path", receiver.sentences
        assert "udp-above-path" not in sender.codes  # before the link nothing is lost

    undisturbed(check, tries=3)  # a sender that is held up offers bursts instead of a rate


def test_random_loss_is_found_with_its_place(path: DroppingPath, tmp_path: Path) -> None:
    sender, receiver = transfer(path, tmp_path, FAST, DEEP, dropped=20)
    assert "lost-downstream" in sender.warned and "lost-upstream" in receiver.warned
    assert "lost-upstream" not in sender.codes and "udp-above-path" not in receiver.codes
    assert "periodic" not in sender.sentences.get("loss-pattern", "") + receiver.sentences.get("loss-pattern", "")


@pytest.mark.alone
def test_a_queue_that_overflows_loses_no_packets_at_random(path: DroppingPath, tmp_path: Path) -> None:
    def check() -> None:
        sender, _ = transfer(path, Path(tempfile.mkdtemp(dir=tmp_path)), 20, 100)
        assert "loss-pattern" in sender.sentences, sender.sentences
        words = sender.sentences["loss-pattern"]
        assert "is tail drop" in words or "is bursty" in words

    undisturbed(check, tries=3)  # a sender that is held up does not fill the queue
