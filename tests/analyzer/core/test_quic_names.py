# SPDX-License-Identifier: Apache-2.0
"""Server name and ALPN of QUIC's Initials: keys of the RFCs' examples, Initials that this test seals, hostile ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wiretale
from plain_wire import Wire
from quic_wire import SALTS, V1, V2, crypto, hello, initial
from wiretale.analyzer import quic

RFC_ID = bytes.fromhex("8394c8f03e515708")
# RFC 9001 appendix A.1 and RFC 9369 appendix A.1.
RFC_KEYS = {
    V1: ("1f369613dd76d5467730efcbe3b1a22d", "fa044b2f42a3fd3b46fb255c", "9f50449e04a0e810283a1e9933adedd2"),
    V2: ("8b1a0bc121284290a29e0971b5cd045d", "91f73e2351d8fa91660e909f", "45b95e15235d6f45a6b19cbcb0294ba9"),
}
HELLO = hello(b"www.example.org", (b"h3", b"h3-29"))


def records(*packets: bytes) -> bytes:
    """Initials as the core keeps them."""
    return b"".join(len(packet).to_bytes(2, "big") + packet for packet in packets)


@pytest.mark.parametrize("version", RFC_KEYS)
def test_keys_are_those_of_the_rfc(version: int) -> None:
    assert quic.client_keys(version, RFC_ID) == tuple(bytes.fromhex(key) for key in RFC_KEYS[version])


def test_names_that_are_cut_end_in_a_mark() -> None:
    offers = tuple(b"p%d" % number for number in range(20))
    name, protocols = quic.names_of(records(initial(crypto(0, hello(b"n" * 300, offers)))))
    assert name == "n" * 255 + "…" and protocols == ",".join(f"p{number}" for number in range(16)) + ",…"


@pytest.mark.parametrize("version", SALTS)
def test_names_of_an_initial(version: int) -> None:
    assert quic.names_of(records(initial(crypto(0, HELLO), version=version))) == ("www.example.org", "h3,h3-29")


def test_parts_come_in_any_order_and_overlap() -> None:
    long = hello(b"long.example", (b"h3",), filler=1500)
    first = initial(b"\x01" + crypto(900, long[900:1300]) + crypto(0, long[:700]), 1)
    second = initial(crypto(1200, long[1200:]) + crypto(600, long[600:950]), 0)
    assert quic.names_of(records(first, second)) == ("long.example", "h3")
    assert quic.names_of(records(first)) == (None, None)  # the names are behind the missing part


def test_keys_stay_those_of_the_first_destination() -> None:
    """The client addresses the server's ID as soon as it has it; after a Retry the keys change."""
    middle = len(HELLO) // 2
    first = initial(crypto(0, HELLO[:middle]))
    later = initial(
        b"\x02" + b"\x00" * 4 + crypto(middle, HELLO[middle:]), 1, destination=b"servers-", key_id=b"original"
    )
    assert quic.names_of(records(first, later)) == ("www.example.org", "h3,h3-29")
    retried = initial(crypto(0, HELLO), destination=b"of-retry")
    assert quic.names_of(records(first, retried)) == ("www.example.org", "h3,h3-29")


def test_unknown_versions_and_damage_have_no_name() -> None:
    good = initial(crypto(0, HELLO))
    assert quic.names_of(records(good[:1] + b"\x51\x30\x35\x30" + good[5:])) == (None, None)
    assert quic.names_of(records(good[:-1] + bytes([good[-1] ^ 1]))) == (None, None)
    assert quic.names_of(records(initial(b"\x1c" + crypto(0, HELLO)))) == (None, None)


def test_names_are_printable() -> None:
    assert quic.names_of(records(initial(crypto(0, hello(b"a\x1b[31m\\\xff", (b"h3\n",)))))) == (
        "a\\027[31m\\092\\255",
        "h3\\010",
    )


@given(st.binary(max_size=1100))
def test_any_frames_give_a_result(frames: bytes) -> None:
    quic.names_of(records(initial(frames)))


@given(st.binary(max_size=300))
def test_any_message_gives_a_result(message: bytes) -> None:
    quic.read_hello(b"\x01" + message)


@given(st.lists(st.binary(max_size=80), max_size=4))
def test_any_packets_give_a_result(packets: list[bytes]) -> None:
    quic.names_of(records(*packets))


def capture(path: Path) -> Path:
    """A client's Initial to port 5000, and a datagram that is none."""
    return Wire().udp(0, initial(crypto(0, HELLO)), 40000).udp(5, bytes(1200), 40001).write(path)


def test_a_flow_has_the_name_of_its_hello(tmp_path: Path) -> None:
    trace = wiretale.analyze(capture(tmp_path / "quic.pcap"))
    assert trace.flows.column("application") == ["quic", None]
    assert trace.flows.column("server_name") == ["www.example.org", None]
    (row,) = trace.handshakes.rows()
    assert (row["flow"], row["protocol"], row["version"]) == (0, "quic", "1")
    assert (row["server_name"], row["alpn"], row["client_hello_frame"]) == ("www.example.org", "h3,h3-29", 1)
    assert row["server_rtt_ns"] is None and row["spin_rtt_ns"] is None
    assert trace.flows.rows(0, 1)[0]["server_name"] == "www.example.org"
    sql = trace.query("select server_name, alpn from flows join handshakes using (flow, server_name)")
    assert sql.fetchall() == [("www.example.org", "h3,h3-29")]
    assert "quic-names-unread" not in trace.findings.column("code")


def test_without_the_library_names_are_null_and_one_finding_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quic, "has_library", lambda: False)
    trace = wiretale.analyze(capture(tmp_path / "quic.pcap"))
    assert trace.flows.column("application") == ["quic", None]
    assert trace.flows.column("server_name") == [None, None]
    assert trace.handshakes.column("alpn") == [None]
    (row,) = [row for row in trace.findings.rows() if row["code"] == "quic-names-unread"]
    assert row["severity"] == "info" and "pip install cryptography" in row["advice"]
