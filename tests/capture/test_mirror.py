# SPDX-License-Identifier: Apache-2.0
"""`wiretale-capture --mirror`: connections that a good mirror port delivers, and one with a fault."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, Dot1Q, Ether, raw

from capture_link import PACKET_SOCKET, CaptureLink, StatusClient

pytestmark = pytest.mark.xdist_group("capture")

CONNECTIONS, EARLY_LEAST = 40, 30  # sent, and enough for a first verdict
ENDS = (("02:00:00:00:00:01", "192.0.2.1", 40000), ("02:00:00:00:00:02", "192.0.2.2", 443))
REPLAY = f"""{PACKET_SOCKET}
import sys
to = {{}}
for line in open(sys.argv[1]):
    interface, frame = line.split()
    if interface not in to:
        to[interface] = PacketSocket(interface)
    to[interface].send(bytes.fromhex(frame))
"""


def frames(directions: str, tagged: str, times: int, back: str = "out0") -> Iterator[str]:
    """Handshakes and the acknowledgments behind them, as far as the mirror delivers them: `>` and `<` are the directions, the
    second of which leaves by the interface `back`."""
    for number in range(CONNECTIONS):
        for place, (direction, flags) in enumerate(((">", "S"), ("<", "SA"), (">", "A"), ("<", "A"))):
            (source, sender, port), (target, receiver, other) = ENDS if direction == ">" else ENDS[::-1]
            ports = (port + number, other) if direction == ">" else (port, other + number)
            tag = Dot1Q(vlan=10) if direction in tagged else None
            head = Ether(src=source, dst=target)
            packet = IP(src=sender, dst=receiver, id=4 * number + place + 1) / TCP(
                sport=ports[0], dport=ports[1], flags=flags
            )
            if direction in directions:
                frame = raw((head / tag if tag else head) / packet).hex()
                yield from [f"{back if direction == '<' else 'out0'} {frame}"] * times


def verdict(link: CaptureLink, folder: Path, sent: Iterator[str], *options: str) -> tuple[dict[str, Any], str]:
    """The first status with a verdict on these frames, and all messages."""
    listed = folder / "frames"
    listed.write_text("\n".join(sent))
    with link.daemon("--mirror", *options, watched=True) as daemon:
        subprocess.run(
            link.inside(link.sender, sys.executable, "-S", "-c", REPLAY, str(listed)), check=True, timeout=60
        )
        client = StatusClient(link.status)
        line = client.wait(lambda line: line["mirror"]["fault"] is not None, "a verdict", 20)
        client.close()
        assert not daemon.stop()
    return line, daemon.messages()


@pytest.mark.parametrize(
    ("directions", "tagged", "times", "fault", "words"),
    [
        ("<>", "", 1, "none", "mirror: both directions arrive"),
        (
            ">",
            "",
            1,
            "one_direction",
            ": TCP connections show one direction only: at the switch, mirror receive and",
        ),
        ("<>", "", 2, "copies", "packets come twice: at the switch, mirror one port in both directions"),
        ("<>", ">", 1, "tags", "one direction has VLAN tags and the other has none"),
    ],
)
def test_the_fault_of_a_mirror_is_told(
    link: CaptureLink, tmp_path: Path, directions: str, tagged: str, times: int, fault: str, words: str
) -> None:
    line, messages = verdict(link, tmp_path, frames(directions, tagged, times))
    assert line["mirror"]["fault"] == fault, line["mirror"]
    assert words in messages and "filter" not in messages


def test_both_ports_of_a_tap_are_one_mirror(link: CaptureLink, tmp_path: Path) -> None:
    """Each is read by a thread of its own, a block at a time: the handshakes do not come in their order."""
    link.add_interface("in8")
    line, messages = verdict(link, tmp_path, frames("<>", "", 1, "out8"), "-i", "in8")
    link.disconnect("in8")
    assert line["mirror"]["fault"] == "none" and EARLY_LEAST <= line["mirror"]["connections"] <= CONNECTIONS
    assert "mirror: both directions arrive" in messages


def test_a_filter_may_be_the_fault(link: CaptureLink, tmp_path: Path) -> None:
    line, messages = verdict(link, tmp_path, frames("<>", "", 1), "-f", "src port 443")
    assert line["mirror"]["fault"] == "one_direction"
    assert messages.count("; or the filter leaves packets out\n") == 1
