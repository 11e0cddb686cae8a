# SPDX-License-Identifier: Apache-2.0
"""Where results go: `-` is standard output for a page, and is no folder; no file of that name ever appears."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from wiretale.traffic.program import find_program

NO_FOLDER = (
    ("analyze", "x.pcap", "-o"),
    ("compare", "x.pcap", "-o"),
    ("experiment", "run", "quick", "-o"),
    ("lab", "up", "wan", "-o"),
    ("lab", "run", "s6", "-o"),
)


@pytest.mark.parametrize("words", NO_FOLDER, ids=lambda words: "-".join(words[:2]))
@pytest.mark.parametrize("where", ["-", ""])
def test_standard_output_is_no_folder(wiretale_run: Any, tmp_path: Path, words: tuple[str, ...], where: str) -> None:
    done = wiretale_run(*words, where, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert f"{where!r}: expected a directory" in done.stderr
    assert not list(tmp_path.iterdir())


def is_page(done: subprocess.CompletedProcess[str]) -> bool:
    text = done.stdout.lower()
    return done.returncode == 0 and text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")


def test_a_comparison_on_stdout_is_the_page_alone(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    here, there = samples / "tcp_losses.pcap", tmp_path / "there.pcap"
    there.write_bytes(here.read_bytes())
    done = wiretale_run("compare", here, there, "--report", "-", cwd=tmp_path)
    assert is_page(done), done.stderr
    assert list(tmp_path.iterdir()) == [there]
    both = wiretale_run("compare", here, there, "--report", "-", "--json", cwd=tmp_path)
    assert both.returncode == 2 and "--json and --report - write to stdout: use only one" in both.stderr


def test_a_report_of_an_experiment_on_stdout_is_the_page_alone(wiretale_run: Any, tmp_path: Path) -> None:
    ran = wiretale_run("experiment", "run", "quick", "-o", "out", "--scale", "0.01", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    done = wiretale_run("experiment", "report", "out", "-o", "-", cwd=tmp_path)
    assert is_page(done), done.stderr
    assert not done.stderr and [path.name for path in tmp_path.iterdir()] == ["out"]
    assert wiretale_run("experiment", "report", "out", "-o", "", cwd=tmp_path).returncode == 2


def test_the_truth_of_a_link_needs_a_file_and_is_read_from_stdin(tmp_path: Path) -> None:
    link = find_program("wiretale-link")
    done = subprocess.run([link, "a", "b", "--truth", "-"], capture_output=True, text=True, cwd=tmp_path, timeout=20)
    assert done.returncode == 2 and "--truth -: expected a file" in done.stderr
    read = subprocess.run(
        [link, "--print-truth", "-"], input=b"no truth", capture_output=True, cwd=tmp_path, timeout=20
    )
    assert read.returncode == 4 and b"expected a truth file" in read.stderr
    assert not list(tmp_path.iterdir())
