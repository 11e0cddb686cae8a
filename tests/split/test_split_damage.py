# SPDX-License-Identifier: Apache-2.0
"""Steps of a split that are killed, and their files when they are damaged, missing or do not fit on the disk."""

from __future__ import annotations

import json
import os
import resource
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from capture_files import enhanced, interface
from checkout import SAMPLES
from plain_wire import Connection, Wire
from processes import refusal, wait_until
from wiretale.analyzer import _core
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.options import NO_OPTIONS
from wiretale.analyzer.shards import layout, steps

NAMES = ("tcp_losses.pcap", "udp_fragments.pcap")
FILES = [str(SAMPLES / name) for name in NAMES]


@pytest.fixture(scope="module")
def complete_split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A split of two samples whose shards were analyzed."""
    folder: Path = tmp_path_factory.mktemp("whole") / "split"
    layout.plan(FILES, folder, 2)
    steps.split_captures(folder, "test")
    for shard in range(2):
        steps.analyze_shard(folder, shard)
    return folder


@pytest.fixture
def split(complete_split: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(complete_split, tmp_path / "split"))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [flip, cut, remove])
def test_a_shard_that_is_damaged_is_named(split: Path, wiretale_run: Any, harm: Callable[[Path], None]) -> None:
    (split / "rows" / "shard-01.rows").unlink()
    file = split / "shard-01" / "000001.pcapng.zst"
    harm(file)
    text = refusal(wiretale_run("analyze", split / "shard-01"), 4)
    assert text.startswith(f"{file}: ") and "wiretale cluster split" in text
    assert not (split / "rows" / "shard-01.rows").exists()
    file.unlink(missing_ok=True)
    assert wiretale_run("split", "-o", split, "-q").returncode == 0
    assert wiretale_run("analyze", split / "shard-01", "-q").returncode == 0
    assert wiretale_run("gather", split, "-q").returncode == 0


@pytest.mark.parametrize("harm", [flip, cut, remove])
@pytest.mark.parametrize("place", ["rows/shard-01.rows", "files/000001.json"])
def test_rows_and_facts_that_are_damaged_are_named(
    split: Path, wiretale_run: Any, place: str, harm: Callable[[Path], None]
) -> None:
    harm(split / place)
    text = refusal(wiretale_run("gather", split), 4)
    assert place in text or "shard-01: not analyzed yet" in text or f"{NAMES[1]} was not split yet" in text


def test_rows_of_another_split_and_version_are_refused(split: Path, tmp_path: Path, wiretale_run: Any) -> None:
    other = tmp_path / "other"
    layout.plan(FILES, other, 2)
    rows = split / "rows" / "shard-00.rows"
    content = rows.read_bytes()
    steps.split_captures(other, "test")
    steps.analyze_shard(other, 0)
    rows.write_bytes((other / "rows" / "shard-00.rows").read_bytes())
    assert f"{rows}: damaged" in refusal(wiretale_run("gather", split), 4)
    rows.write_bytes(content)
    plan = json.loads((split / "split.json").read_text())
    (split / "split.json").write_text(json.dumps({**plan, "schema": "wiretale.split/0"}))
    assert "expected schema wiretale.split/3" in refusal(wiretale_run("gather", split), 4)


def test_a_file_is_no_split(tmp_path: Path, wiretale_run: Any) -> None:
    assert f"{FILES[0]}: expected a split" in refusal(wiretale_run("gather", FILES[0]), 4)
    done = wiretale_run("split", tmp_path / "none.pcap", "-o", tmp_path / "split", "--shards", 2)
    assert refusal(done, 4) == f"{tmp_path}/none.pcap: No such file or directory"
    assert not (tmp_path / "split").exists()


def test_any_bytes_as_rows_are_refused(split: Path) -> None:
    facts = layout.all_facts(layout.open_split(split))
    files = [(fact.rows, fact.spans, fact.packets, 0, 0, 0, 0) for fact in facts]
    good = [rows.content for n in range(2) if (rows := layout.read_rows(layout.open_split(split), n))]
    assert len(good) == 2
    for at in range(0, len(good[0]), 97):
        changed = bytearray(good[0])
        changed[at] ^= 0xA5
        for rows in (bytes(changed), good[0][:at]):
            try:
                _core.Analysis.gather(files, [rows, good[1]], NO_OPTIONS, True).totals()
            except (ValueError, _core.Error) as error:
                assert str(error)


def change_json(path: Path, name: str, value: object) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, name: value}))


PLANS = [
    ("shards", 0),
    ("shards", 257),
    ("shards", "2"),
    ("key", "00"),
    ("files", []),
    ("files", [{"path": "a\0b", "stamp": [1, 2, 3, 4]}]),
    ("files", [{"path": "\ud800", "stamp": [1, 2, 3, 4]}]),
    ("files", [{"path": "a.pcap", "stamp": None}]),
    ("files", [{"path": "a.pcap", "stamp": ["x", 2, 3, 4]}]),
    ("options", 5),
    ("options", {"filter": 5}),
    ("options", {"filter": "tcp\0"}),
    ("options", {"start_ns": "x"}),
    ("options", {"end_ns": 1 << 63}),
    ("options", {"max_flows": 5}),
    ("options", {"unknown": None}),
]
FACTS = [
    ("packets", "x"),
    ("packets", -1),
    ("packets", 1 << 70),
    ("first_ns", "x"),
    ("last_ns", 1 << 70),
    ("damage", 5),
    ("sizes", ["x", "y"]),
    ("interfaces", None),
    ("excluded_last_ns", None),
    ("behind", 2),
]
ROWS = [
    ("size", -1),
    ("size", 1 << 70),
    ("options", []),
    ("options", {"max_flows": "x"}),
    ("options", {"filter": "tcp"}),
]


@pytest.mark.parametrize(("name", "value"), PLANS)
def test_a_plan_of_another_machine_is_checked(split: Path, name: str, value: object) -> None:
    change_json(split / "split.json", name, value)
    with pytest.raises(InputError, match=r"split\.json: damaged"):
        layout.open_split(split)


@pytest.mark.parametrize(("name", "value"), FACTS)
def test_facts_of_another_machine_are_checked(split: Path, name: str, value: object) -> None:
    change_json(split / "files" / "000000.json", name, value)
    with pytest.raises(InputError, match=r"000000\.json: damaged"):
        steps.gather(split)


@pytest.mark.parametrize(("name", "value"), ROWS)
def test_the_head_of_rows_is_checked(split: Path, name: str, value: object) -> None:
    path = split / "rows" / "shard-00.rows"
    magic, head, rows = path.read_bytes().split(b"\n", 2)
    changed = json.dumps({**json.loads(head), name: value}).encode()
    path.write_bytes(b"\n".join((magic, changed, rows)))
    with pytest.raises(InputError, match=r"shard-00\.rows: damaged"):
        steps.gather(split)


@pytest.mark.parametrize("place", ["split.json", "files/000000.json", "rows/shard-00.rows"])
def test_deep_json_is_one_line(split: Path, wiretale_run: Any, place: str) -> None:
    magic = layout.ROWS_MAGIC if place.startswith("rows") else b""
    (split / place).write_bytes(magic + b"[" * 100_000 + b"\n")
    assert f"{place}: damaged" in refusal(wiretale_run("gather", split), 4)


def test_facts_that_grow_without_bound_are_refused(split: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "FACTS_BYTES", 1 << 20)
    change_json(split / "files" / "000000.json", "spans", layout.packed(bytes(1 << 21)))
    with pytest.raises(InputError, match=r"000000\.json: damaged"):
        steps.gather(split)


def test_facts_of_another_version_name_their_file(split: Path, wiretale_run: Any) -> None:
    rows = bytearray(layout.all_facts(layout.open_split(split))[1].rows)
    rows[8] ^= 1  # the hash of the schema
    change_json(split / "files" / "000001.json", "rows", layout.packed(bytes(rows)))
    text = refusal(wiretale_run("gather", split), 4)
    assert text.startswith(f"{split / 'files' / '000001.json'}: damaged, or of another version")


def test_a_plan_with_a_password_is_for_its_owner(tmp_path: Path) -> None:
    for secret, mode in ((":pass", 0o600), ("", 0o666)):
        folder = tmp_path / f"split{secret}"
        layout.plan([f"ssh://user{secret}@host/a.pcap"], folder, 2)
        umask = os.umask(0o077)
        os.umask(umask)
        assert (folder / "split.json").stat().st_mode & 0o777 == mode & ~umask


def test_the_plan_of_a_faster_process_stays(tmp_path: Path) -> None:
    layout.plan(FILES, tmp_path, 2)
    place = tmp_path / "split.json"
    content = place.read_bytes()
    layout.publish(tmp_path, place, b"other", first=True)
    assert place.read_bytes() == content and not list((tmp_path / "partial").iterdir())


def test_a_capture_that_changed_is_refused(tmp_path: Path, wiretale_run: Any) -> None:
    file = tmp_path / "a.pcap"
    file.write_bytes((SAMPLES / NAMES[0]).read_bytes())
    layout.plan([str(file)], tmp_path / "split", 2)
    file.write_bytes((SAMPLES / NAMES[1]).read_bytes())
    assert "changed since the split began" in refusal(wiretale_run("split", "-o", tmp_path / "split"), 4)
    assert "changed since" in refusal(wiretale_run("split", file, "-o", tmp_path / "split", "--shards", "2"), 4)


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


def test_a_full_disk_leaves_no_shard(tmp_path: Path, wiretale_run: Any) -> None:
    wire = Wire()
    connection = Connection(wire).open(0)
    for n in range(300):
        connection.data(20 + n, n * 1460)
    file = wire.write(tmp_path / "bulk.pcap")
    split = tmp_path / "split"
    layout.plan([str(file)], split, 2)
    text = refusal(wiretale_run("split", "-o", split, preexec_fn=small_files), 4)
    assert text == f"{split}: cannot write: File too large"
    assert (
        not list(split.glob("shard-*/*"))
        and not list(split.glob("files/*"))
        and not list((split / "partial").iterdir())
    )
    steps.split_captures(split, "test")
    for shard in range(2):
        done = wiretale_run("analyze", split / f"shard-0{shard}", preexec_fn=small_files)
        if done.returncode:
            assert f"shard-0{shard}.rows: cannot write: File too large" in refusal(done, 4)
        assert wiretale_run("analyze", split / f"shard-0{shard}", "-q").returncode == 0
    assert steps.gather(split).totals["packets"] == 303


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture that takes some time: 60 copies of a sample."""
    content = (SAMPLES / NAMES[0]).read_bytes()
    path: Path = tmp_path_factory.mktemp("large") / "large.pcap"
    path.write_bytes(content + content[24:] * 59)
    return path


