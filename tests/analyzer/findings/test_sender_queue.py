# SPDX-License-Identifier: Apache-2.0
"""UDP that waits in a queue of its own host, which TCP fills: drawn, and with real hosts and a card of 100 Mb/s."""

from __future__ import annotations

import tempfile
from pathlib import Path
from socket import inet_aton
from typing import Any

import pytest

import needs
import wiretale
from lab_bench import NEEDED
from plain_wire import Wire
from traffic_ends import undisturbed
from transfer_wires import behind_a_transfer

needs.benchmarks()

from studies.lab import study_lab
from studies.shared_card import BUFFER, DATAGRAM, PROFILE, neighbor


def findings_of(file: Path) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in wiretale.analyze(file).findings.rows()}


def with_ttl(wire: Wire, ttl: int) -> Wire:
    wire.packets = [(ms, frame[:22] + bytes([ttl]) + frame[23:]) for ms, frame in wire.packets]
    return wire


def test_a_queue_that_another_transfer_fills_is_found(tmp_path: Path) -> None:
    row = findings_of(behind_a_transfer(30.0, 70.0).write(tmp_path / "wire.pcap"))["sender-queue"]
    assert row["severity"] == "warning" and row["cost"] == pytest.approx(0.04, abs=0.002)
    assert "waited up to 39.5 ms longer" in row["sentence"] and "(TTL 64): flow 0 filled" in row["sentence"]


def pausing() -> Wire:
    """The other transfer leaves the wire for half of the time."""
    wire = behind_a_transfer(30.0, 70.0)
    wire.packets = [(ms, frame) for ms, frame in wire.packets if frame[23] == 17 or ms % 400 < 200]
    return wire


def of_other_hosts(client: str, server: str) -> Wire:
    """The other transfer goes from `client` to `server`."""
    wire = behind_a_transfer(30.0, 70.0)
    addresses = {inet_aton("10.0.0.1"): inet_aton(client), inet_aton("10.0.0.2"): inet_aton(server)}
    moved = {
        frame: frame[:26] + addresses[frame[26:30]] + addresses[frame[30:34]] + frame[34:] for _, frame in wire.packets
    }
    wire.packets = [(ms, frame if frame[23] == 17 else moved[frame]) for ms, frame in wire.packets]
    return wire


@pytest.mark.parametrize(
    "make",
    [
        lambda: behind_a_transfer(30.0, 58.0),  # as any link that is full
        lambda: with_ttl(behind_a_transfer(30.0, 70.0), 63),  # a router is before the capture point
        pausing,
        lambda: of_other_hosts("10.0.0.6", "10.0.0.7"),
        lambda: of_other_hosts("10.0.0.9", "10.0.0.1"),  # to the waiting host
    ],
)
def test_a_capture_that_nearly_shows_it_has_no_such_finding(tmp_path: Path, make: Any) -> None:
    assert "sender-queue" not in findings_of(make().write(tmp_path / "wire.pcap"))


@pytest.mark.xdist_group("live")
@NEEDED
@pytest.mark.alone
def test_a_card_s_queue_holds_up_udp_and_the_receiver_limits_no_transfer(tmp_path: Path) -> None:
    """A transfer fills a queue of 1,000 packets; 64 datagrams of UDP wait in it at once."""

    def check() -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        (folder / "card.toml").write_text(PROFILE)
        with study_lab(str(folder / "card.toml"), folder / "run", captured=True) as lab, neighbor(lab) as name:
            tcp = lab.start("--time", 8, "--congestion", "cubic", inside=name)
            udp = ("--udp", "--size", DATAGRAM, "--rate", "10M", "--time", 3, "--buffer", BUFFER)
            paced = lab.finish(lab.start(*udp, "--start-offset", 4))
            kernel = lab.finish(tcp)["sender"]["tcp_info"][-1]
        assert kernel["receive_window_limited_us"] < 0.2 * kernel["busy_us"]
        assert paced["receiver"]["rate_mbit_s"] < 9, paced["receiver"]
        (file,) = (folder / "run" / "before").glob("*.pcapng")
        trace = wiretale.analyze(file)
        largest = max(trace.directions.rows(), key=lambda row: row["wire_bytes"])
        times = {name: largest[name] or 0 for name in largest if name.startswith("time_")}
        assert max(times, key=times.__getitem__) == "time_network_ns", times
        row = {row["code"]: row for row in trace.findings.rows()}["sender-queue"]
        assert row["severity"] == "warning" and row["flow"] != largest["flow"]

    undisturbed(check, tries=3)  # a machine that is busy reorders packets, so that TCP slows down
