# SPDX-License-Identifier: Apache-2.0
"""Which files are read: folders by first bytes, each file once."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
import wiretale
from wiretale.analyzer.capture_paths import expand_paths
from wiretale.analyzer.errors import InputError


def test_a_folder_is_searched_by_first_bytes_not_by_name(samples: Path, tmp_path: Path) -> None:
    whole = (samples / "vlan_ipv6.pcap").read_bytes()
    (tmp_path / "b").write_bytes(whole)
    (tmp_path / "c.bin").write_bytes(gzip.compress(whole))
    (tmp_path / "below").mkdir()
    shutil.copy(samples / "two_interfaces.pcapng", tmp_path / "below" / "a")
    (tmp_path / "notes.pcap").write_text("this is no capture\n")
    (tmp_path / "notes.pcap.gz").write_bytes(gzip.compress(b"this is no capture\n"))
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "empty.pcap").touch()
    os.symlink(tmp_path / "b", tmp_path / "link.pcap")
    os.mkfifo(tmp_path / "pipe.pcap")
    found = [str(Path(path).relative_to(tmp_path)) for path in expand_paths([tmp_path])]
    assert found == ["b", "below/a", "c.bin"]
    assert wiretale.analyze(tmp_path).totals["packets"] == 66 + 35 + 66


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
def test_unreadable_files_are_reported_and_not_left_out(samples: Path) -> None:
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
        with as_nobody(), pytest.raises(InputError, match=r"secret\.pcap: Permission denied"):
            expand_paths([folder])
        with as_nobody(), pytest.raises(InputError, match=r"lost.found: Permission denied"):
            expand_paths([hidden])
