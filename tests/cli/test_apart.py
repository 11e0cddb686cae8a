# SPDX-License-Identifier: Apache-2.0
"""Captures that are an hour apart, or whose hosts never meet, are judged apart; outputs of -o are opened again."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import wiretale
from plain_wire import Connection, Wire
from processes import refusal

HOUR_S = 3_600
PCAP_HEADER_BYTES = 24


def capture(path: Path, port: int, ends: tuple[str, str], after_s: float = 0) -> Path:
    """One request with its answer, so many seconds after the others."""
    at = 1000 * after_s
    talk = Connection(Wire(), port, ends).open(at)
    return talk.data(at + 30, 0, 100).ack(at + 50, 100).wire.write(path)


@pytest.mark.parametrize(
    ("second", "after_s", "apart"),
    [
        (("10.0.0.1", "10.0.0.2"), 0.5, False),  # the same hosts at the same time
        (("10.0.0.1", "10.0.0.2"), 0.9 * HOUR_S, False),
        (("10.0.0.1", "10.0.0.2"), 1.1 * HOUR_S, True),
        (("10.0.0.1", "10.0.0.9"), 0.5, False),  # they share the client
        (("10.0.1.1", "10.0.1.2"), 0.5, True),
    ],
)
def test_unrelated_captures_are_judged_apart(
    wiretale_run: Any, tmp_path: Path, second: tuple[str, str], after_s: float, apart: bool
) -> None:
    first = capture(tmp_path / "a.pcap", 40000, ("10.0.0.1", "10.0.0.2"))
    files = [first, capture(tmp_path / "b.pcap", 40001, second, after_s)]
    done = wiretale_run(*files)
    assert done.returncode == 0 and ("2 unrelated captures" in done.stdout) == apart
    assert ("--merge" in done.stdout) == apart
    assert "judged by itself" not in wiretale_run(*files, "--merge").stdout
    merged = wiretale_run(*files, "--all")
    assert ("merged 2 captures of 2 times" in merged.stderr) == (after_s > HOUR_S)
    assert "judged by itself" not in merged.stdout and not wiretale_run(*files, "--all", "--merge").stderr


@pytest.mark.parametrize("after_s", [0.5, 2 * HOUR_S])
def test_a_capture_without_packets_is_with_the_others(wiretale_run: Any, tmp_path: Path, after_s: float) -> None:
    """A rotation leaves such files. It joins no captures that are unrelated, and is no second one beside a single capture."""
    first = capture(tmp_path / "b.pcap", 40000, ("10.0.0.1", "10.0.0.2"))
    (tmp_path / "a.pcap").write_bytes(first.read_bytes()[:PCAP_HEADER_BYTES])
    (tmp_path / "z.pcap").write_bytes(first.read_bytes()[:PCAP_HEADER_BYTES])
    assert "unrelated" not in wiretale_run(tmp_path).stdout
    capture(tmp_path / "c.pcap", 40001, ("10.0.1.1", "10.0.1.2"), after_s)
    assert "2 unrelated captures" in " ".join(wiretale_run(tmp_path).stdout.split())


def test_an_output_folder_is_opened_again(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "tr.wiretale", samples / "tcp_losses.pcap"
    assert wiretale_run(file, "-f", "tcp", "-o", out, "-q").returncode == 0
    again, first = wiretale_run(out), wiretale_run(file, "-f", "tcp")
    assert again.returncode == 0 and again.stdout.partition("Next")[0] == first.stdout.partition("Next")[0]
    assert "has the options of its analysis" in refusal(wiretale_run(out, "-f", "udp"))
    trace = wiretale.open(out)
    assert trace.options.filter == "tcp" and trace.answer.sentence in " ".join(again.stdout.split())
    with pytest.raises(wiretale.UsageError, match="expected an output folder"):
        wiretale.open(tmp_path)


def test_theory_knows_timestamps_round_trip_window_and_loss(wiretale_run: Any) -> None:
    text = " ".join(wiretale_run("theory", "1G", "--rtt", "20ms", "--window", "64KiB", "--loss", "0.1%").stdout.split())
    assert "941 Mbit/s of payload at most with TCP timestamps" in text and "949 Mbit/s without" in text
    assert "26.2 Mbit/s at most (window / round trip)" in text and "Mathis et al. 1997" in text
    path = json.loads(wiretale_run("theory", "1G", "--rtt", "20ms", "--loss", "0.001", "--json").stdout)["path"]
    assert path["bound_by"] == "loss" and path["loss_bps"] == pytest.approx(8 * 1460 / 0.02 * (1.5 / 0.001) ** 0.5)
    for words in (
        ["theory"],
        ["theory", "1G", "--loss", "0.1"],
        ["theory", "1G", "--rtt", "20"],
        ["theory", "1G", "--link", "1G"],
    ):
        refusal(wiretale_run(*words))


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, samples: Path) -> None:
    result = wiretale.analyze(samples / "tcp_losses.pcap").query("SELECT flow, packets FROM flows")
    assert result.columns == ["flow", "packets"] and result.fetchall() == [(0, 342)]

    class Without:
        def df(self) -> None:
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr(result, "_relation", Without())
    with pytest.raises(wiretale.MissingToolError, match=r"df\(\) needs numpy: pip install pandas numpy"):
        result.df()


def test_what_anonymize_removed_is_said(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    done = wiretale_run("cut", samples / "tcp_losses.pcap", "--anonymize", "-o", tmp_path / "x.pcapng")
    assert "removed: payload" in done.stderr and "kept: times" in done.stderr


def test_a_run_ends_with_its_result_and_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from wiretale.cli.experiment import show_result

    names = ("group", "session", "block_bytes", "offered_mbit_s", "settings", "measure", "mean")
    case = ("tcp", "s1", "8192", "", "")
    with (tmp_path / "summary.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([names, (*case, "throughput_mbit_s", "94.1234"), (*case, "packets_lost", "0.0")])
    show_result(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].split() == ["tcp,", "s1", "8.19", "kB", "–", "94.1", "Mbit/s", "0"]
    assert lines[-1] == f"next: wiretale experiment report {tmp_path} -o {tmp_path / 'report.html'}"
