# SPDX-License-Identifier: Apache-2.0
"""What was odd in the studies, rebuilt in labs: does the top finding name the cause that the lab knows?

Which codes explain an anomaly, and what the link must have done to its packets, is written down here, before anything is run.
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
NOT_REBUILT = """
Not rebuilt here: that UDP had six times TCP's rate on one LAN (S2) and lost up to half beside TCP (S5), neither of which shows
between these hosts; and the receiver that hangs when the end markers are lost (S1), which is a fault of
that program. That the cause is the same in a lab does not prove what it was on the studies' networks.
"""
HEADINGS = "study, anomaly as published | rebuilt by | what the link did | top finding | is that the cause"


@dataclass(frozen=True)
class Anomaly:
    """One of them, and what must be found."""

    name: str
    published: str
    tests: tuple[Test, ...]  # sent together
    causes: tuple[str, ...]  # codes of findings, any of which explains it
    profile: str = ""
    link: str = ""  # TOML of a profile, where none that comes with wiretale is like it
    point: str = "after"  # which capture is explained: near the receiver, as the studies' tracer
    lost_by: tuple[str, ...] = ()  # fates of most of what the link lost; none: it must have lost next to nothing
    receiver: tuple[str, ...] = ()  # options of the receiving program; with a log, captures are compared with it
    compared: bool = False
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
ANOMALIES = (
    Anomaly(
        "narrow",
        "S6: on 1 Mb/s half of the packets of 1.9 Mb/s are lost, and those that come take 162 ms",
        (("--udp", "--size", 972, "--rate", "1846800", "--time", 4),),
        ("udp-above-path",),
        profile="s6-narrow-link",
        lost_by=("queue",),
    ),
    Anomaly(
        "wlan",
        "S5: over 802.11b no more than 6.5 Mb/s come through, whatever is offered",
        ((*IPERF, "--rate", "25M", "--time", 3),),
        ("udp-above-path",),
        profile="wlan-b",
        lost_by=("queue",),
    ),
    Anomaly(
        "home",
        "S2: from LAN to home broadband less than 10 % are received",
        (("--udp", "--size", 1024, "--time", 3),),
        ("udp-above-path",),
        profile="lan-to-home",
        lost_by=("queue",),
    ),
    Anomaly(
        "wire",
        "S5: of 100 Mb/s offered to a wire of 100 Mb/s 95.9 come through",
        ((*IPERF, "--rate", "100M", "--time", 3),),
        ("wire-full",),
        profile="same-switch",
    ),
    Anomaly(
        "wire-tcp",
        "S5: the most that TCP brings over a wire of 100 Mb/s is 94.4",
        (("--time", 4),),
        ("wire-full",),
        profile="same-switch",
    ),
    Anomaly(
        "small",
        "S2: the smaller the blocks, the slower is UDP (64 bytes)",
        (("--udp", "--size", 64, "--time", 2),),
        ("small-packets",),
        profile="same-switch",
    ),
    Anomaly(
        "wlan-large",
        "S3: of 100 datagrams of 60 000 bytes over WLAN 20 % are received",
        (("--udp", "--size", 60000, "--rate", "40M", "--time", 3),),
        ("loss-amplified", "datagram-incomplete"),
        profile="wlan-g",
        lost_by=("queue",),
    ),
    Anomaly(
        "wan-large",
        "S3: of 100 datagrams of 20 000 bytes over the WAN 6 % are received",
        (("--udp", "--size", 20000, "--count", 100, "--rate", "52M"),),
        ("loss-amplified", "datagram-incomplete"),
        profile="wan",
        lost_by=("queue",),
        remark="100 blocks in 304 ms, as published",
    ),
    Anomaly(
        "large",
        "S2, S4: blocks larger than the MTU are lost much more often than small ones",
        (("--udp", "--size", 8192, "--rate", "30M", "--time", 3),),
        ("loss-amplified",),
        link=WIRE_WITH.format(what="1% of random loss", forward='loss = "1%"'),
        lost_by=("random",),
    ),
    Anomaly(
        "overrun",
        "S4: UDP blocks are lost on a switch that is not congested",
        (("--udp", "--size", 1000, "--count", 20000),),
        ("receiver_kernel",),
        profile="same-switch",
        receiver=("--json", "--buffer", "8000"),
        compared=True,
    ),
    Anomaly(
        "order",
        "S4: UDP blocks come out of order",
        (("--udp", "--size", 1000, "--rate", "30M", "--time", 2),),
        ("blocks-reordered",),
        link=WIRE_WITH.format(what="some packets overtaken", forward='reorder = "0.5%"\ndistance = 3'),
    ),
    Anomaly(
        "mix",
        "S5: TCP falls from 94 to 65.5 Mb/s as five UDP flows of 10 Mb/s are added",
        (("--time", 4), *(((*IPERF, "--rate", "10M", "--time", 4),) * 5)),
        ("unfair-share", "wire-full"),
        profile="same-switch",
    ),
    Anomaly(
        "three",
        "S5: three TCP sessions, each begun later, do not share evenly",
        (("--streams", 3, "--time", 4, "--stagger", 1),),
        ("unfair-share",),
        profile="same-switch",
    ),
    Anomaly(
        "wan-tcp",
        "S3: TCP over the WAN brings 0.18 to 0.56 MB/s, a fraction of its rate",
        (("--time", 4),),
        ("loss-limited-window", "recovery-limited", "timeout-stalls"),
        profile="wan",
        point="before",
        lost_by=("queue", "gilbert"),
    ),
    Anomaly(
        "far-tcp",
        "S2: from LAN to LAN over 45 Mb/s TCP has half of what UDP has",
        (("--size", 8192, "--count", 128),),
        ("slow-start",),
        profile="lan-to-lan",
        point="before",
    ),
)


def run_anomaly(one: Anomaly, folder: Path) -> Row:
    """Rebuilds one, explains its capture, and judges that."""
    place = folder / f"anomaly-{one.name}"
    place.mkdir(parents=True, exist_ok=True)
    profile = one.profile
    if one.link:
        profile = str(place / "link.toml")
        Path(profile).write_text(one.link, "utf-8")
    udp_alone = all("--udp" in test for test in one.tests)
    with study_lab(profile, place, apart=udp_alone, captured=True, receiver=one.receiver) as lab:
        lab.send_together(one.tests)
    code, sentence = compared_answer(place) if one.compared else top_finding(place / one.point)
    done, as_meant = link_did(lab, one)
    verdict = judge(one, code, as_meant)
    return one.published, rebuilt(one), done, f"`{code}`: {sentence}" if code else sentence, verdict


def judge(one: Anomaly, code: str, as_meant: bool) -> str:
    """Whether the cause was found; of a lab that did something else nothing is claimed."""
    if not as_meant:
        return "the link did not do what was meant: no verdict"
    return "yes" if code in one.causes else f"no: {' or '.join(f'`{cause}`' for cause in one.causes)} was expected"


def top_finding(capture: Path) -> tuple[str, str]:
    """Code and sentence of what `wiretale explain` says first."""
    from wiretale.analyzer.trace import analyze

    rows = analyze(str(capture)).findings.rows()
    for row in rows:
        print(f"    {row['code']}: {row['sentence']}", file=sys.stderr)
    return (rows[0]["code"], rows[0]["sentence"]) if rows else ("", "none")


def compared_answer(place: Path) -> tuple[str, str]:
    """The place where most was lost, and what `wiretale compare TRACER --receiver-log` says first."""
    from wiretale.analyzer.compare.answers import answers
    from wiretale.analyzer.compare.comparison import compare_captures

    with compare_captures(str(place / "after"), receiver_log=str(place / "receiver.json")) as vantage:
        said = list(answers(vantage))
        places = vantage.ledgers[0].lost if vantage.ledgers else {}
    most = max(places, key=lambda name: places[name], default="")
    return most, " ".join(said)


def link_did(lab: StudyLab, one: Anomaly) -> tuple[str, bool]:
    """What the truth says of the packets from the sender, and whether that is what was to be rebuilt."""
    rows = lab.truth(
        "SELECT fate, count(*) FROM truth WHERE direction = 0 GROUP BY fate ORDER BY fate = 'delivered' DESC, count(*) DESC"
    )
    (late,), *_ = lab.truth("SELECT count(*) FROM truth WHERE direction = 0 AND reordered")
    lost = [(fate, count) for fate, count in rows if fate != "delivered"]
    told = [f"{count:,} packets {fate}" if fate == "delivered" else f"{count:,} lost ({fate})" for fate, count in rows]
    told += [f"{late:,} held back"] if late else []
    most = lost[0][0] if lost else ""
    small = sum(count for _, count in lost) <= 0.001 * sum(count for _, count in rows)
    return ", ".join(told), small if not one.lost_by else most in one.lost_by


def rebuilt(one: Anomaly) -> str:
    """The profile and the commands."""
    where = f"`{one.profile}`" if one.profile else one.link.split('"')[1]
    commands = [" ".join(map(str, test)) for test in one.tests]
    kinds = {command: commands.count(command) for command in commands}
    sent = " and ".join(f"{count} × `{command}`" if count > 1 else f"`{command}`" for command, count in kinds.items())
    options = f"; receive `{' '.join(one.receiver)}`" if one.receiver else ""
    asked = "`compare after --receiver-log receiver.json`" if one.compared else f"`explain {one.point}`"
    return f"{where}: send {sent}{options}; {asked}{f' ({one.remark})' if one.remark else ''}"


def anomalies(folder: Path) -> list[Row]:
    """All of them, one after the other; one that cannot be run says so."""
    rows = []
    for one in ANOMALIES:
        print(f"  {one.name}", file=sys.stderr)
        try:
            rows.append(run_anomaly(one, folder))
        except WiretaleError as error:
            rows.append((one.published, rebuilt(one), "–", f"could not be run here: {error}", "not known"))
    return rows


def anomalies_section(rows: list[Row], table: Callable[[str, list[Row]], str]) -> str:
    """The table with what it is."""
    right = sum(row[-1] == "yes" for row in rows)
    text = (
        "What was odd in the studies, rebuilt with `wiretale-traffic send` in a lab (profile, then the sender's options), "
        "in 2 to 6 seconds each. The top finding is the first that `wiretale explain` gives of the capture behind the link "
        "(`after`, near the receiver) or before it; where a receiver's log is needed, `wiretale compare` answers in its "
        "place. Whether it names the cause is judged by its code, which was written down before, and by the link's own "
        f"record of what it did to the packets. Here {right} of {len(rows)} are explained by the top finding.\n\n"
    )
    return text + table(HEADINGS, [tuple(str(cell).replace("|", "\\|") for cell in row) for row in rows]) + NOT_REBUILT
