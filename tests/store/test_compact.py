# SPDX-License-Identifier: Apache-2.0
"""`wiretale store compact`: the same rows from fewer files, also while others add, prune and query, and after kill -9."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from crafted import dns_answer, dns_query, write_timed
from processes import refusal
from wiretale.analyzer.errors import OutputError
from wiretale.analyzer.table import STORED_TABLES
from wiretale.reports.store import compact as compacting
from wiretale.reports.store.add import add
from wiretale.reports.store.compact import between_queries, compact
from wiretale.reports.store.layout import VIEWS, captures, stored
from wiretale.reports.store.upkeep import check, chosen_for_removal
from wiretale.reports.store.views import connect, consistent, select, views_sql

DAY = 86_400
KILLS = 15
KINDS = ("capture_id", "many")  # of folders
# Compacts the store of each line in a process that is killed at its nth call of the system, or prints the number of calls.
KILLED = """
import os, signal, sys, wiretale.reports.store.compact as compacting
from pathlib import Path
import wiretale.analyzer.query, duckdb
EVENTS = ("os.", "open", "shutil.", "tempfile.", "fcntl.", "ctypes.")
for line in sys.stdin:
    store, last = line.rsplit(" ", 1)
    child = os.fork()
    if not child:
        calls = 0
        def count(event, arguments):
            global calls
            if event.startswith(EVENTS):
                calls += 1
                if calls == int(last):
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(count)
        list(compacting.compact(Path(store), 0))
        print(calls, flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("killed", flush=True)
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """A store of two days with three captures each, one without a time, and one alone on its day."""
    folder = tmp_path_factory.mktemp("compact")
    paths = [str(samples / name) for name in ("tcp_losses.pcap", "vlan_ipv6.pcap", "ip_fragments.pcap")]
    paths += [dated(folder, days, number) for days, number in ((2, 0), (2, 1), (2, 2), (1, 0))]
    assert {addition.outcome for addition in add(folder / "store", paths)} == {"added"}
    return folder / "store"


def dated(folder: Path, days: int, number: int) -> str:
    """A capture of a question of DNS, so many days before 14 November 2023."""
    timed = [
        (at - days * DAY, packet) for at, packet in (dns_query(0.5, number=number), dns_answer(0.6, number=number))
    ]
    return str(write_timed(folder / f"{days}-{number}.pcap", timed))


@pytest.fixture
def store(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "a 'store' of [captures]"))


