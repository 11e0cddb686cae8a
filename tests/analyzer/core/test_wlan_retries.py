# SPDX-License-Identifier: Apache-2.0
"""802.11 frames that a station repeats: neither duplicates of the network nor of a mirror, and no retransmissions of TCP."""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path

import pytest
from scapy.all import IP, TCP, Dot11, Packet, RadioTap, Raw

import wiretale
from crafted import write_timed
from radio_wire import FROM_DS, RETRY, STATION, TO_DS, on_radio


def segments() -> Iterator[tuple[float, Packet, bool]]:
    """A handshake, then 200 segments, each with its acknowledgment; whether the station sent it."""
    ends = [IP(src="10.0.0.2", dst="10.0.0.1"), IP(src="10.0.0.1", dst="10.0.0.2")]
    ports = [{"sport": 40000, "dport": 80}, {"sport": 80, "dport": 40000}]

    def segment(side: int, number: int, seq: int, ack: int, flags: str = "A", size: int = 0) -> Packet:
        header = ends[side].copy()
        header.id = number
        return header / TCP(seq=seq, ack=ack, flags=flags, window=60000, **ports[side]) / Raw(b"x" * size)

    yield 0.0, segment(0, 1, 100, 0, "S"), True
    yield 0.01, segment(1, 7001, 500, 101, "SA"), False
    yield 0.02, segment(0, 2, 101, 501), True
    for n in range(200):
        yield 0.1 + n / 50, segment(0, 3 + n, 101 + 1000 * n, 501, "PA", 1000), True
        yield 0.11 + n / 50, segment(1, 7002 + n, 501, 1101 + 1000 * n), False


def capture(folder: Path, repeated: Set[int], retry: int = RETRY) -> wiretale.Trace:
    """The data segments of these numbers once more, 0.4 ms later, with the retry bit or without."""
    timed = []
    for number, (at, packet, of_station) in enumerate(segments()):
        flags = TO_DS if of_station else FROM_DS
        timed.append((at, on_radio(packet, number, flags)))
        if number in repeated:
            timed.append((at + 0.0004, on_radio(packet, number, flags | retry)))
    return wiretale.analyze(write_timed(folder / "radio.pcap", timed))


def counts(trace: wiretale.Trace) -> dict[str, int]:
    names = ("network_duplicates", "mirror_duplicates", "unknown_duplicates", "retransmissions")
    return {name: trace.directions.total(name) for name in names}


@pytest.mark.parametrize("share", [0, 4, 2])
def test_retries_are_no_duplicates(share: int, tmp_path: Path) -> None:
    repeated = {number for number in range(3, 403) if share and number % share == 0}
    trace = capture(tmp_path, repeated)
    assert set(counts(trace).values()) == {0}
    assert [row["kind"] for row in trace.events.rows()] == ["wlan_retry"] * len(repeated)
    (interface,) = trace.interfaces.rows()
    assert (interface["wlan_frames"], interface["wlan_retries"]) == (403 + len(repeated), len(repeated))
    rows = {row["code"]: row for row in trace.findings}
    assert ("wlan-retries" in rows) == bool(share)
    assert not {"network-duplicates", "mirror-duplicates", "unknown-duplicates"} & set(rows)


def test_copies_without_the_bit_are_duplicates(tmp_path: Path) -> None:
    trace = capture(tmp_path, set(range(3, 403, 2)), retry=0)
    assert sum(counts(trace).values()) == 200
    assert trace.interfaces.total("wlan_retries") == 0


def test_share_of_retries(tmp_path: Path) -> None:
    (row,) = (row for row in capture(tmp_path, set(range(3, 403, 2))).findings if row["code"] == "wlan-retries")
    assert row["sentence"].startswith("33.2% of the 603 Wi-Fi data frames on the interface are retries")
    assert (row["severity"], row["cost"], row["packets"]) == ("warning", 200.0, 200)
    (row,) = (row for row in capture(tmp_path, set(range(3, 403, 8))).findings if row["code"] == "wlan-retries")
    assert row["severity"] == "info"


@pytest.mark.parametrize("dbm", [None, -82, -40])
def test_the_station_that_repeats_most_has_its_signal(dbm: int | None, tmp_path: Path) -> None:
    """Behind a time, which radiotap aligns; the access point repeats nothing."""
    timed = []
    for number, (at, packet, of_station) in enumerate(segments()):
        frame = on_radio(packet, number, TO_DS if of_station else FROM_DS)
        again = on_radio(packet, number, TO_DS | RETRY)
        for each in (frame, again):
            fields = {"present": "TSFT+Flags+Rate+Channel", "mac_timestamp": 7, "Rate": 12}
            if dbm is not None:
                fields |= {"present": "TSFT+Flags+Rate+Channel+dBm_AntSignal", "dBm_AntSignal": dbm}
            each = RadioTap(**fields) / each[Dot11]
            if each[Dot11].FCfield & RETRY and (not of_station or number % 2):
                continue
            timed.append((at + 0.0004 * bool(each[Dot11].FCfield & RETRY), each))
    (row,) = wiretale.analyze(write_timed(tmp_path / "radio.pcap", timed)).interfaces.rows()
    of_station = [frame for _, frame in timed if frame[Dot11].addr2 == STATION]
    retries = [frame for frame in of_station if frame[Dot11].FCfield & RETRY]
    assert (row["wlan_station"], row["wlan_station_frames"]) == (STATION, len(of_station))
    assert (row["wlan_station_retries"], row["wlan_station_signal_dbm"]) == (len(retries), dbm)
