# SPDX-License-Identifier: Apache-2.0
"""Which files are read: folders by first bytes, each file once."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

import needs
import wiretale
from checkout import Run
from wiretale.analyzer.capture_paths import expand_paths
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.options import NO_OPTIONS
from wiretale.cluster import shards
from wiretale.cluster.job import begin
from wiretale.cluster.place import Place
from wiretale.reports.store.add import add


def test_a_folder_is_searched_by_first_bytes_not_by_name(samples: Path, tmp_path: Path) -> None:
    capture = (samples / "vlan_ipv6.pcap").read_bytes()
    (tmp_path / "b").write_bytes(capture)
    (tmp_path / "c.bin").write_bytes(gzip.compress(capture))
    (tmp_path / "below").mkdir()
    shutil.copy(samples / "two_interfaces.pcapng", tmp_path / "below" / "a")
    (tmp_path / "notes.pcap").write_text("this is no capture\n")
    (tmp_path / "notes.pcap.gz").write_bytes(gzip.compress(b"this is no capture\n"))
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "empty.pcap").touch()
    os.symlink(tmp_path / "b", tmp_path / "link.pcap")
    os.mkfifo(tmp_path / "pipe.pcap")
    with pytest.warns(wiretale.SkippedFileWarning) as warned:
        names = [str(Path(path).relative_to(tmp_path)) for path in expand_paths([tmp_path])]
        assert wiretale.analyze(tmp_path).totals["packets"] == 66 + 35 + 66
    assert names == ["b", "below/a", "c.bin"]
    skipped = [Path(str(warning.message).split()[1].strip(":")).name for warning in warned]
    assert skipped == 2 * ["empty.pcap", "notes.pcap", "notes.pcap.gz"]


def test_a_file_given_twice_is_refused(samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / "vlan_ipv6.pcap", tmp_path / "a.pcap")
    os.symlink("a.pcap", tmp_path / "latest.pcap")
    for again in (tmp_path / "a.pcap", tmp_path, tmp_path / "latest.pcap"):
        with pytest.raises(wiretale.UsageError, match="given twice"):
            wiretale.analyze(tmp_path / "a.pcap", again)
    with pytest.raises(wiretale.UsageError, match="given twice"):
        expand_paths(["-", "-"])


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_impossible_paths_are_refused(path: str) -> None:
    with pytest.raises(wiretale.UsageError, match="expected a file, a folder, or -"):
        wiretale.analyze(path)


def test_names_need_not_be_text(samples: Path, tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"\xff.pcap")
    Path(os.fsdecode(path)).write_bytes((samples / "vlan_ipv6.pcap").read_bytes())
    assert wiretale.analyze(os.fsdecode(path)).totals["packets"] == 66
    assert expand_paths([path]) == [os.fsdecode(path)]


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """As a user who may read little."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@needs.marked(needs.root())
def test_unreadable_files_of_a_folder_are_named(samples: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        secret, hidden = folder / "secret.pcap", folder / "lost+found"
        shutil.copy(samples / "tcp_losses.pcap", folder / "open.pcap")
        (folder / "notes").write_text("not for everybody")
        (folder / "notes").chmod(0)
        hidden.mkdir(mode=0o700)
        with as_nobody():
            assert expand_paths([folder]) == [str(folder / "open.pcap")]
        secret.touch(mode=0)
        with as_nobody(), pytest.warns(wiretale.SkippedFileWarning, match=r"secret\.pcap: Permission denied"):
            assert expand_paths([folder]) == [str(folder / "open.pcap")]
        secret.unlink()
        with as_nobody(), pytest.raises(InputError, match=r"lost.found: Permission denied"):
            expand_paths([hidden])
        hidden.rename(folder / "monday")
        with as_nobody(), pytest.warns(wiretale.SkippedFileWarning, match="skipped .*monday: Permission denied"):
            expand_paths([folder])


@needs.marked(needs.root())
def test_an_unreadable_file_does_not_end_the_others_of_a_store(samples: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o777)
        (folder / "in").mkdir()
        for name in ("a.pcap", "b.pcap"):
            shutil.copy(samples / "tcp_losses.pcap", folder / "in" / name)
        add_all = [
            capture.outcome for capture in add(folder / "other", expand_paths([folder / "in"]))
        ]  # imports all modules
        assert add_all == ["added", "present"]
        (folder / "in" / "a.pcap").chmod(0)
        with as_nobody():
            outcomes = list(add(folder / "store", [str(folder / "in" / name) for name in ("a.pcap", "b.pcap")]))
        assert [(Path(capture.path).name, capture.outcome, capture.reason) for capture in outcomes] == [
            ("a.pcap", "failed", f"{folder}/in/a.pcap: Permission denied"),
            ("b.pcap", "added", ""),
        ]


COMMANDS = [
    ("analyze",),
    ("info",),
    ("store", "add", "store"),
]


def damaged_folder(samples: Path, folder: Path) -> dict[str, str]:
    """Makes a folder of good captures and of damaged ones, whose names and reasons are returned."""
    folder.mkdir()
    capture, section = (samples / "tcp_losses.pcap").read_bytes(), (samples / "two_interfaces.pcapng").read_bytes()
    packed, zst = gzip.compress(capture, mtime=0), pyarrow.compress(capture, codec="zstd", asbytes=True)
    contents = {
        "00.pcapng": bytes(4) + section[4:],
        "01.pcapng": section[:8] + bytes(4) + section[12:],
        "02.pcap3": b"\xff" * 4 + capture[4:],
        "03.pcap.gz": packed[:10] + b"\xff" * 20 + packed[30:],
        "04.pcap.zst": zst[:9] + b"\xff" * 20 + zst[29:],
        "05.PCAP": b"",
        "06.cap": capture[:20],
        "no name": section[:20],
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "10.pcap").write_bytes(capture)
    (folder / "11.pcapng").write_bytes(section)
    (folder / "10.pcap.sha256").write_text("0" * 64)
    (folder / "notes.txt").write_text("no capture")
    return {
        "00.pcapng": ": not a capture (expected pcap or pcapng, found 00 00 00 00)",
        "01.pcapng": ": ",
        "02.pcap3": ": not a capture (expected pcap or pcapng, found ff ff ff ff)",
        "03.pcap.gz": ": at byte 0: gzip: ",
        "04.pcap.zst": ": at byte 0: zstd: ",
        "05.PCAP": ": empty (0 bytes)",
        "06.cap": ": truncated: a pcap header needs 24 bytes, the file has 20",
        "no name": ": truncated: ",
    }


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_damaged_files_of_a_folder_are_named_and_skipped(
    wiretale_run: Run, samples: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    reasons = damaged_folder(samples, tmp_path / "day")
    done = wiretale_run(*command, "day", cwd=tmp_path)
    named = [line for line in done.stderr.splitlines() if line.startswith("wiretale: skipped ")]
    assert done.returncode == 3 and len(named) == len(reasons), done.stderr
    for line, (name, reason) in zip(named, reasons.items(), strict=True):
        assert line.startswith(f"wiretale: skipped day/{name}{reason}")
    for name in reasons:
        (tmp_path / "day" / name).unlink()
    done = wiretale_run(*command, "day", cwd=tmp_path)
    assert done.returncode == 0 and "skipped" not in done.stderr, done.stderr


def test_many_skipped_files_are_counted(wiretale_run: Run, samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / "tcp_losses.pcap", tmp_path / "good.pcap")
    for number in range(13):
        (tmp_path / f"{number:02}.pcap").touch()
    done = wiretale_run("info", ".", "--json", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert done.returncode == 3 and len(lines) == 11 and lines[-1] == "wiretale: skipped 3 more files in ."
    assert [row["file"] for row in json.loads(done.stdout)["interfaces"]] == ["good.pcap"]


def test_many_captures_show_their_progress(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "day").mkdir()
    for number in range(20):
        shutil.copy(samples / "tcp_losses.pcap", tmp_path / "day" / f"{number}.pcap")
    main, terminal = os.openpty()
    words = [sys.executable, "-m", "wiretale", "store", "add", "store", "day"]
    subprocess.run(words, stderr=terminal, cwd=tmp_path, env={**os.environ, "TERM": "xterm"}, check=True)
    os.close(terminal)
    output = b""
    with open(main, "rb", buffering=0) as end, contextlib.suppress(OSError):  # at the end of a terminal
        while piece := end.read(65536):
            output += piece
    assert b"/20" in output and b"captures" in output


def test_outputs_in_the_folder_of_the_input_are_no_input(wiretale_run: Run, samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("tcp_losses.pcap", "timeouts.pcap"):
        shutil.copy(samples / name, folder)
    before = wiretale_run("analyze", "in", "--json", cwd=tmp_path).stdout
    cut = begin(Place(str(folder / "run")), [str(folder / "timeouts.pcap")], 4, NO_OPTIONS)[0]
    shards.cut(cut, 0)
    assert "added 2 captures" in wiretale_run("store", "add", "in/deep/store", "in", cwd=tmp_path).stderr
    after = wiretale_run("analyze", "in", "--json", cwd=tmp_path)
    assert after.returncode == 0 and after.stdout == before
    assert sorted(line for line in after.stderr.splitlines() if "skipped" in line) == [
        "wiretale: skipped in/deep/store: is a store",
        "wiretale: skipped in/run: is a run of a cluster",
    ]
    for place, kind in (("in/run", "run of a cluster"), ("in/deep/store", "store")):
        done = wiretale_run("store", "add", "other", place, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"wiretale: {place}: is a {kind}: expected captures\n")


def test_an_empty_or_unreadable_file_or_a_text_of_several_is_skipped(
    wiretale_run: Run, samples: Path, tmp_path: Path
) -> None:
    sample, empty = tmp_path / "a.pcap", tmp_path / "b.pcap"
    shutil.copy(samples / "vlan_ipv6.pcap", sample)
    empty.touch()
    for words in ([sample, empty], [tmp_path]):  # a glob, a folder
        done = wiretale_run("analyze", *words, "--json")
        assert done.returncode == 3 and len(json.loads(done.stdout)["flows"]) == 7
        assert [line for line in done.stderr.splitlines() if "skipped" in line] == [done.stderr.rstrip()]
        assert f"skipped {empty}: " in done.stderr
    notes, header = tmp_path / "notes.txt", tmp_path / "header.pcap"
    notes.write_text("no capture")
    header.write_bytes(sample.read_bytes()[:24])
    done = wiretale_run("analyze", sample, notes, "--json")
    assert done.returncode == 3 and f"skipped {notes}: not a capture" in done.stderr
    assert wiretale_run("analyze", notes).returncode == 4 and wiretale_run("analyze", header).returncode == 3
    assert wiretale_run("analyze", sample, "-f", "tcp port 1").returncode == 0  # the filter leaves nothing
    for words in ([empty], [empty, shutil.copy(empty, tmp_path / "c.pcap")]):
        done = wiretale_run("analyze", *words)
        assert done.returncode == 4 and done.stderr.count("\n") == 1 and str(empty) in done.stderr


def test_one_unreadable_file_does_not_end_the_analysis_of_others(samples: Path) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's folders are for their owner alone
        folder = Path(name)
        folder.chmod(0o755)
        sample, private = folder / "a.pcap", folder / "b.pcap"
        for path, mode in ((sample, 0o644), (private, 0o600)):
            shutil.copy(samples / "vlan_ipv6.pcap", path)
            path.chmod(mode)
        if os.geteuid():
            private.chmod(0)
        for arguments in ([folder], [sample, private]):
            with as_nobody(), pytest.warns(wiretale.SkippedFileWarning, match=r"skipped .*b\.pcap: Permission denied"):
                assert expand_paths(arguments) == [str(sample)]
        with as_nobody(), pytest.raises(InputError, match=r"b\.pcap: Permission denied"):
            wiretale.analyze(private)