def rows_of(store: Path, table: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table, as wiretale reads them."""
    sql = f"SELECT COLUMNS(*)::VARCHAR FROM {table}"

    def read() -> Counter[tuple[Any, ...]]:
        with connect(store, sql) as connection:
            return Counter(select(connection, sql, 10**6)[1])

    return consistent(store, read)


def contents(store: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    return {table: rows_of(store, table) for table in ("captures", *STORED_TABLES)}


def files(store: Path) -> int:
    return sum(file.name == "flows.parquet" for file in store.glob("day=2*/*/*"))


def test_the_rows_and_their_order_stay(wiretale_run: Any, store: Path) -> None:
    before, digests = contents(store), stored(store)
    order = "SELECT capture_id, frame FROM events WHERE capture_id = (SELECT capture_id FROM captures WHERE path LIKE '%losses%')"
    events = wiretale_run("store", "query", store, order, "--json").stdout
    done = wiretale_run("store", "compact", store, "--age", "0s")
    assert done.returncode == 0 and "compacted 6 captures of 2 days" in done.stderr, done.stderr
    assert contents(store) == before and stored(store) == digests
    assert wiretale_run("store", "query", store, order, "--json").stdout == events and events.count("frame") > 10
    assert files(store) == 3 and wiretale_run("store", "check", store).stdout == "no problems\n"
    again = wiretale_run("store", "compact", store, "--age", "0s")
    assert again.returncode == 0 and "compacted 0 captures" in again.stderr


def test_duckdb_alone_reads_it(store: Path) -> None:
    flows = sum(rows_of(store, "flows").values())
    assert len(list(compact(store, 0))) == 2
    script = """
import duckdb
connection = duckdb.connect()
connection.execute(open("views.sql").read())
print(connection.sql("SELECT count(*), count(DISTINCT capture_id), count(day) FROM flows").fetchall())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=store, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"[({flows}, 7, {flows})]\n", done.stderr


@pytest.mark.parametrize("name", ["day=2020-01-01", "flows=3", "site=berlin/x", "not\udcffUTF-8"])
def test_the_path_of_a_store_changes_no_column(original: Path, tmp_path: Path, name: str) -> None:
    """DuckDB would read `a=b` as a column, which replaces one of that name."""
    store, before = Path(shutil.copytree(original, tmp_path / name)), contents(original)
    assert contents(store) == before
    assert [joined.captures for joined in compact(store, 0)] == [3, 3]
    assert contents(store) == before and not list(check(store))


def test_files_of_other_programs_stay_and_the_views_come_back(store: Path) -> None:
    other = max(store.glob("day=2*")) / ".DS_Store"
    other.write_text("mine")
    (store / VIEWS).unlink()
    assert len(list(compact(store, 0))) == 2
    assert other.read_text() == "mine" and not list(check(store))
    assert (store / VIEWS).read_text() == views_sql(many=True)


def test_new_captures_are_left_and_joined_later(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    assert "compacted 0 captures of 0 days" in wiretale_run("store", "compact", store).stderr
    assert len(list(compact(store, 0))) == 2
    more = [dated(tmp_path, 2, number) for number in (7, 8)]
    assert [addition.outcome for addition in add(store, [*more, dated(tmp_path, 2, 1)])] == [
        "added",
        "added",
        "present",
    ]
    before = contents(store)
    assert [(joined.day, joined.captures) for joined in compact(store, 0)] == [("2023-11-12", 5)]
    assert contents(store) == before and len(rows_of(store, "captures")) == 9 and files(store) == 3


def test_single_captures_are_pruned(wiretale_run: Any, store: Path) -> None:
    before, digests = contents(store), stored(store)
    assert len(list(compact(store, 0))) == 2
    size = sum(capture.bytes for capture in captures(store))
    (gone,) = chosen_for_removal(store, None, size - 100)
    assert gone.stored.day == "2023-11-12" and gone.captures == 1 and 0 < gone.bytes < gone.stored.bytes / 2
    dry_run = wiretale_run("store", "prune", store, "--size", str(size - 100), "-n")
    assert (
        dry_run.stdout.startswith(f"{gone.path}: /")
        and dry_run.stdout.endswith(".pcap\n")
        and dry_run.stdout.count("\n") == 1
    )
    assert "would remove 1 capture" in dry_run.stderr
    done = wiretale_run("store", "prune", store, "--size", str(size - 100))
    assert done.returncode == 0 and "removed 1 capture" in done.stderr, done.stderr
    assert stored(store) == digests - {gone.digest} and sum(capture.bytes for capture in captures(store)) < size
    for table, rows in contents(store).items():
        assert rows == Counter({row: n for row, n in before[table].items() if gone.digest not in row}), table
    assert list(check(store)) == []


def test_compacted_days_are_pruned(wiretale_run: Any, store: Path) -> None:
    assert len(list(compact(store, 0))) == 2
    most = sum(capture.bytes for capture in captures(store) if (capture.day or "9999") > "2023-11-13")
    assert wiretale_run("store", "prune", store, "--size", str(most)).returncode == 0
    assert not list(store.glob("day=2023-*")) and len(stored(store)) == 3 and list(check(store)) == []
    assert wiretale_run("store", "prune", store, "--size", "0").returncode == 0
    assert stored(store) == set() and not list(store.glob("day=2*"))


def compacted(store: Path) -> Path:
    """The folder of the captures of a day that are compacted."""
    (place,) = store.glob("day=2023-11-12/many=*")
    return place


def test_members_of_other_programs_are_kept(store: Path) -> None:
    capture = next(capture for capture in captures(store) if capture.day == "2023-11-12")
    file = capture.folder / "capture.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "watch": {"slot": 7}}))
    assert len(list(compact(store, 0))) == 2
    manifest = json.loads((compacted(store) / "capture.json").read_text())
    assert manifest["members"] == {capture.digest: {"watch": {"slot": 7}}} and capture.digest in manifest["captures"]


def test_a_check_finds_each_change_of_compacted_files(wiretale_run: Any, store: Path) -> None:
    assert len(list(compact(store, 0))) == 2
    place = compacted(store)
    for name, message in (("flows.parquet", "has changed"), ("capture.json", "is missing or damaged")):
        data = (place / name).read_bytes()
        (place / name).write_bytes(data[:-9])
        done = wiretale_run("store", "check", store)
        assert done.returncode == 3 and f"{place / name}: {message}" in done.stdout
        (place / name).write_bytes(data)
    assert wiretale_run("store", "check", store).returncode == 0


def test_a_damaged_table_is_named_and_nothing_changes(wiretale_run: Any, store: Path) -> None:
    before = sorted(str(path) for path in store.glob("day=*/*/*"))
    (file,) = [capture.folder / "flows.parquet" for capture in captures(store) if capture.day == "2023-11-12"][:1]
    file.write_bytes(file.read_bytes()[:-4])
    assert "store check" in refusal(wiretale_run("store", "compact", store, "--age", "0s"), 4)
    assert sorted(str(path) for path in store.glob("day=2023*/*/*")) == [path for path in before if "day=2023" in path]


def test_a_file_system_that_cannot_exchange_folders_is_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(store)

    def refused(*places: Path) -> None:
        raise OSError(errno.EINVAL, "this file system cannot exchange folders: Invalid argument")

    monkeypatch.setattr(compacting, "exchange", refused)
    with pytest.raises(OutputError, match="cannot write: this file system cannot exchange folders"):
        list(compact(store, 0))
    assert contents(store) == before and files(store) == 7 and list(check(store)) == []


def test_a_capture_that_is_added_meanwhile_stays(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is published while the files are written."""
    new = dated(tmp_path, 2, 9)
    write = compacting.write_manifest

    def add_first(*arguments: Any) -> None:
        monkeypatch.setattr(compacting, "write_manifest", write)
        assert [addition.outcome for addition in add(store, [new])] == ["added"]
        write(*arguments)

    monkeypatch.setattr(compacting, "write_manifest", add_first)
    assert len(list(compact(store, 0))) == 2
    assert len(rows_of(store, "captures")) == 8 and list(check(store)) == []
    assert [addition.outcome for addition in add(store, [new, dated(tmp_path, 2, 1)])] == ["present", "present"]


def test_a_reader_sees_all_rows_at_any_time(store: Path) -> None:
    before, seen, over = rows_of(store, "flows"), [0], threading.Event()

    def read() -> None:
        while not over.is_set():
            assert rows_of(store, "flows") == before
            seen[0] += 1
            time.sleep(0.01)

    failures: list[BaseException] = []
    thread = threading.Thread(target=lambda: failures.extend(raised(read)))
    thread.start()
    copy = shutil.copytree(store, store.parent / "copy")
    for _ in range(2):
        assert len(list(compact(store, 0))) == 2
        for day in sorted(copy.glob("day=20*")):  # as it was, by an exchange
            shutil.copytree(day, store / f".{day.name}")
            with between_queries(store):
                compacting.exchange(store / f".{day.name}", store / day.name)
            shutil.rmtree(store / f".{day.name}")
    over.set()
    thread.join()
    assert failures == [] and seen[0] > 0


def raised(call: Any) -> Iterator[BaseException]:
    """What a function raises."""
    try:
        call()
    except BaseException as error:
        yield error


def test_a_process_that_is_killed_at_any_call_leaves_the_rows(tmp_path: Path) -> None:
    """The day has compacted captures and others."""
    original, copies = tmp_path / "whole", [tmp_path / f"{number}" for number in range(KILLS)]
    assert len(list(add(original, [dated(tmp_path, 2, number) for number in (0, 1)]))) == 2
    assert len(list(compact(original, 0))) == 1
    assert len(list(add(original, [dated(tmp_path, 2, number) for number in (2, 3)]))) == 2
    expected, states = contents(original), set()
    command = [sys.executable, "-c", KILLED]
    with (
        duckdb.connect() as connection,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdin and process.stdout

        def run(store: Path, last: int) -> str:
            assert process.stdin and process.stdout
            print(shutil.copytree(original, store), last, file=process.stdin, flush=True)
            return process.stdout.readline().strip()

        calls = int(run(tmp_path / "first", -1))
        assert calls > KILLS
        for number, store in enumerate(copies):
            assert run(store, 1 + calls * number // KILLS) == "killed"
            ids = " UNION ALL ".join(f"SELECT id FROM '{store}/day=*/{kind}=*/exchanges.parquet'" for kind in KINDS)
            assert connection.sql(f"SELECT list(id ORDER BY id) FROM ({ids})").fetchall() == [([0, 1, 2, 3],)], number
            states.add(files(store))
        process.stdin.close()
    assert states == {1, 3}  # before and after the rename
    for store in copies[::6]:
        assert len(list(compact(store, 0))) <= 1 and files(store) == 1
        assert contents(store) == expected and list(check(store)) == []
