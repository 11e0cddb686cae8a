# SPDX-License-Identifier: Apache-2.0
"""Capacities of links: the published figures, and arithmetic done another way."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, UDP, Raw, fragment

from checkout import ROOT, Run
from processes import refusal
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.theory import capacity as theory
from wiretale.analyzer.units import parse_rate, parse_size
from wiretale.reports.export.theory import theory_object

COPY = Path(__file__).parent / "published" / "theory.csv"
SHARED = ROOT.parent / "shared" / "published" / "theory.csv"
PUBLISHED = list(csv.DictReader((SHARED if SHARED.exists() else COPY).read_text().splitlines()))
G1 = theory.Link(1_000_000_000)


def computed(row: dict[str, str]) -> dict[str, Any]:
    """Computes a published row."""
    block = int(row["input"]) if row["quantity"] == "frames_per_block" else None
    rate = parse_rate(row["input"]) if "b/s" in row["input"] else 10**9
    return theory_object(theory.Link(rate), ("tcp", "udp"), block, "test")


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: "-".join(list(row.values())[1:4]))
def test_published_figures_to_the_last_digit(row: dict[str, str]) -> None:
    digits = len(row["value"].partition(".")[2])
    for protocol in ("tcp", "udp") if row["protocol"] == "any" else (row["protocol"],):
        assert f"{computed(row)[protocol][row['quantity']]:.{digits}f}" == row["value"]


def test_every_published_row_is_checked() -> None:
    copied = list(csv.DictReader(COPY.read_text().splitlines()))
    assert len(PUBLISHED) == 16 and copied == PUBLISHED


@pytest.mark.parametrize("size", [1, 18, 1472, 1473, 2952, 2953, 8192, 10_000, 65_507])
@pytest.mark.parametrize("mtu", [576, 1006, 1500, 9000])
def test_fragments_are_those_that_scapy_makes(size: int, mtu: int) -> None:
    made = [len(p) for p in fragment(IP() / UDP() / Raw(bytes(size)), (mtu - 20) // 8 * 8)]
    # Scapy's last fragment holds whole units alone, wiretale's fills the MTU; these sizes are split alike
    link = theory.Link(10**9, mtu)
    sizes = [size for size, count in theory.fragment_sizes(link, size + 8) for _ in range(count)]
    assert sum(sizes) - 20 * len(sizes) == size + 8 and max(sizes) <= mtu
    assert abs(len(sizes) - len(made)) <= ((mtu - 20) % 8 != 0)
    wire = sum(max(60, 14 + length) + 24 for length in sizes)
    assert theory.block_maximum(link, "udp", size).wire_bytes_per_block == wire


def test_a_short_packet_is_padded_to_the_least_frame() -> None:
    assert theory.block_maximum(G1, "udp", 1).wire_bytes_per_block == 84
    assert theory.block_maximum(G1, "udp", 18).wire_bytes_per_block == 84
    assert theory.block_maximum(G1, "udp", 19).wire_bytes_per_block == 85


def test_the_largest_payload_without_fragments_is_the_last_that_has_none() -> None:
    for ip, mtu in ((4, 1500), (6, 1500), (4, 9000)):
        link = theory.Link(10**9, mtu, ip=ip)
        most = theory.datagram_most(link)
        assert theory.block_maximum(link, "udp", most).fragments_per_block == 0
        assert theory.block_maximum(link, "udp", most + 1).fragments_per_block == 2


def test_ipv6_fragments_carry_a_header_of_their_own() -> None:
    link = theory.Link(10**9, 1500, ip=6)
    assert theory.fragment_sizes(link, 8200) == [(48 + 1448, 5), (48 + 8200 - 5 * 1448, 1)]


def test_framings_differ_by_their_headers() -> None:
    full = {
        name: theory.maximum(theory.Link(10**9, framing=name), "udp")
        for name, framing in theory.FRAMINGS.items()
        if not framing.air
    }
    assert {name: capacity.wire_bytes_per_frame for name, capacity in full.items()} == {
        **{"ethernet": 1538, "vlan": 1542, "qinq": 1546, "mpls": 1542, "pppoe": 1546, "ip": 1500},
    }


def test_tcp_options_take_room() -> None:
    assert theory.maximum(theory.Link(10**9, tcp_options=12), "tcp").payload_per_frame == 1448


def test_a_stream_is_never_slower_than_blocks_alone() -> None:
    for block in (1, 100, 1460, 1461, 10_000, 2**20):
        alone = theory.block_maximum(G1, "tcp", block)
        assert theory.stream(G1, block).max_blocks_per_s >= alone.max_blocks_per_s * (1 - 1e-12)
    assert theory.stream(G1, 1460).max_blocks_per_s == pytest.approx(
        theory.block_maximum(G1, "tcp", 1460).max_blocks_per_s
    )


@pytest.mark.parametrize(
    "link",
    [
        theory.Link(10**9, 67),
        theory.Link(10**9, 1279, ip=6),
        theory.Link(10**9, 65536),
        theory.Link(10**9, tcp_options=13),
        theory.Link(10**9, tcp_options=44),
        theory.Link(10**9, 68, tcp_options=40),
        theory.Link(10**9, framing="token ring"),
        theory.Link(0),
    ],
)
def test_impossible_options_are_refused(link: theory.Link) -> None:
    with pytest.raises(UsageError):
        theory.check_link(link)


def test_rates_and_sizes() -> None:
    rates = {
        "1G": 10**9,
        "1.5Gbit": 1_500_000_000,
        "100 Mb/s": 10**8,
        "1e9": 10**9,
        "64kbit": 64_000,
        "9600": 9600,
        "10Mbit/s": 10**7,
    }
    assert {text: parse_rate(text) for text in rates} == rates
    sizes = {"8192": 8192, "9k": 9000, "64KiB": 65536, "1MB": 10**6, "7B": 7}
    assert {text: parse_size(text) for text in sizes} == sizes
    for wrong in ("", "G", "-1G", "1e", "1GB", "0", "0.3", "1Gx", "9" * 40, "١G"):
        with pytest.raises(UsageError):
            parse_rate(wrong)


def test_the_command(wiretale_run: Run) -> None:
    done = wiretale_run("theory", "--link", "1G", "--block", "10000", "--json")
    document = json.loads(done.stdout)
    assert (
        done.returncode == 0
        and document["schema"] == "wiretale.theory/1"
        and document["udp"]["fragments_per_block"] == 7
    )
    text = wiretale_run("theory", "--link", "1G", "--block", "70000").stdout
    assert "118.660" in text and "119.635" in text and "expected at most 65507" in text
    only = json.loads(wiretale_run("theory", "--link", "1G", "--protocol", "udp", "--json").stdout)
    assert "tcp" not in only
    for wrong in (["--mtu", "40"], ["--block", "70000", "--protocol", "udp"], ["--block", "x"]):
        refusal(wiretale_run("theory", "--link", "1G", *wrong))


AIR = [  # DIFS, mean backoff, frame of 1536 bytes, SIFS and ACK in microseconds, by hand from IEEE 802.11-2007 clauses 15, 18, 19
    ("wlan", 1_000_000, 50 + 310 + 192 + 12288 + 10 + 192 + 112),
    ("wlan", 11_000_000, 50 + 310 + 96 + 12288 / 11 + 10 + 96 + 56),
    ("wlan-protected", 11_000_000, 50 + 310 + 192 + 12288 / 11 + 10 + 192 + 56),
    ("wlan", 54_000_000, 28 + 67.5 + 20 + 4 * 57 + 6 + 10 + 20 + 4 * 2 + 6),
    ("wlan", 6_000_000, 28 + 67.5 + 20 + 4 * 513 + 6 + 10 + 20 + 4 * 6 + 6),
    ("wlan-protected", 54_000_000, 50 + 150 + 192 + 56 + 10 + 20 + 4 * 57 + 6 + 10 + 20 + 4 * 2 + 6),
]


@pytest.mark.parametrize(("framing", "bps", "microseconds"), AIR)
def test_frames_in_the_air_take_the_time_of_the_standard(framing: str, bps: int, microseconds: float) -> None:
    full = theory.maximum(theory.Link(bps, framing=framing), "udp")
    assert full.seconds_per_frame == pytest.approx(microseconds / 1e6)
    assert full.max_payload_bps == pytest.approx(1472 * 8e6 / microseconds)
    assert full.efficiency == pytest.approx(full.max_payload_bps / bps)


def test_acks_of_tcp_take_air() -> None:
    link = theory.Link(54_000_000, framing="wlan")
    ack = 28 + 67.5 + 20 + 4 * 3 + 6 + 10 + 34  # 76 bytes are 630 bits with service and tail: 3 symbols
    assert theory.maximum(link, "tcp").seconds_per_frame == pytest.approx((393.5 + ack / 2) / 1e6)
    assert theory.maximum(replace(link, framing="ip"), "tcp").seconds_per_frame == pytest.approx(1500 * 8 / 54e6)


@pytest.mark.parametrize(("bps", "measured", "published"), [(11_000_000, 6.73, 61.2), (54_000_000, 24.67, 45.6)])
def test_no_published_rate_of_a_wireless_lan_is_above_its_maximum(bps: int, measured: float, published: float) -> None:
    assert abs(measured * 1e8 / bps - published) < 0.1
    assert measured * 1e6 < theory.maximum(theory.Link(bps, framing="wlan"), "udp").max_payload_bps


def test_a_rate_that_no_wireless_lan_has_is_named() -> None:
    with pytest.raises(UsageError, match=r"100 Mbit/s in a wireless LAN: expected 1, 2, 5\.5 or 11"):
        theory.check_link(theory.Link(10**8, framing="wlan"))
