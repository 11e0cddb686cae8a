# SPDX-License-Identifier: Apache-2.0
"""`wiretale store prune` and `compact` keep the age of what they do not change, and the store whole on a full disk."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import needs
from crafted import dns_answer, dns_query, write_timed
from processes import refusal, small_disk
from wiretale.reports.store.add import add

DAY = 86_400


def dated(folder: Path, days: int, number: int) -> str:
    """A capture of a question of DNS, so many days before 14 November 2023."""
    packets = dns_query(0.5, number=number), dns_answer(0.6, number=number)
    return str(write_timed(folder / f"{days}-{number}.pcap", [(at - days * DAY, packet) for at, packet in packets]))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of two days, with three captures and one."""
    paths = [dated(tmp_path, days, number) for days, number in ((2, 0), (2, 1), (2, 2), (1, 0))]
    assert {addition.outcome for addition in add(tmp_path / "store", paths)} == {"added"}
    return tmp_path / "store"


def ages(store: Path) -> dict[str, int]:
    """The time of each folder of captures, from which compact computes its age."""
    return {place.name: place.stat().st_mtime_ns for place in store.glob("day=2*/*")}


def test_folders_keep_their_age(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    for number, place in enumerate(sorted(store.glob("day=2*/*"))):
        at = place.stat().st_mtime_ns - 3 * DAY * 10**9 + number * 10**9
        os.utime(place, ns=(at, at))
    old = ages(store)
    assert [addition.outcome for addition in add(store, [dated(tmp_path, 2, 7)])] == ["added"]
    before = ages(store)
    assert "compacted 3 captures of 1 day" in wiretale_run("store", "compact", store).stderr
    after = ages(store)
    (many,) = after.keys() - before.keys()
    assert len(after) == 3 and after[many] == sorted(old.values())[2]
    assert all(at == before[name] for name, at in after.items() if name != many)
    size = sum(file.stat().st_size for place in store.glob("day=2*/*") for file in place.iterdir())
    assert "removed 1 capture" in wiretale_run("store", "prune", store, "--size", str(size - 99)).stderr
    rewritten = ages(store)
    (other,) = rewritten.keys() - after.keys()
    assert len(rewritten) == 3 and rewritten[other] == after[many]
    assert all(at == after[name] for name, at in rewritten.items() if name != other)
    assert wiretale_run("store", "check", store).stdout == "no problems\n"


def fill(disk: Path) -> Path:
    """Leaves no room on a file system."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)) == 4096:
            pass
    return disk / "filler"


@needs.marked(needs.root())
def test_a_full_disk_leaves_the_store_whole(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    query = "SELECT (SELECT count(*) FROM captures) AS captures, count(*) AS flows, sum(packets) AS packets FROM flows"
    with small_disk(tmp_path / "disk", "size=4m") as disk:
        small = Path(shutil.copytree(store, disk / "store"))
        before = wiretale_run("store", "query", small, query, "--json").stdout
        filler = fill(disk)
        assert "No space left on device" in refusal(wiretale_run("store", "compact", small, "--age", "0s"), 4)
        assert wiretale_run("store", "check", small).stdout == "no problems\n"
        assert wiretale_run("store", "query", small, query, "--json").stdout == before
        filler.unlink()
        assert wiretale_run("store", "compact", small, "--age", "0s").returncode == 0
        assert wiretale_run("store", "query", small, query, "--json").stdout == before
        filler = fill(disk)
        size = sum(file.stat().st_size for place in small.glob("day=2*/*") for file in place.iterdir())
        done = wiretale_run("store", "prune", small, "--size", str(size - 99), "-q")
        assert "No space left on device" in refusal(done, 4)
        assert wiretale_run("store", "query", small, query, "--json").stdout == before
        assert wiretale_run("store", "check", small).stdout == "no problems\n"
        # Whole folders need no room, and make some.
        assert wiretale_run("store", "prune", small, "--size", "0", "-q").returncode == 0
        assert list(small.glob("day=2*")) == []
