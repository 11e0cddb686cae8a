# SPDX-License-Identifier: Apache-2.0
"""The first screen: the answer, the time, causes, flows, what was judged and the next command, at any width."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import needs
import wiretale
from checkout import CAPTURES, SAMPLES, Run
from plain_wire import Connection, Wire
from processes import on_terminal
from wiretale.reports.terminal.console import with_code
from wiretale.reports.terminal.screen.page import screen_parts
from wiretale.reports.terminal.screen.time_bar import widths

BLOCKS = ("Where the time went", "Causes", "Flows", "Judged", "File", "Next")
ONE_FLOW_LINES, LINES = 24, 40


def printed(trace: wiretale.Trace, name: str, width: int) -> list[str]:
    """The lines of the screen of a file that was named so."""
    trace._arguments = [name]
    console = Console(file=StringIO(), width=width, highlight=False, emoji=False, markup=False, soft_wrap=False)
    for part in screen_parts(trace, console):
        console.print(part, crop=False)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def blocks(lines: list[str]) -> list[str]:
    """The blocks that a screen has, by the word with which each begins."""
    return [name for line in lines for name in BLOCKS if line.startswith(name)]


@pytest.fixture(scope="module")
def traces() -> dict[str, wiretale.Trace]:
    """The analysis of each sample."""
    with pytest.warns(wiretale.DamagedInputWarning):
        return {path.name: wiretale.analyze(path) for path in CAPTURES}


@pytest.mark.parametrize("width", [60, 80, 100, 160, 200])
def test_no_word_is_lost_at_any_width(traces: dict[str, wiretale.Trace], width: int) -> None:
    for name, trace in traces.items():
        lines = printed(trace, name, width)
        assert max(map(len, lines)) <= width, name
        text = "".join("".join(lines).split())
        for sentence in filter(None, (trace.answer.sentence, trace.answer.caveat, trace.answer.advice)):
            assert "".join(with_code(sentence).plain.split()) in text, (name, sentence)
        order = blocks(lines)
        assert order == [block for block in BLOCKS if block in order] and order[-3:] == list(BLOCKS[-3:]), name


def test_a_screen_is_short(traces: dict[str, wiretale.Trace]) -> None:
    for name, trace in traces.items():
        most = ONE_FLOW_LINES if len(trace.flows) == 1 else LINES
        assert all(len(printed(trace, name, width)) <= most for width in (60, 80)), name


def test_a_screen_with_long_texts_leaves_out_what_other_commands_have() -> None:
    """Two of these would have 26 lines, and the others fit."""
    folder = needs.shared("labelled/questions")
    for name in ("mss_clamp_536.pcap.gz", "reorder_rr_b.pcap.gz", "app_limited.pcap.gz"):
        trace = wiretale.analyze(folder / name)
        lines = printed(trace, name, 80)
        assert len(trace.flows) == 1 and len(lines) <= ONE_FLOW_LINES, name
        assert "".join(trace.answer.sentence.split()) in "".join("".join(lines).split())
        assert "  Fix  " in "\n".join(lines) and ("more cause" in "\n".join(lines)) == (name != "app_limited.pcap.gz")


def test_a_narrow_screen_leaves_out_blank_lines_at_last() -> None:
    """Its texts alone have 24 lines; it keeps all six blocks."""
    name = "jumbo_mismatch.pcap"
    lines = printed(wiretale.analyze(needs.shared("labelled/questions") / name), name, 60)
    assert len(lines) <= ONE_FLOW_LINES and "" not in lines and blocks(lines) == list(BLOCKS)


def test_names_of_flows_break_at_the_sign_alone(traces: dict[str, wiretale.Trace]) -> None:
    rows = 0
    for name, trace in traces.items():
        ends = {row["source"] for row in trace.flows} | {row["destination"] for row in trace.flows}
        lines = printed(trace, name, 60)
        table = lines[next((n for n, line in enumerate(lines) if line.startswith("Flows")), len(lines)) :]
        for line in table[1 : table.index("") if "" in table else 0]:
            first = line.split()[0]
            assert any(first.strip("[").startswith(end) for end in ends) or first[0].isdigit(), (name, line)
            rows += 1
    assert rows >= len(traces)


def wires_to(servers: int) -> Wire:
    """A request to each of some servers, answered after 100 ms."""
    wire = Wire()
    for number in range(servers):
        talk = Connection(wire, 40000 + number, ("10.0.0.1", f"10.0.1.{number + 1}")).open(20 * number)
        at = 20 * number + 40
        talk.send(at, 0, 0, 300).send(at + 100, 1, 0, 2000, ack=300).send(at + 120, 0, 300, ack=2000)
    return wire


@pytest.mark.parametrize(("servers", "rows"), [(3, 3), (8, 8), (12, 8)])
def test_many_flows_are_a_few_rows(tmp_path: Path, servers: int, rows: int) -> None:
    trace = wiretale.analyze(wires_to(servers).write(tmp_path / "many.pcap"))
    lines = printed(trace, "many.pcap", 100)
    assert sum(bool(re.match(r"10\.0\.0\.1 ↔ 10\.0\.1|10\.0\.1\.\d+:80", line)) for line in lines) == rows
    assert ("4 more" in "".join(lines)) == (servers == 12)


def test_parts_of_a_bar_fill_it() -> None:
    for times in ([1.0], [1.0, 1.0, 1.0], [1e-9, 5.0], [0.02, 0.02, 99.96], [float(n) for n in range(1, 12)]):
        cells = widths(times, 60)
        assert sum(cells) == 60 and min(cells) >= 0
        assert all(bool(count) == (ns >= 0.01 * sum(times)) for count, ns in zip(cells, times, strict=True))


def test_the_screen_is_the_default_and_all_has_every_finding(wiretale_run: Run, samples: Path) -> None:
    screen, every = (wiretale_run("analyze", samples / "tcp_losses.pcap", *words).stdout for words in ((), ("--all",)))
    assert blocks(screen.splitlines())[-1] == "Next" and "Transfers" not in screen
    codes = wiretale.analyze(samples / "tcp_losses.pcap").findings.column("code")
    assert codes and all(code in every for code in codes)
    command = screen.splitlines()[-1].split("wiretale ", 1)[1].split()
    assert wiretale_run(*command).stdout


def test_the_next_command_reads_the_same_packets(wiretale_run: Run, samples: Path, tmp_path: Path) -> None:
    """Also from a name that begins like an option, or has a blank, and with the options of the analysis."""
    for name in ("-x.pcap", "a b.pcap"):
        shutil.copy(samples / "tcp_losses.pcap", tmp_path / name)
        screen = wiretale_run(
            "analyze", f"./{name}", "--filter", "tcp port 5201", cwd=tmp_path, env={"COLUMNS": "300"}
        ).stdout
        words = shlex.split(screen.splitlines()[-1])
        assert words[:3] == ["Next", "wiretale", f"./{name}"] and words[words.index("--filter") + 1] == "tcp port 5201"
        assert "The last segment of a burst" in wiretale_run(*words[2:], cwd=tmp_path).stdout
    with (samples / "tcp_losses.pcap").open("rb") as stream:
        assert "Next" not in wiretale_run("-", stdin=stream).stdout


@pytest.mark.parametrize("width", [60, 80])
def test_the_next_command_is_pasted_whole(width: int, samples: Path) -> None:
    """From a path that is wider than its column or the screen, too."""
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    for letters in (width - 14, width - 4, 2 * width):
        path = f"/{'a' * letters}/b c.pcap"
        screen = "\n".join(printed(trace, path, width))
        words = shlex.split(screen[screen.index("\nNext") :].replace("\\\n", ""))
        assert words == ["Next", "wiretale", path, "--cause", "tail-loss"]


def test_a_filter_without_packets_leads_to_the_whole_capture(wiretale_run: Run) -> None:
    path = str(SAMPLES / "tcp_losses.pcap")
    assert wiretale_run(path, "--filter", "udp port 9").stdout.splitlines()[-1].split() == ["Next", "wiretale", path]


@pytest.mark.parametrize("width", [60, 80])
def test_a_terminal_gets_lines_of_its_width(samples: Path, width: int) -> None:
    """The command in a pseudo-terminal, with colors."""
    script = (
        f'stty cols {width} rows 50; unset COLUMNS NO_COLOR; TERM=xterm-256color exec "$0" -m wiretale "$1" 2>/dev/null'
    )
    with on_terminal("sh", "-c", script, sys.executable, str(samples / "zero_window.pcap")) as program:
        text = program.end().decode()
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).splitlines()
    assert "\x1b[" in text and max(map(len, lines)) <= width
    assert blocks(lines) == list(BLOCKS)


def test_the_first_question_is_no_name_of_a_dns_server() -> None:
    trace = wiretale.analyze(SAMPLES / "findings" / "dns-unanswered.pcap.gz")
    names = {row["server_name"] for row in trace.flows.rows() if row["application"] == "dns"}
    lines = [line for line in printed(trace, "dns.pcap", 200) if "(DNS)" in line]
    assert lines and names and not any(name in line for name in names for line in lines), lines
