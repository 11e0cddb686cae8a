# SPDX-License-Identifier: Apache-2.0
"""Rates of short tests: by the kernel's stamps of the first and last datagram, and never above the link's unnoticed."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_bench import NEEDED, lab_of, wiretale_lab
from traffic_ends import Report, program, receiving, send, undisturbed
from wiretale.traffic.experiment.results import measures, throughput
from wiretale.traffic.lab.profile import link_bps, load_profile, make_profile
from wiretale.traffic.lab.state import Lab

pytestmark = pytest.mark.xdist_group("live")

BPS = 20_000_000
PROFILE = '[both]\nrate = "20Mbit"\ndelay = "1ms"\nqueue = 1000'
PORT = 5011
RATE_AND_TIME = (("throughput_mbit_s", "elapsed_s"), ("throughput_with_rtt_mbit_s", "elapsed_with_rtt_s"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A link of 20 Mbit/s with room for all that is sent at once."""
    with lab_of(PROFILE, "trial", tmp_path_factory.mktemp("lab")) as running:
        yield running


def at(lab: Lab, host: str) -> tuple[str, ...]:
    """Words before a command that run it there, with the environment that a lab gives to programs."""
    return (*lab.inside(host, "env"), f"WIRETALE_LINK_RATE={lab.link_bps}")


@NEEDED
@pytest.mark.parametrize(
    ("size", "count"), [(20000, 1), (20000, 2), (20000, 3), (20000, 5), (20000, 25), (4096, 3), (1472, 2), (1472, 100)]
)
def test_no_short_test_is_faster_than_the_link(tmp_path: Path, lab: Lab, size: int, count: int) -> None:
    """Sent as fast as possible, the datagrams wait in the socket's buffer, and are taken in batches. A link that woke late
    for one of them really delivered two in less time: that is tried again."""
    options = ("--udp", "--size", str(size), "--count", str(count))

    def check() -> None:
        report = send(PORT, *options, host="10.99.0.2", inside=at(lab, "sender"))
        rate = report["receiver"]["rate_mbit_s"]
        assert (report["blocks_received"], report["link_bps"]) == (count, BPS)
        if count == 1:
            assert (rate, report["receiver"]["elapsed_s"], report["throughput_exceeds_link"]) == (None, 0, None)
        else:
            assert BPS / 2e6 < rate <= BPS / 1e6 and report["throughput_exceeds_link"] is False

    with receiving(tmp_path, inside=at(lab, "receiver"), port=PORT):
        undisturbed(check)


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a receiver here."""
    with receiving(tmp_path_factory.mktemp("receiver")) as running:
        yield running.port


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_a_rate_above_the_links_is_flagged(loopback: int, protocol: str) -> None:
    """Here a test over loopback, of which it is claimed that it is a link of 1 Mbit/s."""
    slow = ("env", "WIRETALE_LINK_RATE=1Mbit")
    options = (protocol, "--size", "1000", "--count", "2000")
    report = send(loopback, *options, inside=slow)
    assert (report["link_bps"], report["throughput_exceeds_link"], report["sending_exceeds_link"]) == (
        10**6,
        True,
        True,
    )
    command = [*slow, program(), "send", "127.0.0.1", "--port", str(loopback), *options]
    table = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert "warning: the received rate is above the link's 1 Mbit/s" in table
    assert "note: the sent rate is above the link's 1 Mbit/s" in table


def test_where_the_links_speed_is_unknown_nothing_is_claimed(loopback: int) -> None:
    report: Report = send(loopback, "--udp", "--count", "10")
    assert [report[name] for name in ("link_bps", "throughput_exceeds_link", "sending_exceeds_link")] == [None] * 3


def test_the_rate_of_an_emulated_link_is_its_profiles() -> None:
    assert link_bps(load_profile("same-lan")) == 10**9
    assert (
        link_bps(make_profile("x", 'card = "10Mbit"\n[forward]\nrate = "2Mbit"\n[reverse]\nrate = "1G"', "x")) == 10**7
    )
    assert link_bps(make_profile("x", '[forward]\nrate = "2Mbit"', "x")) is None  # back it has no bound


@NEEDED
@pytest.mark.alone
def test_a_plan_over_a_lab_has_no_rate_above_the_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of study S3 over 1 Gb/s gave 29,257 Mbit/s: of datagrams taken in one batch. A link that woke late really
    delivers datagrams faster than its rate: that is tried again."""
    monkeypatch.setenv("WIRETALE_STATE", str(tmp_path / "labs"))
    plan, profile = tmp_path / "short.toml", tmp_path / "slow.toml"
    plan.write_text(
        'title = "short"\ntrials = 2\npause = "10ms"\n[sender]\n[receiver]\naddress = "10.99.0.2"\nport = 5012\n[[test]]\n'
        'name = "udp"\nprotocol = "udp"\nsizes = [20000, 1472]\ncount = 4\n'
    )
    profile.write_text(PROFILE)
    tries = itertools.count()

    def check() -> None:
        out = tmp_path / f"out{next(tries)}"
        done = wiretale_lab("run", str(plan), "--profile", str(profile), "-o", str(out), "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["complete"], done.stderr
        lines = [line.split(",") for line in (out / "experiment" / "results.csv").read_text().splitlines()]
        rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
        assert len(rows) == 4
        for row in rows:
            rates = [float(row[name]) for name in ("throughput_mbit_s", "receiving_rate_mbit_s")]
            assert 0 < rates[0] <= rates[1] < 2 * BPS / 1e6  # it was hundreds of times as much
            assert (row["throughput_exceeds_link"] == "true") == (rates[1] > BPS / 1e6)

    undisturbed(check, tries=5)


def test_the_throughput_of_one_datagram_is_unknown() -> None:
    assert throughput(1472, 0.001, {"elapsed_s": 0, "rate_kb_s": None}) is None
    assert throughput(1472, None, {}) is None
    assert throughput(4000, 0.002, {"elapsed_s": 0.001, "rate_kb_s": 3000.0}) == 2e6  # the sender took longer
    assert throughput(4000, 0.001, {"elapsed_s": 0.001, "rate_kb_s": 3000.0}) == 3e6


@NEEDED
@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_the_round_trip_of_the_control_connection_is_that_of_the_path(tmp_path: Path, lab: Lab, protocol: str) -> None:
    """1 ms each way, and some hundredths for the packets on the link."""

    def check() -> None:
        options = (protocol, "--size", "1000", "--count", "3")
        report = send(PORT, *options, host="10.99.0.2", inside=at(lab, "sender"))
        assert 2000 <= report["rtt_us"] < 3000
        row = measures(report)
        assert row["elapsed_with_rtt_s"] - row["elapsed_s"] == pytest.approx(row["rtt_s"]) == report["rtt_us"] / 1e6
        bits = [row[name] * row[took] for name, took in RATE_AND_TIME]
        assert bits[0] == pytest.approx(bits[1]) and bits[0] > 0

    with receiving(tmp_path, inside=at(lab, "receiver"), port=PORT):
        undisturbed(check)
