# SPDX-License-Identifier: Apache-2.0
"""Anomalies of the studies, reproduced in labs whose cause is known: does the top finding name it?

ANOMALIES lists the codes that explain each anomaly, the words with which the finding must name place and advice, and the fate
that the link must have given to its packets. They are fixed before a run, so a result cannot influence them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.lab import StudyLab, study_lab
from wiretale.analyzer.errors import WiretaleError

Row = tuple[Any, ...]
Test = tuple[str | int, ...]
IPERF = ("--udp", "--size", 1470)
NOT_REPRODUCED = """
Not among them: UDP with six times the rate of TCP on one LAN (S2) and UDP at half of its rate beside TCP (S5), which sections of
their own reproduce; the receiver that hangs if the end markers are lost (S1), because that is a fault of its program. The
cause in a lab does not prove the cause on the networks of the studies. Until findings were ordered by their cost, the finding
expected for TCP over the WAN (S3) was `recovery-limited`; its cause, the loss at its place, now comes first.
"""
HEADINGS = "study, anomaly as published | reproduced by | fate of packets on the link | top finding | names the cause"


@dataclass(frozen=True)
class Anomaly:
    """A published anomaly, the test that reproduces it, and the expected result."""

    name: str
    published: str
    tests: tuple[Test, ...]  # run at the same time
    causes: tuple[str, ...]  # codes of findings; each explains it
    says: tuple[str, ...]  # words of its sentence and advice: place and remedy
    profile: str = "same-switch"
    link: str = ""  # TOML of another profile
    point: str = "after"  # capture to explain: after the link, near the receiver, as in the studies
    lost_by: tuple[str, ...] = ()  # fates of most losses on the link; if empty, at most 0.1% may be lost
    receiver: tuple[str, ...] = ()  # options of the receiving program
    on_link: bool = (
        False  # its cause is between the capture points, so that only one of them may have this finding first
    )
    compared: bool = False  # `wiretale compare` with the receiver's log answers, not `explain`
    remark: str = ""


WIRE_WITH = """\
description = "100 Mb/s Ethernet with {what}"
mtu = 1500
card = "100Mbit"
[both]
rate = "100Mbit"
overhead = 38
delay = "50us"
queue = 200
[forward]
{forward}
"""
ABOVE_PATH = ("before the capture point", "Send at most")
QUEUE_OVERFLOWS = (
    "were lost before the capture point",
    "this is congestion, not a bad link",
    "Send datagrams that need no fragments",
)
ANOMALIES = (
    Anomaly(
        "narrow",
        "S6: on 1 Mb/s half of the packets of 1.9 Mb/s are lost, and the others take 162 ms",
        (("--udp", "--size", 972, "--rate", "1846800", "--time", 4),),
        ("udp-above-path",),
        ABOVE_PATH,
        profile="s6-narrow-link",
        lost_by=("queue",),
        on_link=True,
    ),
    Anomaly(
        "wlan",
        "S5: 802.11b carries at most 6.5 Mb/s at any offered rate",
        ((*IPERF, "--rate", "25M", "--time", 3),),
        ("udp-above-path",),
        ABOVE_PATH,
        profile="wlan-b",
        lost_by=("queue",),
        on_link=True,
    ),
    Anomaly(
        "home",
        "S2: from LAN to home broadband less than 10 % are received",
        (("--udp", "--size", 1024, "--time", 3),),
        ("udp-above-path",),
        ABOVE_PATH,
        profile="lan-to-home",
        lost_by=("queue",),
        on_link=True,
    ),
    Anomaly(
        "wire",
        "S5: a wire of 100 Mb/s carries 95.9 of 100 Mb/s offered",
        ((*IPERF, "--rate", "100M", "--time", 3),),
        ("wire-full",),
        ("Ethernet of 100 Mbit/s", "Use a faster link"),
    ),
    Anomaly(
        "wire-tcp",
        "S5: TCP reaches at most 94.4 Mb/s on a wire of 100 Mb/s",
        (("--time", 4),),
        ("wire-full",),
        ("Ethernet of 100 Mbit/s", "Use a faster link"),
    ),
    Anomaly(
        "small",
        "S2: UDP is slower with smaller blocks (64 bytes)",
        (("--udp", "--size", 64, "--time", 2),),
        ("small-packets",),
        ("64 bytes of payload", "Put more into each packet"),
    ),
    Anomaly(
        "wlan-large",
        "S3: of 100 datagrams of 60 000 bytes over WLAN 20 % are received",
        (("--udp", "--size", 60000, "--rate", "40M", "--time", 3),),
        ("loss-amplified",),
        QUEUE_OVERFLOWS,
        profile="wlan-g",
        lost_by=("queue",),
        on_link=True,
    ),
    Anomaly(
        "wan-large",
        "S3: of 100 datagrams of 20 000 bytes over the WAN 6 % are received",
        (("--udp", "--size", 20000, "--count", 100, "--rate", "52M"),),
        ("loss-amplified",),
        QUEUE_OVERFLOWS,
        profile="wan",
        lost_by=("queue",),
        on_link=True,
        remark="100 blocks in 304 ms, as published",
    ),
    Anomaly(
        "large",
        "S2, S4: blocks larger than the MTU are lost much more often than small ones",
        (("--udp", "--size", 8192, "--rate", "30M", "--time", 3),),
        ("loss-amplified",),
        ("lost before the capture point", "losses are about independent", "Send datagrams that need no fragments"),
        link=WIRE_WITH.format(what="1% of random loss", forward='loss = "1%"'),
        lost_by=("random",),
        on_link=True,
    ),
    Anomaly(
        "overrun",
        "S4: UDP blocks are lost on a switch that is not congested",
        (("--udp", "--size", 1000, "--count", 20000),),
        ("receiver_kernel",),
        ("by the receiver's kernel", "The tracer captured everything", "raise the receive buffer"),
        receiver=("--json", "--buffer", "2000"),  # two datagrams
        compared=True,
    ),
    Anomaly(
        "order",
        "S4: UDP blocks arrive out of order",
        (("--udp", "--size", 1000, "--rate", "30M", "--time", 2),),
        ("blocks-reordered",),
        ("came after a later one", "between sender and capture point"),
        link=WIRE_WITH.format(what="reordered packets", forward='reorder = "0.5%"\ndistance = 3'),
        on_link=True,
    ),
    Anomaly(
        "mix",
        "S5: TCP falls from 94 to 65.5 Mb/s as five UDP flows of 10 Mb/s are added",
        (("--time", 4), *(((*IPERF, "--rate", "10M", "--time", 4),) * 5)),
        ("unfair-share",),
        ("5 UDP transfers at a steady rate", "Lower the rate that the UDP applications offer"),
    ),
    Anomaly(
        "three",
        "S5: three TCP sessions with staggered starts do not share evenly",
        (("--streams", 3, "--time", 4, "--stagger", 1),),
        ("unfair-share",),
        ("3 transfers from 10.99.0.1 to 10.99.0.2", "a fair queue at the bottleneck"),
    ),
    Anomaly(
        "wan-tcp",
        "S3: TCP over the WAN reaches 0.18 to 0.56 MB/s, a fraction of its rate",
        (("--time", 4),),
        ("lost-downstream",),
        ("between capture point and receiver", "Check queues, links and policers"),
        profile="wan",
        point="before",
        lost_by=("queue", "gilbert"),
        on_link=True,
    ),
    Anomaly(
        "far-tcp",
        "S2: from LAN to LAN over 45 Mb/s TCP has half the rate of UDP",
        (("--size", 8192, "--count", 64),),  # less than what slow start needs to overflow the queue
        ("slow-start",),
        ("in slow start", "Reuse connections"),
        profile="lan-to-lan",
        point="before",
    ),
)


def run_anomaly(anomaly: Anomaly, folder: Path) -> Row:
    """Reproduces an anomaly, and returns its row of the table."""
    place = folder / f"anomaly-{anomaly.name}"
    place.mkdir(parents=True, exist_ok=True)
    profile = anomaly.profile
    if anomaly.link:
        profile = str(place / "link.toml")
        Path(profile).write_text(anomaly.link, "utf-8")
    udp_alone = all("--udp" in test for test in anomaly.tests)
    with study_lab(profile, place, apart=udp_alone, captured=True, receiver=anomaly.receiver) as lab:
        lab.send_together(anomaly.tests)
    code, text = compared_answer(place) if anomaly.compared else top_finding(place / anomaly.point)
    fates, as_expected = link_fates(lab, anomaly)
    verdict = judge(anomaly, code, text) if as_expected else "no verdict: the link did not lose as expected"
    if verdict == "yes" and anomaly.on_link:
        elsewhere, _ = top_finding(place / ("before" if anomaly.point == "after" else "after"))
        verdict = f"no: `{elsewhere}` at both sides of the link" if elsewhere in anomaly.causes else verdict
    return anomaly.published, commands_of(anomaly), fates, f"`{code}`: {text}" if code else text, verdict


def judge(anomaly: Anomaly, code: str, text: str) -> str:
    """Returns `yes` if a finding names cause, place and remedy of an anomaly, or the expected ones that are missing."""
    if code not in anomaly.causes:
        return f"no: expected {' or '.join(f'`{cause}`' for cause in anomaly.causes)}"
    missing = [words for words in anomaly.says if words not in text]
    return f"no: expected {', '.join(f'“{words}”' for words in missing)}" if missing else "yes"


def top_finding(capture: Path) -> tuple[str, str]:
    """Returns code, and sentence with advice, of the first finding."""
    from wiretale.analyzer.trace import analyze

    rows = analyze(str(capture)).findings.rows()
    for row in rows:
        print(f"    {row['code']}: {row['sentence']}", file=sys.stderr)
    return (rows[0]["code"], f"{rows[0]['sentence']} *{rows[0]['advice']}*") if rows else ("", "none")


def compared_answer(place: Path) -> tuple[str, str]:
    """Returns the place with most losses, and the answers of `wiretale compare TRACER --receiver-log`."""
    from wiretale.analyzer.compare.answers import answers
    from wiretale.analyzer.compare.comparison import compare_captures

    with compare_captures(str(place / "after"), receiver_log=str(place / "receiver.json")) as comparison:
        sentences = list(answers(comparison))
        places = comparison.ledgers[0].lost if comparison.ledgers else {}
    most = max(places, key=lambda name: places[name], default="")
    return most, " ".join(sentences)


def link_fates(lab: StudyLab, anomaly: Anomaly) -> tuple[str, bool]:
    """Returns the fates of the sender's packets on the link, and whether they are as the anomaly needs them."""
    rows = lab.truth(
        "SELECT fate, count(*) FROM truth WHERE direction = 0 GROUP BY fate ORDER BY fate = 'delivered' DESC, count(*) DESC"
    )
    (late,), *_ = lab.truth("SELECT count(*) FROM truth WHERE direction = 0 AND reordered")
    lost = [(fate, count) for fate, count in rows if fate != "delivered"]
    fates = [f"{count:,} packets {fate}" if fate == "delivered" else f"{count:,} lost ({fate})" for fate, count in rows]
    fates += [f"{late:,} held back"] if late else []
    most = lost[0][0] if lost else ""
    small = sum(count for _, count in lost) <= 0.001 * sum(count for _, count in rows)
    return ", ".join(fates), small if not anomaly.lost_by else most in anomaly.lost_by


