# SPDX-License-Identifier: Apache-2.0
"""The command line of wiretale-capture: help, options that there are not, spellings of quantities."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

import needs
from capture_link import PROGRAM
from checkout import UNIT_SPELLINGS

PARTS = [
    "usage",
    "arguments",
    "interfaces",
    "packets",
    "files",
    "kept spans",
    "end",
    "program",
    "signals",
    "examples",
    "exit codes",
]
# The options that take a quantity of a kind, with the words before it.
OPTIONS = [
    *(("size", "--total-size", ""), ("time", "--interval", ""), ("time", "-G", "")),
    *(("count", "-b", "files:"), ("count", "-c", "")),
]


def run(*arguments: str, name: str | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    """The program, under another name in argv[0] if there is one."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [name or str(PROGRAM), *arguments], executable=PROGRAM, text=True, timeout=60, **streams
    )
    return done


@pytest.mark.parametrize("name", [None, "wiretale capture"])
def test_help_has_its_parts_within_80_columns(name: str | None) -> None:
    done = run("--help", name=name)
    assert (done.returncode, done.stderr) == (0, "")
    program = name or "wiretale-capture"
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80 and lines[0].startswith("Record packets")
    assert re.findall(r"^([a-z][a-z ]*):", done.stdout, re.MULTILINE) == PARTS
    assert f"usage: {program} -i INTERFACE" in done.stdout
    assert f"wiretale{' ' if program == 'wiretale-capture' else '-'}capture" not in done.stdout
    assert all(
        line.startswith(" " * 24) or re.match(r" {0,2}\S", line) or line.startswith("  ") for line in lines if line
    )
    examples = done.stdout.partition("examples:\n")[2].partition("\n\n")[0].splitlines()
    assert all(line.startswith(("  # ", f"  {program} ")) for line in examples)


@pytest.mark.parametrize("option", ["--help", "--version", "--list"])
def test_a_full_device_is_an_error(option: str) -> None:
    with open("/dev/full", "w") as full:
        done = run(option, stdout=full)
    assert (
        done.returncode == 4
        and done.stderr == "wiretale-capture: cannot write to standard output: No space left on device\n"
    )


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize("words", ["--help", "--version", "--list", "--list --json"])
def test_a_closed_output_is_an_error(words: str) -> None:
    command = f"exec {shlex.join([str(PROGRAM), *words.split()])} >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (4, "wiretale-capture: standard output is closed\n")


@pytest.mark.parametrize(
    "arguments, messages",
    [
        ("--snap 64", "there is no option --snap (did you mean --snaplen?)"),
        ("--overwite", "there is no option --overwite (did you mean --overwrite?)"),
        ("--xyzzy", "there is no option --xyzzy; see `wiretale-capture --help`"),
        ("--json=1", "--json: expected no value"),
        ("--snaplen", "--snaplen: expected a value"),
        ("-q -i", "-i: expected a value"),
        ("-G 0", "-G '0': expected a time as in 10, 1.5s or 200ms, above 0"),
        ("--quiet -kq", "there is no option -k;"),
        ("-r a.pcap", "there is no option -r: files are read by wiretale analyze FILE"),
        ("-Y tcp", "expected a capture filter: -f 'tcp port 443'"),
        ("-i lo -w x --mirror -p", "--mirror: expected neither -p nor -Q out"),
        ("-i lo -w x --mirror -Q out", "--mirror: expected neither -p nor -Q out"),
        ("-i lo -w x --keep-after 2s", "--keep-after: expected a ring, by -C, -G or -b with it"),
    ],
)
def test_an_unknown_option_is_one_line(arguments: str, messages: str) -> None:
    done = run(*arguments.split())
    assert done.returncode == 2 and messages in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, meant",
    [
        ("tcp.port == 443", "-f 'tcp port 443'"),
        ("ip.addr==10.0.0.1 && !(udp.dstport eq 53)", "-f 'host 10.0.0.1 and not (udp dst port 53)'"),
        ("http.request", "this is a Wireshark display filter\n"),
        ("tcp.port == 443 and tcp.flags.syn == 1", "this is a Wireshark display filter\n"),
    ],
)
def test_a_display_filter_is_recognized(arguments: str, meant: str) -> None:
    needs.skip_without(needs.root())
    done = run("-i", "lo", "-w", "-", "-f", arguments, stdout=subprocess.DEVNULL)
    assert done.returncode == 2 and "expected a capture filter" in done.stderr and meant in done.stderr


def test_errors_begin_with_the_name_that_was_typed() -> None:
    done = run("-i", "lo", name="wiretale capture")
    assert done.returncode == 2 and done.stderr.startswith("wiretale capture: expected -w DIR")


def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    needs.skip_without(needs.root())
    done = run("-i", "lo", "-w", str(tmp_path / "new" / "x.pcapng"))
    assert done.returncode == 4 and "No such file or directory" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind, option, before", OPTIONS)
def test_quantities_are_spelled_as_everywhere(kind: str, option: str, before: str) -> None:
    for text in UNIT_SPELLINGS[kind]:
        done = run(option, before + text)
        assert "expected -i INTERFACE" in done.stderr, text
    for text in UNIT_SPELLINGS["refused"][kind]:
        done = run(option, before + text)
        assert done.returncode == 2 and f"{option} '{before}{text}': expected a" in done.stderr, text


def test_a_size_has_the_value_that_is_meant() -> None:
    for text, value in UNIT_SPELLINGS["size"].items():
        if value < 4096 and text.strip(" \t").strip("0123456789.e+"):  # a number alone has the unit of the option
            assert f"files of {value} bytes: expected at least 4096" in run("-i", "lo", "-w", "x", "-C", text).stderr, (
                text
            )


@pytest.mark.parametrize("option", ["-c", "-W", "--buffer"])
def test_numbers_of_64_bits_without_sign_are_refused(option: str) -> None:
    done = run("-i", "lo", "-w", "/dev/null", option, str(2**63))
    assert done.returncode == 2 and f"{option} '{2**63}': expected" in done.stderr


@pytest.mark.parametrize("text", ["-1", "100.1", "5k", "5%%", "%", "nan", "", "many"])
def test_a_limit_is_a_percentage(text: str) -> None:
    done = run("--max-loss", text)
    assert done.returncode == 2 and f"--max-loss '{text}': expected a percentage from 0 to 100" in done.stderr


@pytest.mark.parametrize("text", ["0", "0.1", "5%", "100", "1e-3"])
def test_percentages_are_accepted(text: str) -> None:
    assert "expected -i INTERFACE" in run("--max-loss", text).stderr
