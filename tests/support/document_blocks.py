# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md and docs/: blocks of `console` with their output, and command lines in blocks of `sh`.

`python .ci/shown_output.py` writes the output of the console blocks.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from checkout import ROOT, SAMPLES

WIDTH = "80"  # columns of the terminal whose output the documents show
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.is_file()]
BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CUT_HERE = "…"  # the last line of a block whose output is longer
#: They need other machines, a scheduler, or minutes: only their options are checked (test_remote.py runs those of remote.md).
NOT_RUN = re.compile(
    r"://|scheduler|10\.0\.0\.1|sbatch|--plan\b|--open-flows|view now/|/shared/|ssh:|--check\b|\bwiretale (lab run|lab check)\b"
)
PAGES_NOT_RUN = ("cluster.md",)
#: A shell in a network of its own, and lines in it beside their peers.
APART = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", 'ip link set lo up; eval "$0"')
SENDING = """
timeout 60 wiretale capture -i lo -w tracer.pcapng --overwrite -q & tracer=$!
timeout 60 wiretale receive --once -q & receiver=$!
{line}
sent=$?
wait $receiver
kill $tracer
wait $tracer
exit $sent
"""
RECEIVING = """
timeout 60 {line} & receiver=$!
timeout 60 wiretale send 127.0.0.1 --wait 9 -t 0.2 -q && wait $receiver
"""
CAPTURING = """
timeout 60 {line} 2> started & tracer=$!
until grep -q capturing started; do kill -0 $tracer || exit 1; sleep 0.05; done
kill $tracer
wait $tracer
"""
SERVING = """
rm -f address
BROWSER=true {line} > address &
until grep -qs 127.0.0.1 address; do kill -0 $! || exit 1; sleep 0.05; done
kill $!
wait $!
test $? = 143
"""
#: The samples that play the captures which the documents name.
CAPTURES = {
    "transfer": "fast_retransmissions.pcap",
    "call": "udp_blocks.pcap",
    "receiver": "go_back_n.pcap",
    "tracer": "go_back_n.pcap",
    **dict.fromkeys(("sender", "before", "after", "today", "new", "slow"), "tcp_losses.pcap"),
}


def console_blocks(page: Path) -> list[str]:
    """Returns the blocks of a page that show commands with their output."""
    return [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind == "console"]


def console_commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each command of a console block with the lines below it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *expected = part.rstrip("\n").split("\n")
        while command.endswith("\\"):
            command = command[:-1] + expected.pop(0).removeprefix("> ").strip()
        yield command, expected


def command_lines(page: Path) -> list[str]:
    """Returns the lines with wiretale in the blocks of `sh`, continued lines joined, without comments."""
    texts = [text for kind, text in BLOCK.findall(page.read_text("utf-8")) if kind == "sh"]
    lines = [line.partition("  # ")[0].rstrip() for text in texts for line in text.replace("\\\n", "").splitlines()]
    return [line for line in lines if re.search(r"\bwiretale ", line) and not line.startswith("#")]


def runnable_lines(page: Path) -> list[str]:
    """Returns the command lines of a page that run anywhere."""
    return [] if page.name in PAGES_NOT_RUN else [line for line in command_lines(page) if not NOT_RUN.search(line)]


def alone(line: str) -> str | None:
    """Returns what a line becomes that needs a peer, root or Ctrl-C, for a network of its own; None if it needs none of these."""
    if "wiretale send HOST" in line:
        return SENDING.format(line=line.replace(" -t 10", "").replace("HOST", "127.0.0.1 --wait 9 -t 0.2"))
    if "wiretale receive" in line:
        return RECEIVING.format(line=line)
    if "wiretale capture -i eth0" in line:
        return CAPTURING.format(line=line.removeprefix("sudo ").removesuffix("&").replace("eth0", "lo"))
    if "wiretale view" in line or "wiretale experiment serve" in line:
        return SERVING.format(line=line)
    if "wiretale store watch" in line:
        return f"{line.removesuffix('&').strip()} --once"
    if "wiretale experiment run" in line:
        return f"{line.replace('HOST', '127.0.0.1')} --scale 0.02"
    if "wiretale lab up" in line:
        return f"{line} && wiretale lab down {line.split()[3].removesuffix('.toml')}"
    return None


def make_place(folder: Path) -> Path:
    """Fills a folder with the captures that documents name, and the program itself in bin/."""
    folder.mkdir(exist_ok=True)
    (folder / "sample_pcaps").symlink_to(SAMPLES)
    for name, sample in CAPTURES.items():
        shutil.copy(SAMPLES / sample, folder / f"{name}.pcapng")
    for name in ("day/a.pcap.zst", "day/a.pcapng", "captures/a.pcapng", "captures/2026-11-20/a.pcapng", "day.pcap.zst"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLES / "fast_retransmissions.pcap", folder / name)  # recognized by its content
    (folder / "my.toml").write_text('[both]\nrate = "10Mbit"\ndelay = "5ms"\n')
    (folder / "bin").mkdir()
    starter = folder / "bin" / "wiretale"
    starter.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m wiretale "$@"\n')
    starter.chmod(0o755)
    return folder


def run_line(line: str, place: Path, shell: Sequence[str] = ("sh", "-c")) -> subprocess.CompletedProcess[str]:
    """Runs a line in a shell in the place; what it prints is in stdout, errors included."""
    path = f"{place / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    return subprocess.run(
        [*shell, line],
        cwd=place,
        env={"PATH": path, "COLUMNS": WIDTH, "LANG": "C.UTF-8", "HOME": str(place)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def printed_lines(command: str, expected: list[str], place: Path) -> list[str]:
    """Returns what a command prints, as much of it as a block shows."""
    lines = [line.rstrip() for line in run_line(command, place).stdout.rstrip("\n").splitlines()]
    if expected and expected[-1] == CUT_HERE:
        return [*lines[: len(expected) - 1], CUT_HERE]
    return lines


def write_page(page: Path, place: Path) -> None:
    """Writes the output of every command of a page's console blocks into the page."""

    def with_output(block: re.Match[str]) -> str:
        if block[1] != "console":
            return block[0]
        text = "".join(
            "".join(f"{line}\n" for line in [f"$ {command}", *printed_lines(command, expected, place)])
            for command, expected in console_commands(block[2])
        )
        return f"```console\n{text}```"

    page.write_text(BLOCK.sub(with_output, page.read_text("utf-8")), "utf-8")
