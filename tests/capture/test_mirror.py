# SPDX-License-Identifier: Apache-2.0
"""`wiretale-capture --mirror`: connections that a good mirror port delivers, and one with a fault."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scapy.all import IP, TCP, Dot1Q, Ether, raw

from capture_link import CaptureLink, StatusClient

pytestmark = pytest.mark.xdist_group("capture")

CONNECTIONS = 40
ENDS = (("02:00:00:00:00:01", "192.0.2.1", 40000), ("02:00:00:00:00:02", "192.0.2.2", 443))
REPLAY = """
import socket, sys
to = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
to.bind(("out0", 0))
for line in open(sys.argv[1]):
    to.send(bytes.fromhex(line))
"""


def frames(directions: str, tagged: str, times: int) -> Iterator[str]:
    """Handshakes and the acknowledgments behind them, as far as the mirror delivers them: `>` and `<` are the directions."""
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
                yield from [raw((head / tag if tag else head) / packet).hex()] * times


@pytest.mark.parametrize(
    ("directions", "tagged", "times", "fault", "words"),
    [
        ("<>", "", 1, "none", "mirror: both directions arrive"),
        (
            ">",
            "",
            1,
            "one_direction",
            "40 of 40: TCP connections show one direction only: at the switch, mirror receive and",
        ),
        ("<>", "", 2, "copies", "packets come twice: at the switch, mirror one port in both directions"),
        ("<>", ">", 1, "tags", "one direction has VLAN tags and the other has none"),
    ],
)
def test_the_fault_of_a_mirror_is_told(
    link: CaptureLink, tmp_path: Path, directions: str, tagged: str, times: int, fault: str, words: str
) -> None:
    listed = tmp_path / "frames"
    listed.write_text("\n".join(frames(directions, tagged, times)))
    with link.daemon("--mirror", watched=True) as daemon:
        subprocess.run(
            link.inside(link.sender, sys.executable, "-S", "-c", REPLAY, str(listed)), check=True, timeout=60
        )
        client = StatusClient(link.status)
        line = client.wait(lambda line: line["mirror"]["fault"] is not None, "a verdict", 20)
        client.close()
        assert not daemon.stop()
    assert line["mirror"]["fault"] == fault, line["mirror"]
    assert words in daemon.messages()