def killed_once(command: list[str], is_so: Callable[[], object]) -> None:
    """Kills a process as soon as something is there."""
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: is_so() or process.poll() is not None)
        process.kill()


def test_steps_that_were_killed_continue(tmp_path: Path, large: Path, wiretale_run: Any) -> None:
    split, program = tmp_path / "split", [sys.executable, "-m", "wiretale"]
    files = [str(large), *FILES]
    wiretale_run("analyze", *files, "-o", tmp_path / "one", "-q")
    begin = [*program, "split", *files, "-o", str(split), "--shards", "3"]
    for is_so in (
        lambda: (split / "split.json").exists(),
        lambda: list(split.glob("partial/*")),
        lambda: list(split.glob("shard-*/*")),
        lambda: list(split.glob("files/*")),
    ):
        killed_once(begin, is_so)
        assert not list(split.glob("rows/*"))
    assert wiretale_run("split", *files, "-o", split, "--shards", "3", "-q").returncode == 0
    for shard in range(3):
        for is_so in (lambda: list(split.glob("partial/shard*")), lambda: True):
            killed_once([*program, "analyze", str(split / f"shard-0{shard}")], is_so)
        assert wiretale_run("analyze", split / f"shard-0{shard}", "-q").returncode == 0
    assert wiretale_run("gather", split, "-o", tmp_path / "several", "-q").returncode == 0
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "several" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("name", ["/dev/null", "file"])
def test_a_split_into_a_file_is_refused(tmp_path: Path, wiretale_run: Any, name: str) -> None:
    place = tmp_path / name
    if name == "file":
        place.write_text("kept")
    message = refusal(wiretale_run("split", *FILES, "-o", place, "--shards", "2"), 4)
    assert message == f"{place}: cannot write into it: Not a directory"
    assert name != "file" or place.read_text() == "kept"


def test_packets_of_a_later_layout_are_refused(tmp_path: Path, wiretale_run: Any) -> None:
    head = steps.section_header("9.9")
    later = head.replace(struct.pack("<HHI", 0x8157, 4, 3), struct.pack("<HHI", 0x8157, 4, 4))
    assert later != head
    file = tmp_path / "later.pcapng"
    file.write_bytes(later + interface() + enhanced(1000, bytes(60)))
    text = refusal(wiretale_run("analyze", file), 4)
    assert "expected version 3 of the packets of a split, found 4, of wiretale 9.9" in text
