# SPDX-License-Identifier: Apache-2.0
"""S5's UDP beside TCP with the queues of its time: a card with a queue of 1,000 packets, which TCP fills, and a UDP socket with a
send buffer of 64 datagrams, whose program waits until the queue has taken them.

Since Linux 3.6 a TCP socket keeps little in the queue of its own host (TCP small queues). So TCP here comes from a neighbor,
whose packets the sender's host forwards over the same card."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from studies.lab import StudyLab, study_lab
from wiretale.traffic.lab.process import run_program
from wiretale.traffic.program import find_program

Row = tuple[Any, ...]
PROFILE = """\
mtu = 1500
card = "100Mbit"
[both]
rate = "1Gbit"
overhead = 38
delay = "50us"
queue = 1000
"""
QUEUE = 1000  # packets: txqueuelen of the time
BUFFER = 73_728  # doubled by the kernel: about 64 datagrams with its own data
DATAGRAM = 1470
LEAD_SECONDS, SECONDS = 15, 8  # TCP has filled the queue before UDP begins
NAME = "nbr"  # of the cable between neighbor and sender
# TCP and UDP sessions, protocol of the published figure, and that figure in Mbit/s.
CASES = (
    *((1, udp, "tcp", figure) for udp, figure in ((0, 94.1), (1, 88.3), (3, 77.5), (5, 65.5))),
    *((tcp, 1, "udp", figure) for tcp, figure in ((1, 6.01), (3, 5.28), (5, 4.98))),
)
# In the time in which all ran: Mbit/s of each protocol, and of the UDP sessions.
RATES = """
WITH data AS (SELECT protocol, in_ns, payload_bytes FROM truth WHERE direction = 0 AND payload_bytes > 500),
span AS (SELECT coalesce(min(in_ns) FILTER (protocol = 17), max(in_ns) - {seconds}000000000) AS first,
    coalesce(max(in_ns) FILTER (protocol = 17), max(in_ns)) AS last FROM data)
SELECT protocol, sum(payload_bytes) * 8e3 / any_value(last - first) FROM data, span
WHERE in_ns BETWEEN first AND last GROUP BY protocol
"""


@contextmanager
def neighbor(lab: StudyLab) -> Iterator[str]:
    """Adds a host behind the sender's; yields the name of its namespace."""
    sender, name = lab.lab.inside("sender", "true")[-2], f"{lab.lab.name}-{NAME}"
    ip, tc, ethtool, sysctl = map(find_program, ("ip", "tc", "ethtool", "sysctl"))
    run_program([ip, "netns", "add", name])
    try:
        run_program([ip, "link", "add", NAME, "netns", name, "type", "veth", "peer", "name", NAME, "netns", sender])
        for host, address in ((name, "10.98.0.2/24"), (sender, "10.98.0.1/24")):
            run_program([ip, "-n", host, "address", "add", address, "dev", NAME])
            run_program([ip, "-n", host, "link", "set", NAME, "up"])
            run_program([ip, "netns", "exec", host, ethtool, "-K", NAME, "tso", "off", "gso", "off", "gro", "off"])
        run_program([ip, "-n", name, "route", "add", "default", "via", "10.98.0.1"])
        run_program(lab.lab.inside("sender", sysctl, "-qw", "net.ipv4.ip_forward=1"))
        run_program(lab.lab.inside("receiver", ip, "route", "add", "10.98.0.0/24", "via", "10.99.0.1"))
        queue = ["tc", "qdisc", "replace", "dev", "path", "parent", "1:1", "pfifo", "limit", str(QUEUE)]
        run_program(lab.lab.inside("sender", tc, *queue[1:]))
        yield name
    finally:
        subprocess.run([ip, "netns", "delete", name], check=False)


def run_case(lab: StudyLab, name: str, tcp: int, udp: int) -> None:
    """Runs sessions that all end at the same time."""
    total = LEAD_SECONDS + SECONDS
    tcp_test = ("--time", total, "--congestion", "cubic")
    udp_test = ("--udp", "--size", DATAGRAM, "--rate", "10M", "--time", SECONDS, "--buffer", BUFFER)
    started = [lab.start(*tcp_test, inside=name) for _ in range(tcp)]
    started += [lab.start(*udp_test, "--start-offset", LEAD_SECONDS) for _ in range(udp)]
    for process in started:
        lab.finish(process)


def udp_findings(place: Path) -> str:
    """Returns the codes of the warnings about UDP sessions that were captured behind the card, the first one first."""
    from wiretale.analyzer.trace import analyze

    (capture,) = (place / "before").iterdir()
    trace = analyze(str(capture))
    udp = {row["flow"] for row in trace.flows.rows() if row["protocol"] == "udp"}
    warnings = [row["code"] for row in trace.findings.rows() if row["flow"] in udp and row["severity"] != "info"]
    return ", ".join(dict.fromkeys(warnings))


def shared_card(folder: Path) -> list[Row]:
    """S5: TCP and UDP sessions, protocol, measured and published Mbit/s of each of its sessions, difference in %, and the
    warnings about UDP."""
    rows: list[Row] = []
    folder.mkdir(parents=True, exist_ok=True)
    profile = folder / "card.toml"
    profile.write_text(PROFILE)
    measured: dict[tuple[int, int], dict[int, float]] = {}
    warnings: dict[tuple[int, int], str] = {}
    for tcp, udp, protocol, published in CASES:
        if (tcp, udp) not in measured:
            place = folder / f"card-{tcp}-{udp}"
            with study_lab(str(profile), place, captured=udp > 0) as lab, neighbor(lab) as name:
                run_case(lab, name, tcp, udp)
            measured[tcp, udp] = dict(lab.truth(RATES.format(seconds=SECONDS)))
            warnings[tcp, udp] = udp_findings(place) if udp else ""
        number, sessions = (6, tcp) if protocol == "tcp" else (17, udp)
        rate = measured[tcp, udp][number] / sessions
        rows.append((tcp, udp, protocol, rate, published, 100 * (rate / published - 1), warnings[tcp, udp]))
    return rows
