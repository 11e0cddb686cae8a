# SPDX-License-Identifier: Apache-2.0
"""`capture --headers` cuts behind the transport header, where `wiretale cut --headers`, another program, cuts the same."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

from scapy.utils import PcapNgReader, RawPcapReader, RawPcapWriter

import wiretale
from capture_link import PACKET_SOCKET, CaptureLink
from checkout import ROOT

LONGEST, MOST = 1514, 256  # bytes of a frame, and of its headers
REPLAY = f"""{PACKET_SOCKET}
import sys
to = PacketSocket("out0")
pcap, at = open(sys.argv[1], "rb").read(), 24
while at < len(pcap):
    end = at + 16 + int.from_bytes(pcap[at + 8 : at + 12], "little")
    to.send(pcap[at + 16 : end])
    at = end
"""


def sample_frames() -> list[bytes]:
    """The first ones of each sample capture of an Ethernet."""
    frames = []
    for path in sorted((ROOT / "sample_pcaps").glob("*.pcap")):
        with RawPcapReader(str(path)) as reader:
            frames += [frame for frame, facts in itertools.islice(reader, 30) if len(frame) == facts.wirelen <= LONGEST]
    return frames


def test_headers_end_where_a_cut_of_the_same_packets_ends(link: CaptureLink, tmp_path: Path) -> None:
    sent, frames = tmp_path / "sent.pcap", sample_frames()
    with RawPcapWriter(str(sent), linktype=1, endianness="<") as writer:
        for frame in frames:
            writer.write(frame)
    wiretale.cut(sent, output=tmp_path / "cut.pcap", headers=True)
    with RawPcapReader(str(tmp_path / "cut.pcap")) as reader:
        expected = [min(len(frame), MOST) for frame, _ in reader]
    with link.daemon("--headers", into=tmp_path / "headers.pcapng") as daemon:
        subprocess.run(link.inside(link.sender, sys.executable, "-c", REPLAY, str(sent)), check=True, timeout=60)
        assert daemon.stop() == 0
    with PcapNgReader(str(tmp_path / "headers.pcapng")) as reader:
        recorded = [(bytes(packet.original), packet.wirelen) for packet in reader]
    identities = {(frame[:14], len(frame)) for frame in frames}
    recorded = [
        (frame, length) for frame, length in recorded if (frame[:14], length) in identities
    ]  # not what the kernel says there
    assert [length for _, length in recorded] == [len(frame) for frame in frames]
    assert all(frame.startswith(begin) for frame, (begin, _) in zip(frames, recorded, strict=True))
    assert [len(frame) for frame, _ in recorded] == expected
    assert min(expected) >= 34 and sum(expected) < sum(map(len, frames)) / 2
