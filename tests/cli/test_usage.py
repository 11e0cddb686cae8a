# SPDX-License-Identifier: Apache-2.0
"""Habits from other programs: help, -V, a capture without a command, misspelt options, options of tshark and tcpdump."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from processes import refusal


@pytest.mark.parametrize("command", ["", "analyze", "theory", "lab", "lab up", "experiment run", "send", "capture"])
def test_help_is_a_command(wiretale_run: Any, command: str) -> None:
    done = wiretale_run("help", *command.split())
    assert done.returncode == 0 and "usage: " in done.stdout and not done.stderr
    assert done.stdout == wiretale_run(*command.split(), "--help").stdout


def test_the_help_of_help_and_the_end_of_options_are_taken(wiretale_run: Any, samples: Path) -> None:
    assert wiretale_run("help", "help").stdout == wiretale_run("--help").stdout
    assert wiretale_run("theory", "--link", "1G", "--").stdout == wiretale_run("theory", "--link", "1G").stdout
    file = samples / "tcp_losses.pcap"
    expected = wiretale_run("analyze", file).stdout
    for words in (["--", file], ["--", "analyze", file], ["analyze", "--", file], ["analyze", file, "--"]):
        done = wiretale_run(*words)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, ""), words
    assert "unexpected argument '--json'" in refusal(wiretale_run("doctor", "--", "--json"))


@pytest.mark.parametrize("word", ["-V", "--version", "version"])
def test_the_version_has_every_usual_spelling(wiretale_run: Any, word: str) -> None:
    done = wiretale_run(word)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"wiretale {wiretale.__version__}\n", "")


def test_a_capture_without_a_command_is_analyzed(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    file = samples / "tcp_losses.pcap"
    expected = wiretale_run("analyze", file)
    done = wiretale_run(file)
    assert (done.returncode, done.stdout) == (0, expected.stdout)
    assert wiretale_run(file, "--json").stdout.startswith('{"schema": "wiretale.analyze/3"')
    folder = tmp_path / "captures"
    folder.mkdir()
    shutil.copy(file, folder)
    assert "tcp_losses.pcap: 342 packets" in wiretale_run(folder).stdout
    with file.open("rb") as stream:
        assert "342 packets" in wiretale_run("-", stdin=stream).stdout
    plain = tmp_path / "no-suffix"
    shutil.copy(file, plain)
    assert "342 packets" in wiretale_run(plain).stdout


@pytest.mark.parametrize("name", ["nope.pcap", "nope.pcapng.gz", "nope.cap"])
def test_a_missing_capture_without_a_command_is_missed_as_a_file(wiretale_run: Any, name: str) -> None:
    done = wiretale_run(name)
    assert done.returncode == 4 and name in done.stderr and "No such file" in done.stderr


@pytest.mark.parametrize(
    "words, message",
    [
        ("analyse x", "there is no command 'analyse' (did you mean analyze?); see `wiretale --help`"),
        ("analyse t.pcap --json", "there is no command 'analyse' (did you mean analyze?); see `wiretale --help`"),
        ("experiment reprot . -o x", "there is no command 'reprot' (did you mean report?)"),
        ("lab dwon --all", "there is no command 'dwon' (did you mean down?); see `wiretale lab --help`"),
        ("--json t.pcap", "--json is an option of analyze: wiretale analyze FILE --json; see `wiretale --help`"),
        ("-q t.pcap", "-q is an option of analyze: wiretale analyze FILE -q;"),
        ("--report r.html t.pcap", "--report is an option of analyze: wiretale analyze FILE --report FILE;"),
        ("analyze t.pcap --version", "--version is an option of wiretale itself: wiretale --version;"),
        (
            "cluster day",
            "there is no command 'cluster': analyze files on several machines with wiretale analyze FILES --cluster",
        ),
        ("frobnicate", "there is no command 'frobnicate' (expected analyze, view,"),
        ("lab upp", "there is no command 'upp' (did you mean up?); see `wiretale lab --help`"),
        ("analyze --jsn x", "there is no option --jsn (did you mean --json?); see `wiretale analyze --help`"),
        ("analyze x --reprot y.html", "there is no option --reprot (did you mean --report?)"),
        ("analyze x --reprot=y.html", "there is no option --reprot (did you mean --report?)"),
        ("analyze --reprot", "there is no option --reprot (did you mean --report?)"),
        ("analyze x --cause tail-los", "there is no cause 'tail-los' (did you mean tail-loss?)"),
        ("theory --lnk 1G", "there is no option --lnk (did you mean --link?)"),
        ("experiment run quick --dryrun", "there is no option --dryrun (did you mean --dry-run?)"),
        ("lab up wan --sed 3", "there is no option --sed (did you mean --seed?)"),
        ("--verson", "there is no option --verson (did you mean --version?)"),
        ("analyze", "expected FILE; see `wiretale analyze --help`"),
        ("analyze x --link", "--link: expected RATE"),
        ("analyze x --flows 0", "--flows '0': expected a whole number from 1 to 2147483647"),
        ("analyze x --max-flows 3G", "--max-flows '3G': expected a whole number from 1 to 2147483647"),
        ("theory --link 1G --ip 5", "--ip '5': expected 4 or 6"),
        ("theory 1G more", "unexpected argument 'more'"),
        ("theory --link 1GB", "(in bit/s, not bytes)"),
        ("experiment run quick --port 99999", "--port '99999': expected 1 to 65535"),
        ("experiment run quick --port 8k", "--port '8k': expected 1 to 65535"),
        ("analyze --finding timeout", "(did you mean suspected-timeout or timeout-stalls?)"),
        ("analyze --finding tail-loss", "tail-loss is a cause: --cause tail-loss"),
    ],
)
def test_the_error_has_the_probable_meaning(wiretale_run: Any, words: str, message: str) -> None:
    assert message in refusal(wiretale_run(*words.split()))


@pytest.mark.parametrize(
    "words, option",
    [
        ("analyze x --rep y.html", "--report"),
        ("analyze x --flow 3", "--flows"),
        ("lab run s6 --out x", "--output"),
        ("experiment report x --outp y", "--output"),
    ],
)
def test_an_abbreviated_option_is_not_taken(wiretale_run: Any, words: str, option: str) -> None:
    assert f"did you mean {option}" in refusal(wiretale_run(*words.split()))


@pytest.mark.parametrize(
    "words, message",
    [
        ("-r FILE", "just pass the file, as in wiretale analyze FILE"),
        ("analyze -r FILE", "just pass the file, as in wiretale analyze FILE"),
        ("-rFILE", "just pass the file"),
        ("info -r FILE", "just pass the file, as in wiretale info FILE"),
        ("analyze FILE -Y tcp.port==443", "-f takes a capture filter: wiretale analyze FILE -f 'tcp port 443'"),
        ("FILE -Y tcp", "-f takes a capture filter"),
        ("FILE -z conv,tcp", "lists conversations"),
        ("FILE -w out.pcap", "wiretale capture -i IF -w FILE records packets"),
        ("FILE -nn", "names are never resolved"),
        ("FILE -vv", "wiretale analyze FILE --all has more detail"),
        ("FILE -T fields -e ip.src", "--json, --csv"),
        ("FILE -c 100", "-f, --start and --end"),
        ("analyze -i eth0", "wiretale capture -i IF"),
        ("verify FILE -x", "tshark -x"),
    ],
)
def test_options_of_tshark_and_tcpdump_have_a_hint(wiretale_run: Any, samples: Path, words: str, message: str) -> None:
    file = str(samples / "tcp_losses.pcap")
    assert message in refusal(wiretale_run(*(word.replace("FILE", file) for word in words.split())))


@pytest.mark.parametrize("how", ["same", "symlink", "hardlink"])
def test_compare_refuses_a_capture_with_itself(wiretale_run: Any, samples: Path, tmp_path: Path, how: str) -> None:
    first, second = tmp_path / "a.pcap", tmp_path / "b.pcap"
    shutil.copy(samples / "tcp_losses.pcap", first)
    if how == "symlink":
        second.symlink_to(first)
    elif how == "hardlink":
        second.hardlink_to(first)
    again = first if how == "same" else second
    text = refusal(wiretale_run("compare", first, again))
    assert text.startswith(f"{again}: expected different captures; given twice")
    shutil.copy(first, tmp_path / "copy.pcap")
    assert wiretale_run("compare", first, tmp_path / "copy.pcap").returncode == 0


@pytest.mark.parametrize(
    "words, place",
    [
        (["--start", "2026-01-15T13:00"], "before --start 2026-01-15 13:00:00.000000000Z"),
        (["--end", "2026-01-15T11:00"], "at or after --end 2026-01-15 11:00:00.000000000Z"),
        (["--end", "2026-01-15T12:00", "-f", "udp", "--json"], "at or after --end 2026-01-15 12:00:00.000000000Z"),
        (
            ["--start", "2026-01-15T12:00:00.5266", "--end", "2026-01-15T13:00", "-q"],
            "before --start 2026-01-15 12:00:00.5266",
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_time_range_outside_the_capture_has_its_span(
    wiretale_run: Any, samples: Path, words: list[str], place: str, stream: bool
) -> None:
    file = samples / "tcp_losses.pcap"
    with file.open("rb") as content:
        done = wiretale_run("-" if stream else file, *words, stdin=content)
    span = "the capture spans 2026-01-15 12:00:00.000000000Z to 2026-01-15 12:00:00.526530000Z\n"
    assert done.returncode == 0 and done.stderr.startswith(f"wiretale: all 342 packets are {place}")
    assert done.stderr.endswith(span) and done.stderr.count("\n") == 1


def test_a_time_range_within_the_capture_has_no_note(wiretale_run: Any, samples: Path) -> None:
    file = samples / "tcp_losses.pcap"
    for words in (["--start", "2026-01-15T12:00:00.5"], ["--start", "2026-01-15T12:00:00.5", "-f", "udp"]):
        assert not wiretale_run(file, *words).stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("command", ["analyze", "info", "verify"])
def test_an_encoding_without_arrows_gets_plain_ones(
    wiretale_run: Any, samples: Path, encoding: str, command: str
) -> None:
    if command == "verify":
        needs.skip_without(needs.programs("tshark"))
    words = ["--all"] if command == "analyze" else []
    environment = {"PYTHONIOENCODING": encoding, "COLUMNS": "144"}
    done = wiretale_run(command, samples / "tcp_losses.pcap", *words, env=environment, encoding="latin-1")
    assert done.returncode == 0 and "?" not in done.stdout
    assert command == "info" or "---" in done.stdout or "->" in done.stdout
    if command == "analyze":
        lines = done.stdout.splitlines()
        at = next(number for number, line in enumerate(lines) if "---" in line)
        header, rule, row = lines[at - 1 : at + 2]
        assert set(rule.strip()) == {"-"} and "initiator -> responder" in header
        assert header.index("state") == row.index("closed") and header.index("problems") == row.index("2 lost")
        assert header.index("wire") + len("wire") == row.index("333 kB") + len("333 kB")
