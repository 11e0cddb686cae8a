# SPDX-License-Identifier: Apache-2.0
"""Server name and ALPN of QUIC's Initials: the RFC's packet, Initials that this test seals, hostile ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wiretale
from plain_wire import Wire
from quic_wire import SALTS, V1, V2, crypto, hello, initial, keys
from wiretale.analyzer import _core
from wiretale.analyzer.options import NO_OPTIONS, ReadingMode

RFC_ID = bytes.fromhex("8394c8f03e515708")
# RFC 9001 appendix A.1 and RFC 9369 appendix A.1.
RFC_KEYS = {
    V1: ("1f369613dd76d5467730efcbe3b1a22d", "fa044b2f42a3fd3b46fb255c", "9f50449e04a0e810283a1e9933adedd2"),
    V2: ("8b1a0bc121284290a29e0971b5cd045d", "91f73e2351d8fa91660e909f", "45b95e15235d6f45a6b19cbcb0294ba9"),
}
HELLO = hello(b"www.example.org", (b"h3", b"h3-29"))
NAMES = ("www.example.org", "h3,h3-29")


def capture(path: Path, *packets: bytes) -> Path:
    """A client's Initials to port 5000."""
    wire = Wire()
    for at, packet in enumerate(packets):
        wire.udp(at, packet, 40000)
    return wire.write(path)


def names_of(folder: Path, *packets: bytes) -> tuple[str | None, str | None]:
    """Server name and ALPN of the flow of these Initials."""
    trace = wiretale.analyze(capture(folder / "quic.pcap", *packets))
    (row,) = trace.handshakes.rows()
    assert trace.flows.column("server_name") == [row["server_name"]]
    return row["server_name"], row["alpn"]


@pytest.mark.parametrize("version", RFC_KEYS)
def test_the_seal_of_these_tests_has_the_keys_of_the_rfc(version: int) -> None:
    assert keys(version, RFC_ID) == tuple(bytes.fromhex(key) for key in RFC_KEYS[version])


@pytest.mark.parametrize("version", SALTS)
def test_names_of_an_initial(tmp_path: Path, version: int) -> None:
    assert names_of(tmp_path, initial(crypto(0, HELLO), version=version)) == NAMES


def test_names_that_are_cut_end_in_a_mark(tmp_path: Path) -> None:
    offers = tuple(b"protocol-%d" % number for number in range(40))
    name, protocols = names_of(tmp_path, initial(crypto(0, hello(b"n" * 300, offers))))
    assert name == "n" * 255 + "…"
    assert protocols and protocols.startswith("protocol-0,protocol-1,") and protocols.endswith(",…")


def test_parts_come_in_any_order_and_overlap(tmp_path: Path) -> None:
    long = hello(b"long.example", (b"h3",), filler=1500)
    first = initial(b"\x01" + crypto(900, long[900:1300]) + crypto(0, long[:700]), 1)
    second = initial(crypto(1200, long[1200:]) + crypto(600, long[600:950]), 0)
    assert names_of(tmp_path, first, second) == ("long.example", "h3")
    assert names_of(tmp_path, first) == (None, None)  # the names are behind the missing part


def test_what_came_of_a_cut_hello_is_read(tmp_path: Path) -> None:
    """The name comes before what is missing; bytes behind the most that is kept are not."""
    message = hello(b"early.example", (b"h3",)) + bytes(6000)
    longer = message[:1] + (len(message) - 4).to_bytes(3, "big") + message[4:]
    assert names_of(tmp_path, initial(crypto(0, longer[:100]))) == ("early.example", "h3")
    parts = [initial(crypto(at, longer[at : at + 1000]), number) for number, at in enumerate(range(0, 6000, 1000))]
    assert names_of(tmp_path, *parts) == ("early.example", "h3")


def test_keys_stay_those_of_the_first_destination(tmp_path: Path) -> None:
    """The client addresses the server's ID as soon as it has it; after a Retry the keys change."""
    middle = len(HELLO) // 2
    first = initial(crypto(0, HELLO[:middle]))
    later = initial(
        b"\x02" + b"\x00" * 4 + crypto(middle, HELLO[middle:]), 1, destination=b"servers-", key_id=b"original"
    )
    assert names_of(tmp_path, first, later) == NAMES
    assert names_of(tmp_path, first, initial(crypto(0, HELLO), destination=b"of-retry")) == NAMES


def test_unknown_versions_and_damage_have_no_name(tmp_path: Path) -> None:
    good = initial(crypto(0, HELLO))
    assert names_of(tmp_path, good[:1] + b"\x51\x30\x35\x30" + good[5:]) == (None, None)
    assert names_of(tmp_path, good[:-1] + bytes([good[-1] ^ 1])) == (None, None)
    assert names_of(tmp_path, initial(b"\x1c" + crypto(0, HELLO))) == (None, None)
    assert names_of(tmp_path, initial(crypto(0, b"\x02" + HELLO[1:]))) == (None, None)  # a ServerHello


def test_names_are_printable(tmp_path: Path) -> None:
    sealed = initial(crypto(0, hello(b"a\x1b[31m\\\xff", (b"h3\n",))))
    assert names_of(tmp_path, sealed) == ("a\\027[31m\\092\\255", "h3\\010")


@given(frames=st.lists(st.binary(max_size=1100), min_size=1, max_size=20), inner=st.booleans())
def test_any_frames_give_a_result(tmp_path: Path, frames: list[bytes], inner: bool) -> None:
    """Frames of any bytes, or a ClientHello of any bytes, each in a flow of its own."""
    wire = Wire()
    for number, body in enumerate(frames):
        wire.udp(number, initial(crypto(0, b"\x01" + body[:1000]) if inner else body), 40000 + number)
    path = str(wire.write(tmp_path / "any.pcap"))
    core = _core.Analysis([path], [path], NO_OPTIONS, ReadingMode())
    while core.step(1000):
        pass
    core.finish()
    assert len(core.table("handshakes")) == len(frames)


def test_a_flow_has_the_name_of_its_hello(tmp_path: Path) -> None:
    wire = Wire().udp(0, initial(crypto(0, HELLO)), 40000).udp(5, bytes(1200), 40001)
    trace = wiretale.analyze(wire.write(tmp_path / "quic.pcap"))
    assert trace.flows.column("application") == ["quic", None]
    assert trace.flows.column("server_name") == ["www.example.org", None]
    row: dict[str, Any]
    (row,) = trace.handshakes.rows()
    assert (row["flow"], row["protocol"], row["version"], row["ech"]) == (0, "quic", "1", False)
    assert (row["server_name"], row["alpn"], row["client_hello_frame"]) == ("www.example.org", "h3,h3-29", 1)
    assert row["server_rtt_ns"] is None and row["spin_rtt_ns"] is None
    sql = trace.query("select server_name, alpn from flows join handshakes using (flow, server_name)")
    assert sql.fetchall() == [("www.example.org", "h3,h3-29")]
