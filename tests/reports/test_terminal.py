# SPDX-License-Identifier: Apache-2.0
"""The summary on terminals of every width."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import wiretale
from capture_files import write_pcap
from placed import placed
from plain_wire import START_NS, Connection, Wire

END = re.compile(r"(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):\d+")


def flows_part(text: str) -> str:
    return re.split(r"\n(?=Fragmentation|Findings)", re.split(r"\n\d+ flows?\n", text)[1])[0]


@pytest.mark.parametrize("width", ["40", "60", "80", "100", "200"])
@pytest.mark.parametrize("name", ["vlan_ipv6.pcap", "udp_fragments.pcap", "tcp_losses.pcap"])
def test_no_address_and_no_figure_is_broken(wiretale_run: Any, samples: Path, name: str, width: str) -> None:
    narrow = flows_part(wiretale_run("analyze", samples / name, "--all", env={"COLUMNS": width}).stdout)
    wide = flows_part(wiretale_run("analyze", samples / name, "--all", env={"COLUMNS": "300"}).stdout)
    assert END.findall(wide) and sorted(END.findall(narrow)) == sorted(END.findall(wide))
    assert all(len(line) <= int(width) for line in narrow.splitlines())


@pytest.mark.parametrize("width", ["84", "100", "120", "140"])
def test_no_word_of_a_problem_is_lost(wiretale_run: Any, samples: Path, width: str) -> None:
    flows = flows_part(
        wiretale_run("analyze", samples / "capture_drops.pcapng", "--all", env={"COLUMNS": width}).stdout
    )
    assert "5.79 kB payload not captured" in flows


def test_wide_terminals_show_more(wiretale_run: Any, samples: Path) -> None:
    def wide_text(width: str) -> str:
        return str(wiretale_run("analyze", samples / "vlan_ipv6.pcap", "--all", env={"COLUMNS": width}).stdout)

    assert "vlan 100 / vlan 30" in wide_text("200") and "vlan 100" not in wide_text("80")
    assert "IP rate" in wide_text("100") and "initiator" not in wide_text("40")


@pytest.mark.parametrize("columns", ["", "0", "-5", "1", "wide", "٣", "9" * 30])
def test_a_width_that_is_none_is_passed_over(wiretale_run: Any, samples: Path, columns: str) -> None:
    done = wiretale_run("analyze", samples / "vlan_ipv6.pcap", "--all", env={"COLUMNS": columns})
    assert done.returncode == 0 and "10.0.0.1:6000 → 10.0.0.2:6001" in done.stdout


def test_nothing_chosen_is_not_called_healthy(wiretale_run: Any, samples: Path) -> None:
    done = wiretale_run("analyze", samples / "vlan_ipv6.pcap", "--all", "--filter", "port 9")
    assert "66 filtered out" in done.stdout and "No packet was analyzed." in done.stdout
    assert "problem is visible" not in done.stdout


@pytest.mark.parametrize("name", ["tcp_losses.pcap", "vlan_ipv6.pcap", "findings/bufferbloat.pcap.gz", "damaged.pcap"])
@pytest.mark.filterwarnings("ignore::wiretale.DamagedInputWarning")
def test_explain_begins_with_the_answer_and_names_frames(wiretale_run: Any, samples: Path, name: str) -> None:
    trace = wiretale.analyze(samples / name)
    lines = wiretale_run("analyze", samples / name, "--all", env={"COLUMNS": "1000"}).stdout.splitlines()
    assert lines[0] == trace.answer.sentence and lines.count(lines[0]) == 1
    named = [line for line in lines if line.lstrip().startswith("evidence ")]
    for row in placed(trace):
        if row["first_frame"] is not None:
            assert any(re.search(rf"\bframes? [\d–, ]*\b{row['first_frame']}\b", line) for line in named), row


def test_a_finding_is_shown_alone(wiretale_run: Any, samples: Path) -> None:
    """With frames, filter, and the commands for its packets and its method; other findings are not denied."""
    path = samples / "tcp_losses.pcap"
    text = wiretale_run("analyze", path, "--finding", "lost-downstream", env={"COLUMNS": "1000"}).stdout
    first, *lines = text.splitlines()
    assert first.startswith("▲ 1 lost-downstream") and len(lines) < 10
    for line in (
        "evidence frames 155, 338",
        f"packets  wiretale cut {path} --finding 1 --around 0.1 --annotate -o finding-1.pcapng",
        "method   wiretale analyze --finding lost-downstream",
    ):
        assert f"  {line}" in lines
    text = wiretale_run("analyze", path, "--finding", "headers-cut").stdout
    assert text == "headers-cut is not among the findings of this capture.\n"


def test_packets_without_a_verdict_are_not_called_healthy(wiretale_run: Any, tmp_path: Path) -> None:
    """Datagrams without numbers, such as those of QUIC, show neither losses nor round trips."""
    wire = Wire()
    for n in range(20):
        wire.udp(n, b"x" * 100)
    path = write_pcap(
        tmp_path / "quic.pcap", ((START_NS + n * 10**6, frame) for n, (_, frame) in enumerate(wire.packets))
    )
    text = " ".join(wiretale_run("analyze", path).stdout.split())
    assert "losses and delays can't be seen" in text


def test_no_problem_is_said_of_limits_that_are_unknown(wiretale_run: Any, tmp_path: Path) -> None:
    talk = Connection(Wire()).open().data(30, 0, 100).ack(50, 100)
    path = talk.wire.write(tmp_path / "short.pcap")
    text = " ".join(wiretale_run("analyze", path, "--all").stdout.split())
    assert "Judged: all packets for loss and round trips. Not judged: limits (too few packets)." in text
    assert text.startswith("1 TCP connection carried 100 B and lost nothing")


@pytest.mark.parametrize(
    ("step_ns", "packets", "tick_ns", "tick"),
    [(10**6, 40, 10**6, "clock ticks every 1 ms"), (1000, 40, 1000, None), (10**6, 16, None, None)],
)
def test_a_coarse_clock_is_a_fact_of_the_capture(
    wiretale_run: Any, tmp_path: Path, step_ns: int, packets: int, tick_ns: int | None, tick: str | None
) -> None:
    """Two packets have each time, so that eight pairs and eight steps show the tick."""
    (_, frame), *_ = Wire().udp(0, b"x").packets
    path = write_pcap(tmp_path / "wire.pcap", ((START_NS + i // 2 * step_ns, frame) for i in range(packets)))
    assert wiretale.analyze(path).interfaces.column("clock_tick_ns") == [tick_ns]
    text = wiretale_run("analyze", path, "--all").stdout
    assert re.findall(r"clock ticks [^,\n]*", text) == ([tick] if tick else [])


def test_a_finding_stands_below_the_direction_that_it_is_about(wiretale_run: Any, tmp_path: Path) -> None:
    """Each end sends its data again long after the ACK of it."""
    talk = Connection(Wire()).open()
    for side, at in ((0, 0), (1, 0)):
        for ms in (100, 500):
            talk.send(ms + 50 * side, side, at, 1000, ack=1000 * side)
        talk.send(170 + side, 1 - side, 1000 * side, ack=1000)
    lines = wiretale_run("analyze", talk.wire.write(tmp_path / "both.pcap"), "--all").stdout.splitlines()
    ends = ("10.0.0.1:40000 → 10.0.0.2:80", "10.0.0.2:80 → 10.0.0.1:40000")
    heads = [line.partition("  ")[0].split(" ", 3)[3] for line in lines if line.startswith("flow")]
    assert sorted(heads) == sorted(ends)
    for number, line in enumerate(lines):
        if line.startswith("    ") and any(end in line for end in ends):
            (head,) = [before for before in lines[:number] if before.startswith("flow")][-1:]
            assert any(end in line and end in head for end in ends), line
    assert sum("spurious retransmission" in line for line in lines if line.startswith("    ")) == 2


def test_an_ip_protocol_that_is_not_decoded_has_its_number(wiretale_run: Any, tmp_path: Path) -> None:
    """253 is for experiments (RFC 3692), so that its payload has no ports."""
    path = Wire().ip(0, "10.0.0.1", "10.0.0.2", 253, bytes(80)).write(tmp_path / "wire.pcap")
    assert re.search(r"ip 253 +10\.0\.0\.1 → 10\.0\.0\.2 ", wiretale_run("analyze", path, "--all").stdout)
