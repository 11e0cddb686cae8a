# SPDX-License-Identifier: Apache-2.0
"""The generator's and the link's help and errors: one layout, the name that the user typed, and one voice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest

import needs
from wiretale.traffic.program import find_program

# How each is called: the program, its argv as wiretale sets it, and as a user of the program does.
CALLS = {
    "send": ("wiretale-traffic", ["wiretale", "send"], ["wiretale-traffic", "send"]),
    "receive": ("wiretale-traffic", ["wiretale", "receive"], ["wiretale-traffic", "receive"]),
    "ttcp": ("wiretale-traffic", ["wiretale", "ttcp"], ["wiretale-traffic", "ttcp"]),
    "path": ("wiretale-traffic", ["wiretale", "path"], ["wiretale-traffic", "path"]),
    "traffic": ("wiretale-traffic", ["wiretale"], ["wiretale-traffic"]),
    "link": ("wiretale-link", ["wiretale link"], ["wiretale-link"]),
}
COLUMNS, TEXT_COLUMN = 80, 24
OPTION = re.compile(r"  (-[A-Za-z0-9]|--[a-z]|-[A-Za-z0-9], --[a-z])")


def run(call: str, *options: str, direct: bool = False, **more: Any) -> subprocess.CompletedProcess[str]:
    program, by_wiretale, by_program = CALLS[call]
    command = [*(by_program if direct else by_wiretale), *options]
    more = {"capture_output": True, "text": True, "timeout": 30, **more}
    done: subprocess.CompletedProcess[str] = subprocess.run(command, executable=find_program(program), **more)
    return done


def parts_of(text: str) -> list[tuple[str, list[str]]]:
    """Heading and lines of each part; the description has none."""
    parts = []
    for block in text.rstrip("\n").split("\n\n"):
        first, *lines = block.split("\n")
        heading = re.fullmatch(r"([a-z][^A-Z\n]*|settings .*):", first)
        usage = first.startswith("usage: ")
        parts.append(("usage", [first, *lines]) if usage else (heading[1], lines) if heading else ("", [first, *lines]))
    return parts


@pytest.mark.parametrize("direct", [False, True], ids=["wiretale", "program"])
@pytest.mark.parametrize("call", CALLS)
def test_the_help_has_the_one_layout(call: str, direct: bool) -> None:
    done = run(call, "--help", direct=direct)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if len(line) > COLUMNS or line != line.rstrip()] == []
    parts = parts_of(done.stdout)
    headings = [heading for heading, _ in parts]
    name = " ".join(CALLS[call][2] if direct else CALLS[call][1])
    assert headings[:2] == ["", "usage"] and headings[-2:] == ["examples", "exit codes"]
    assert all(line.startswith((f"usage: {name} ", f"       {name} ")) for line in parts[1][1])
    assert parts[0][1][0][0].isupper() and parts[0][1][-1].endswith(".")
    options = [line for heading, lines in parts[2:-2] for line in lines if OPTION.match(line)]
    assert len(options) >= 2
    for line in options:  # the text begins in one column, or on the next line
        assert line[TEXT_COLUMN - 2 : TEXT_COLUMN] == "  " or "  " not in line[2:], line
    for line in parts[-1][1]:
        assert re.fullmatch(r"  [0-9]+ +[a-z].*", line)


@pytest.mark.parametrize("call", CALLS)
def test_an_example_is_a_command_that_can_be_pasted(call: str) -> None:
    """A comment stands on a line of its own; a command that is too long goes on behind a backslash."""
    lines = dict(parts_of(run(call, "--help").stdout))["examples"]
    comments = [line for line in lines if line.startswith("  # ")]
    commands = "\n".join(line for line in lines if line not in comments).replace("\\\n", " ").splitlines()
    assert len(commands) >= len(comments) >= 2
    for command in commands:
        assert "wiretale " in command and "#" not in command and "wiretale-" not in command
        assert subprocess.run(["sh", "-n", "-c", command], timeout=30).returncode == 0


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_on_a_full_device_ends_with_4(call: str, option: str) -> None:
    with open("/dev/full", "w") as full:
        done = run(call, option, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    name = " ".join(CALLS[call][1])
    assert (done.returncode, done.stderr) == (
        4,
        f"{name}: cannot write to standard output: No space left on device\n",
    )


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_without_a_standard_output_ends_with_4(call: str, option: str) -> None:
    program, argv, _ = CALLS[call]
    source = f"import os; os.close(1); os.execv({find_program(program)!r}, {[*argv, option]!r})"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (4, "", f"{' '.join(argv)}: standard output is closed\n")


@pytest.mark.parametrize("call", CALLS)
def test_help_whose_reader_is_gone_ends_quietly(call: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run(call, "--help", capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("option", ["-V", "--version"])
def test_each_command_has_the_version_of_its_program(call: str, option: str) -> None:
    for direct in (False, True):
        done = run(call, option, direct=direct)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(rf"{CALLS[call][0]} [0-9]+(\.[0-9]+)+\S*\n", done.stdout)


@pytest.mark.parametrize(
    ("call", "options", "says"),
    [
        ("receive", ["--port", "99999"], "--port '99999': expected 1 to 65535"),
        ("receive", ["--port", "5k"], "--port '5k': expected 1 to 65535"),
        ("send", ["h", "--port", "0"], "--port '0': expected 1 to 65535"),
        ("send", ["127.0.0.1", "--udp", "--size", "65508"], "--size 65508: a UDP datagram over IPv4 carries at most"),
        ("send", ["127.0.0.1", "--udp", "--size", "64-70000:64"], "--size 64-70000:64: a UDP datagram over"),
        ("send", ["127.0.0.1", "--size", "31"], "--size 31: expected at least 32 bytes"),
        ("send", ["127.0.0.1", "--size", "x"], "--size x: expected sizes and ranges as in 64,512,1000-1400:100"),
        ("send", ["h", "--ttl", "300"], "--ttl '300': expected a whole number as in 1000 or 64k, at most 255"),
        ("send", ["h", "--rate", "fast"], "--rate 'fast': expected a rate as in 10k, 1.9M, 1G or 100pps"),
        ("send", ["h", "--count", "-5"], "--count '-5': expected a whole number as in 1000 or 64k"),
        ("ttcp", ["-r", "-p", "64KiB"], "-p '64KiB': expected 1 to 65535"),
        ("ttcp", ["-s"], "expected either -t or -r"),
        ("path", [], "expected the host; see `"),
        ("path", ["--hops", "65", "h"], "--hops '65': expected a whole number as in 1000 or 64k, at most 64"),
        ("ttcp", ["-t", "-r", "127.0.0.1"], "expected either -t or -r"),
        ("ttcp", ["-r", "127.0.0.1"], "-r: expected no host"),
        ("ttcp", ["-r", "-R"], "-R: expected -r -s as well, because several transfers cannot share stdout"),
        (
            "ttcp",
            ["-t", "-u", "-l", "4", "h"],
            "-u -l: expected more than 4 bytes, because shorter datagrams mark start",
        ),
        ("ttcp", ["-t", "-u", "-l", "65508", "h"], "-u -l: expected at most 65507 bytes, the largest datagram"),
        ("ttcp", ["-t", "-l", "0", "h"], "-l '0': expected a whole number from 1 to 1073741824"),
        ("ttcp", ["-t", "-n", "-1", "h"], "-n '-1': expected a whole number from 1 to 9223372036854775807"),
        ("ttcp", ["-t", "-n", "1kB", "h"], "-n '1kB': expected a whole number from 1 to 9223372036854775807"),
        ("ttcp", ["-t", "-l", "0.3k", "h"], "-l '0.3k': expected a whole number from 1 to 1073741824"),
        ("ttcp", ["-r", "--idle", "2d"], "--idle '2d': expected a time as in 10, 1.5s or 200ms, at most 86400"),
        ("ttcp", ["-r", "--idle", "x"], "--idle 'x': expected a time as in 10, 1.5s or 200ms"),
        ("ttcp", ["-r", "-p", "65536"], "-p '65536': expected 1 to 65535"),
        ("ttcp", ["-r", "-f", "x"], "-f 'x': expected one of k, K, m, M, g, G"),
        ("ttcp", ["-t", "h", "more"], "argument more: expected nothing more"),
        ("ttcp", ["-r", "-Z"], "there is no option -Z; see `"),
        ("send", ["h", "--rate", "10MB"], "--rate '10MB': expected a rate as in 10k, 1.9M, 1G or 100pps"),
        ("send", ["h", "--bytes", "1x"], "--bytes '1x': expected a size as in 1000, 64k or 64KiB"),
        ("send", ["h", "--count", "1kB"], "--count '1kB': expected a whole number as in 1000 or 64k"),
        ("send", ["h", "--idle", "1us"], "--idle '1us': expected a time as in 10, 1.5s or 200ms, at least 0.001"),
        ("send", ["h", "--dscp", "64"], "--dscp '64': expected 0 to 63, or a name as in ef, af41, cs1"),
        ("send", ["h", "--df", "maybe"], "--df 'maybe': expected do|dont|want|probe"),
        ("send", ["h", "--count"], "--count: expected a value; see `"),
        ("send", ["h", "i"], "i: expected no further argument; see `"),
        ("send", ["h", "--file", "f", "-P", "3"], "--file: expected one stream, so --streams 1"),
        ("send", ["h", "--file", "f", "-R"], "--file: expected no --reverse or --both, because a file goes forward"),
        ("send", ["h", "--file", "f", "--both"], "--file: expected no --reverse or --both, because a file"),
        ("receive", ["--data-ports", "5-99999"], "--data-ports '5-99999': expected two ports from 1 to 65535"),
        ("receive", ["--data-ports", "0-5"], "--data-ports '0-5': expected two ports from 1 to 65535"),
        ("send", ["h", "--data-ports", "9-5"], "--data-ports '9-5': expected two ports from 1 to 65535"),
        ("send", [], "expected a HOST; see `"),
        ("send", ["h", "--poisson"], "--poisson and --burst: expected a --rate as well"),
        ("send", ["h", "--cuont", "3"], "there is no option --cuont (did you mean --count?); see `"),
        ("send", ["h", "--str", "3"], "there is no option --str (did you mean --streams?); see `"),
        ("send", ["h", "--nonsense", "3"], "there is no option --nonsense; see `"),
        ("receive", ["--overwrite"], "--overwrite: expected --output-dir as well"),
        ("receive", ["--total-size", "1G"], "--total-size: expected --output-dir as well"),
        ("receive", ["--min-free", "0"], "--min-free: expected --output-dir as well"),
        ("receive", ["--min-free", "10%"], "--min-free: expected --output-dir as well"),
        ("receive", ["--min-free", "101%"], "--min-free '101%': expected a size or a part of the disk"),
        ("ttcp", ["-t"], "-t: expected the host to send to"),
        ("ttcp", ["-r", "--jso"], "there is no option --jso (did you mean --json?); see `"),
        ("link", ["a"], "expected two interfaces, or --print-truth FILE alone; see --help"),
        ("link", ["a", "b", "--both", "rate=10MB"], "--both: rate=10MB: expected bits a second"),
        ("link", ["a", "b", "--both", "mtu=66kB"], "--both: mtu=66kB: expected bytes of an IP packet, 68 to 65535"),
        ("link", ["a", "b", "--both", "overhead=-21"], "--both: overhead=-21: expected whole bytes, -20 to 1000"),
        ("link", ["a", "b", "--forwar", "rate=1M"], "there is no option --forwar (did you mean --forward?); see `"),
        ("link", ["a", "b", "--seed"], "--seed: expected a value; see `"),
        ("traffic", ["sned"], "expected send, receive, ttcp or path; see `"),
    ],
)
def test_an_error_is_one_line_in_one_voice(call: str, options: list[str], says: str) -> None:
    for direct in (False, True):
        done = run(call, *options, direct=direct)
        name = " ".join(CALLS[call][2] if direct else CALLS[call][1])
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith(f"{name}: {says}") and f"{call} {call}" not in done.stderr, done.stderr
