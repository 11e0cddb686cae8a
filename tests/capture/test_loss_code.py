# SPDX-License-Identifier: Apache-2.0
"""The exit code and the last line of wiretale-capture after packets were lost at each stage."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from capture_link import ORDINARY, UNWRITTEN, CaptureLink, Daemon, StatusClient, total
from processes import small_disk
from wiretale.analyzer.units import show_share

pytestmark = pytest.mark.xdist_group("capture")

PACKETS = 40_000
EXCEEDED = 1
#: Options and the exit code, if the disk, or the kernel, drops more than 1% of the packets, but not all.
DISK_CODES = [
    ("", UNWRITTEN),
    ("--max-loss 0", EXCEEDED),
    ("--max-loss 1% -q", EXCEEDED),
    ("--max-loss 100", 0),
]
KERNEL_CODES = [("", 0), ("-q --max-loss 1", EXCEEDED), ("--max-loss 99.9", 0)]


def check_last_line(daemon: Daemon, code: int) -> None:
    """The number and share of lost packets, and the limit that they exceed."""
    counts = total(daemon.messages())
    lost = sum(count for name, count in counts.items() if name.startswith("dropped_"))
    last = daemon.messages().splitlines()[-1]
    assert lost > PACKETS / 100 and f"; lost {lost:,} of {PACKETS:,} ({show_share(lost, PACKETS)})" in last
    assert ("more than --max-loss" in last) == (code == EXCEEDED)


@pytest.mark.parametrize("options, code", DISK_CODES)
def test_a_full_disk_has_an_exit_code(link: CaptureLink, tmp_path: Path, options: str, code: int) -> None:
    with (
        small_disk(tmp_path / "disk", f"size=1M,mode=755,uid={ORDINARY},gid={ORDINARY}") as disk,
        link.daemon(*options.split(), into=disk, watched=True) as daemon,
    ):
        link.send(PACKETS)
        client = StatusClient(link.status)
        client.wait(lambda status: status["received"] == PACKETS, "all has come")
        client.close()
        assert daemon.stop() == code  # what waits for the disk is dropped at the end
    check_last_line(daemon, code)


@pytest.mark.parametrize("options, code", KERNEL_CODES)
def test_packets_that_the_kernel_dropped_have_an_exit_code(link: CaptureLink, options: str, code: int) -> None:
    with link.daemon(*options.split(), "--ring-buffer", "1MiB", watched=True) as daemon:
        link.wait_counted()
        daemon.process.send_signal(signal.SIGSTOP)
        link.send(PACKETS)
        daemon.process.send_signal(signal.SIGCONT)
        link.wait_counted(received=1)
        assert daemon.stop() == code
    check_last_line(daemon, code)
    assert total(daemon.messages())["dropped_disk"] == 0


def test_a_capture_without_loss_keeps_any_limit(link: CaptureLink) -> None:
    daemon = link.records(100, "--max-loss", "0", watched=True)
    assert daemon.messages().endswith("; none lost\n")
