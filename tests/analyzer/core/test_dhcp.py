# SPDX-License-Identifier: Apache-2.0
"""DHCP as exchanges: messages crafted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scapy.all import Packet

from crafted import START, analyze_timed
from dhcp_wire import DHCP_SERVER, LAPTOP, LEASE, lease, message, passed_on
from neighbor_wire import Timed, asks

MS = 1_000_000
NAME = f"{LAPTOP} laptop"


def rows(folder: Path, timed: list[Timed]) -> list[dict[str, Any]]:
    return [dict(row) for row in analyze_timed(folder, timed).exchanges.rows() if row["kind"] == "dhcp"]


def last_packet(at: float) -> Timed:
    return asks(at, "10.0.4.50")


def test_lease(tmp_path: Path) -> None:
    discover, request = rows(tmp_path, lease(0))
    assert (discover["type"], discover["code"], discover["outcome"], discover["attempts"]) == (
        "Discover",
        "OFFER",
        "answered",
        1,
    )
    assert (discover["client"], discover["server"], discover["name"]) == (None, DHCP_SERVER, NAME)
    assert (discover["asked_frame"], discover["answered_frame"], discover["waited_ns"]) == (1, 2, 10 * MS)
    assert discover["asked_ns"] == START * 10**9 and discover["flow"] is None
    assert (request["type"], request["code"], request["client"]) == ("Request", "ACK", LEASE)


@pytest.mark.parametrize("new_id", [False, True])
def test_no_offer(new_id: bool, tmp_path: Path) -> None:
    """The ladder of RFC 2131 section 4.1, with one transaction id or several."""
    ladder = (0, 4, 12, 28, 60)
    timed = [message(at, "discover", 1 + n * new_id) for n, at in enumerate(ladder)]
    (row,) = rows(tmp_path, [*timed, last_packet(90)])
    assert (row["outcome"], row["attempts"], row["server"], row["code"]) == ("unanswered", 5, None, None)
    assert row["waited_ns"] == 63_000 * MS


def test_refused(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [message(0, "request"), message(0.01, "nak")])
    assert (row["type"], row["outcome"], row["code"], row["server"]) == ("Request", "refused", "NAK", DHCP_SERVER)


def test_reply_to_another_id_or_client_is_none(tmp_path: Path) -> None:
    timed = [message(0, "discover", 1), message(0.01, "offer", 2), message(0.02, "offer", 1, "02:00:00:00:00:0b")]
    (row,) = rows(tmp_path, [*timed, last_packet(20)])
    assert row["outcome"] == "unanswered"


def test_unseen_offer(tmp_path: Path) -> None:
    """A switch sent the Offer to the client alone; its Request shows that it came."""
    discover, request = rows(tmp_path, [message(0, "discover"), message(0.1, "request"), last_packet(20)])
    assert (discover["outcome"], discover["answered_frame"], discover["waited_ns"]) == ("answered", None, None)
    assert request["outcome"] == "unanswered"


def test_relay(tmp_path: Path) -> None:
    """The relay passes the messages on, with its own address: each side is an exchange."""
    relayed = [message(at + 0.001, kind, relay="10.1.4.1") for at, kind in ((0, "discover"), (0.01, "offer"))]
    client = [message(0, "discover"), message(0.013, "offer")]
    both = rows(tmp_path, sorted([*client, *relayed], key=lambda entry: entry[0]))
    assert [row["waited_ns"] for row in both] == [13 * MS, 10 * MS]


def test_reply_that_a_relay_passes_on(tmp_path: Path) -> None:
    """It answers the client's own request, and the server's reply to the relay does not."""
    timed = [message(0, "discover"), passed_on(0.02, "offer"), message(0.1, "request"), passed_on(0.13, "ack")]
    discover, request = rows(tmp_path, [*timed, last_packet(20)])
    assert (discover["code"], discover["waited_ns"]) == ("OFFER", 20 * MS)
    assert (request["code"], request["client"], request["waited_ns"]) == ("ACK", LEASE, 30 * MS)
    timed[1] = message(0.01, "offer", relay="10.1.4.1")
    assert rows(tmp_path, [*timed[:2], last_packet(20)])[0]["outcome"] == "unanswered"


def test_rapid_commit(tmp_path: Path) -> None:
    """RFC 4039: an ACK answers the Discover."""
    (row,) = rows(tmp_path, [message(0, "discover"), message(0.01, "ack")])
    assert (row["type"], row["code"], row["client"]) == ("Discover", "ACK", LEASE)


def test_host_name_of_any_bytes(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, [message(0, "discover", name="a\x1b[31m\N{SNOWMAN}" + "x" * 90), last_packet(20)])
    assert row["name"].startswith(f"{LAPTOP} a\\027[31m\\226\\152\\131x") and row["name"].isascii()


@pytest.mark.parametrize("size", [*range(42, 300, 7)])
def test_cut_messages(size: int, tmp_path: Path) -> None:
    at, packet = message(0, "discover")
    cut: Packet = type(packet)(bytes(packet)[:size])
    assert len(rows(tmp_path, [(at, cut), last_packet(20)])) <= 1