def commands_of(anomaly: Anomaly) -> str:
    """Returns the profile and the commands that reproduce an anomaly."""
    where = anomaly.link.split('"')[1] if anomaly.link else f"`{anomaly.profile}`"
    commands = [" ".join(map(str, test)) for test in anomaly.tests]
    kinds = {command: commands.count(command) for command in commands}
    sent = " and ".join(f"{count} × `{command}`" if count > 1 else f"`{command}`" for command, count in kinds.items())
    options = f"; receive `{' '.join(anomaly.receiver)}`" if anomaly.receiver else ""
    command = "`compare after --receiver-log receiver.json`" if anomaly.compared else f"`explain {anomaly.point}`"
    return f"{where}: send {sent}{options}; {command}{f' ({anomaly.remark})' if anomaly.remark else ''}"


def anomalies(folder: Path) -> list[Row]:
    """Returns the rows of all anomalies; if one cannot be run, its row contains the reason."""
    rows = []
    for anomaly in ANOMALIES:
        print(f"  {anomaly.name}", file=sys.stderr)
        try:
            rows.append(run_anomaly(anomaly, folder))
        except WiretaleError as error:
            rows.append((anomaly.published, commands_of(anomaly), "–", f"could not be run: {error}", "unknown"))
    return rows


def anomalies_section(rows: list[Row], table: Callable[[str, list[Row]], str]) -> str:
    right = sum(row[-1] == "yes" for row in rows)
    text = (
        "Anomalies of the studies, reproduced with `wiretale-traffic send` in a lab in 2 to 6 seconds each (profile, then the "
        "sender's options). The top finding is the first of `wiretale explain` for the capture after the link (near the "
        "receiver) or before it, with its advice in italics; if the cause must be read from the receiver's log, `wiretale "
        "compare` answers. It names the cause if its code and the words for place and remedy are those that were listed before "
        "the run, if the link's own log shows the expected losses, and if for a cause on the link the capture on its other side "
        "has another finding first. "
        f"The top finding names the cause of {right} of {len(rows)}.\n\n"
    )
    return (
        text + table(HEADINGS, [tuple(str(cell).replace("|", "\\|") for cell in row) for row in rows]) + NOT_REPRODUCED
    )
