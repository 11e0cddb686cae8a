# SPDX-License-Identifier: Apache-2.0
"""README.md shows the output of the commands, and its command lines work."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import needs
from checkout import ROOT
from wiretale.cli import COMMANDS

README = ROOT / "README.md"
TEXT = README.read_text("utf-8") if README.is_file() else ""
pytestmark = pytest.mark.skipif(not TEXT, reason="no README.md beside the tests")
COLUMNS = "144"  # of the terminal whose output it shows
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
CONSOLE = [text for _, text in BLOCKS if text.startswith("$ wiretale")]
LINES = [
    line.partition("  # ")[0].rstrip()
    for kind, text in BLOCKS
    if kind == "sh"
    for line in text.splitlines()
    if re.search(r"\bwiretale ", line.partition("  # ")[0])
]
TRAFFIC = (
    "send",
    "receive",
    "capture",
    "experiment",
    "lab",
    "view",
)  # not run here: they need peers, root, long or Ctrl-C
CAPTURES = ("transfer", "sender", "tracer", "receiver", "before", "after")


def wireshark(text: str) -> str | None:
    """The release of Wireshark whose verdicts a text shows: another one may judge otherwise."""
    found = re.search(r"Wireshark (\d+\.\d+)", text)
    return found and found[1]


def comparable(text: str) -> list[str]:
    """Lines without parts that differ by machine: the version of Wireshark."""
    return [re.sub(r"Wireshark \d+(\.\d+)+", "Wireshark VERSION", line).rstrip() for line in text.splitlines()]


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are those shown; a line of … stands for any number of them."""
    if not shown:
        return not printed
    if shown[0].strip() == "…":
        return any(matches(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])


def test_the_readme_has_the_output_of_the_main_commands() -> None:
    commands = {block.split()[2] for block in CONSOLE}
    assert {"analyze", "explain", "verify"} <= commands
    assert len(LINES) >= 15


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.split()[2])
def test_the_output_equals_the_command_s(wiretale_run: Any, block: str) -> None:
    command, *shown = block.splitlines()
    words = shlex.split(command.removeprefix("$ wiretale "))
    if words[0] == "verify":
        needs.skip_without(needs.programs("tshark"))
    done = wiretale_run(*words, cwd=ROOT, env={"COLUMNS": COLUMNS})
    assert done.returncode == 0, done.stderr
    if wireshark(done.stdout) != wireshark(block):
        pytest.skip(f"README shows the verdicts of Wireshark {wireshark(block)}, this is {wireshark(done.stdout)}")
    printed, wanted = comparable(done.stdout), comparable("\n".join(shown))
    assert matches(wanted, printed), done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the command lines name, and the command itself in PATH."""
    folder = tmp_path_factory.mktemp("readme")
    for name in CAPTURES:
        shutil.copy(ROOT / "sample_pcaps" / "tcp_losses.pcap", folder / f"{name}.pcapng")
    (folder / "day").mkdir()
    shutil.copy(ROOT / "sample_pcaps" / "tcp_losses.pcap", folder / "day" / "a.pcap.zst")  # recognised by its content
    (folder / "bin").mkdir()
    starter = folder / "bin" / "wiretale"
    starter.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m wiretale "$@"\n')
    starter.chmod(0o755)
    return folder


@pytest.mark.parametrize("line", [line for line in LINES if not re.search(rf"wiretale ({'|'.join(TRAFFIC)})\b", line)])
def test_a_command_line_runs(line: str, place: Path) -> None:
    if "wiretale verify" in line:
        needs.skip_without(needs.programs("tshark"))
    if "| jq" in line and shutil.which("jq") is None:
        line = line.partition("| jq")[0]
    script = line.replace("tcpdump -i eth0 -w -", "cat transfer.pcapng")
    path = f"{place / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    done = subprocess.run(
        ["sh", "-c", script], cwd=place, env={"PATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode in ((0, 5) if "doctor" in line else (0,)), done.stderr
    assert done.stdout or re.search(r"--report| -o |store add|watch ", line)


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_has_options_that_exist(wiretale_run: Any, line: str) -> None:
    command = re.search(r"\bwiretale (.*)", line)
    assert command
    words = shlex.split(command[1].partition(" | ")[0])
    name = words[0] if words[0] in COMMANDS or words[0] == "help" else "analyze"
    action = words[1:2] if name in ("experiment", "lab") else []
    text = wiretale_run("help" if name == "help" else name, *action, "--help").stdout
    options = [word.partition("=")[0] for word in words if word.startswith("-") and word != "-"]
    missing = [option for option in options if not re.search(rf"(^|[\s,\[]){re.escape(option)}\b", text)]
    assert missing == []
