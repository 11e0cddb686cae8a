# SPDX-License-Identifier: Apache-2.0
"""Many small captures of one `store add` are written together: with the rows that each has alone, once, whole or not at all."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from scapy.all import IP, UDP, Raw

from changed_packets import read_pcap, write_packets
from crafted import START, ether, write_timed
from numbered_payloads import block
from wiretale.analyzer.table import Joined
from wiretale.analyzer.trace import analyze
from wiretale.reports.store.layout import TABLES, Stored

DAY_NS = 86_400 * 10**9
SOURCES = ("tcp_losses", "udp_blocks", "ip_fragments", "vxlan_loss", "timeouts", "lost_tail")
PER_DAY = (20, 17, 2, 1)  # the last one is kept alone
COUNT = 5  # of flows in a row of captures, by the names of the columns


@pytest.fixture(scope="module")
def captures(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small captures on four days, each with traffic of its own."""
    folder = tmp_path_factory.mktemp("captures")
    for day, count in enumerate(PER_DAY):
        for number in range(count):
            packets = read_pcap(samples / f"{SOURCES[number % len(SOURCES)]}.pcap")[: 60 + number]
            shift = day * DAY_NS + number * 10**9
            write_packets(
                folder / f"{day}-{number:02}.pcap", [replace(packet, ns=packet.ns + shift) for packet in packets]
            )
    return folder


def rows(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows by the views of the store, which DuckDB alone reads; without the times of adding."""
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{store}'")
        connection.execute((store / "views.sql").read_text().replace("'./", f"'{store}/"))
        tables = {}
        for table in TABLES:
            columns = sorted(column for column, *_ in connection.execute(f"DESCRIBE {table}").fetchall())
            columns_kept = ", ".join(f'"{column}"::VARCHAR' for column in columns if column != "added_ns")
            tables[table] = connection.execute(f"SELECT {columns_kept} FROM {table} ORDER BY ALL").fetchall()
    return tables


def folders(store: Path) -> list[str]:
    return sorted(place.name.partition("=")[0] for place in store.glob("day=2*/*"))


@pytest.fixture(scope="module")
def together(wiretale_run: Any, captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store") / "together"
    assert wiretale_run("store", "add", store, captures, check=True).stderr.endswith("added 40 captures\n")
    return store


@pytest.mark.parametrize("damage", [None, b"", b"{}"])
def test_captures_of_a_damaged_folder_are_counted_truly(
    wiretale_run: Any, captures: Path, together: Path, tmp_path: Path, damage: bytes | None
) -> None:
    store = Path(shutil.copytree(together, tmp_path / "store"))
    before = rows(store)
    place = next(folder for folder in store.glob("day=2*/many=*") if len(Stored(folder, "", "").digests) == PER_DAY[0])
    manifest = place / "capture.json"
    manifest.write_bytes(damage) if damage is not None else manifest.unlink()
    for words in ((captures,), sorted(captures.iterdir())[:3]):
        again = wiretale_run("store", "add", store, *words, check=True).stderr
        assert again.endswith(f": added 0 captures, {40 if len(words) == 1 else 3} already there\n")
    assert rows(store) == before
    (place / "captures.parquet").write_bytes(b"PAR1")
    again = wiretale_run("store", "add", store, captures, check=True).stderr
    assert again.endswith(f": added {PER_DAY[0]} captures, {40 - PER_DAY[0]} already there\n")
    assert rows(store) == before and wiretale_run("store", "check", store).returncode == 0


def test_rows_are_those_of_captures_that_are_added_alone(
    wiretale_run: Any, captures: Path, together: Path, tmp_path: Path
) -> None:
    for first in range(0, sum(PER_DAY), 10):
        files = sorted(captures.iterdir())[first : first + 10]
        wiretale_run("store", "add", tmp_path / "alone", *files, check=True)
    assert folders(tmp_path / "alone") == ["capture_id"] * 40
    assert folders(together) == ["capture_id"] + ["many"] * 3
    alone = rows(tmp_path / "alone")
    assert rows(together) == alone and len(alone["captures"]) == 40 and len(alone["flows"]) > 40
    query = ("store", "query", together, "SELECT count(*), sum(packets) FROM flows WHERE day = '2026-01-16'", "--json")
    other = ("store", "query", tmp_path / "alone", *query[3:])
    assert wiretale_run(*query).stdout == wiretale_run(*other).stdout
    assert wiretale_run("store", "check", together).stdout == "no problems\n"


def test_joined_tables_have_their_rows_in_order(samples: Path) -> None:
    """Batches begin and end within tables, some of which have no rows."""
    traces = [analyze(samples / f"{name}.pcap") for name in ("vlan_ipv6", "tcp_losses", "udp_blocks")]
    for name in ("directions", "blocks"):
        tables = [trace.table(name) for trace in traces] * 300
        with duckdb.connect() as connection:
            connection.register("joined", Joined(tables))
            joined_rows = connection.execute("FROM joined").fetchall()
        rows = [table.rows() for table in tables[:3]]
        expected = [(*row.values(), number) for number in range(len(tables)) for row in rows[number % 3]]
        assert joined_rows == expected and len(joined_rows) > 4000, name


def test_any_time_of_a_sender_is_kept(wiretale_run: Any, tmp_path: Path) -> None:
    """Alone, together and by watch; DuckDB would read the last time as infinity."""
    sent, files = [1, START * 10**9 + 5, 2**63 - 2, 2**63 - 1], tmp_path / "files"
    files.mkdir()
    for number in range(16):
        udp = IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=4000 + number, dport=4001)
        timed = [(number + k / 1000, ether(udp / Raw(block(k, run=number, sent_ns=ns)))) for k, ns in enumerate(sent)]
        write_timed(files / f"{number:02}.pcap", timed)
    for name, options in {
        "alone": ("store", "add", tmp_path / "alone", files / "00.pcap"),
        "many": ("store", "add", tmp_path / "many", files),
        "watch": ("watch", files, "--store", tmp_path / "watch", "--once"),
    }.items():
        wiretale_run(*options, check=True)
        query = "SELECT DISTINCT sequence, epoch_ns(sent_ns) AS ns FROM blocks ORDER BY ALL"
        printed = wiretale_run("store", "query", tmp_path / name, query, "--json", check=True).stdout
        assert [row["ns"] for row in json.loads(printed)["rows"]] == [min(ns, 2**63 - 2) for ns in sent], name


def test_a_capture_is_kept_once_under_whatever_name(
    wiretale_run: Any, captures: Path, together: Path, tmp_path: Path
) -> None:
    store, files = tmp_path / "store", tmp_path / "files"
    shutil.copytree(captures, files)
    shutil.copy(files / "0-03.pcap", files / "copy.pcap")
    done = wiretale_run("store", "add", store, files)
    assert (done.returncode, done.stderr) == (0, f"wiretale: {store}: added 40 captures, 1 already there\n")
    done = wiretale_run("store", "add", store, files)
    assert (done.returncode, done.stderr) == (0, f"wiretale: {store}: added 0 captures, 41 already there\n")
    assert wiretale_run("store", "add", store, files / "copy.pcap").stderr.endswith(
        "added 0 captures, 1 already there\n"
    )
    assert len(rows(store)["captures"]) == 40


def test_damaged_and_unreadable_captures_do_not_end_the_others(
    wiretale_run: Any, captures: Path, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    shutil.copytree(captures, files)
    cut, broken = files / "0-01.pcap", files / "0-02.pcap"
    cut.write_bytes(cut.read_bytes()[:-5])
    broken.write_bytes(broken.read_bytes()[:20])
    done = wiretale_run("store", "add", tmp_path / "store", *sorted(files.iterdir()))
    assert done.returncode == 4 and "added 39 captures" in done.stderr
    assert f"{cut}: added up to the damage" in done.stderr and f"{broken}: truncated: " in done.stderr
    captures_stored = rows(tmp_path / "store")["captures"]
    assert len(captures_stored) == 39 and sum("truncated" in str(row) for row in captures_stored) == 1


def test_a_changed_file_of_many_captures_is_found(wiretale_run: Any, together: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(together, store)
    place = next(store.glob("day=2026-01-15/many=*"))
    (place / "flows.parquet").write_bytes((place / "flows.parquet").read_bytes() + b"x")
    (place / "events.parquet").unlink()
    done = wiretale_run("store", "check", store)
    assert done.returncode == 3
    assert "flows.parquet: has changed" in done.stdout and "events.parquet: is missing" in done.stdout
    (place / "capture.json").write_text("{}")
    assert "capture.json: is missing or damaged" in wiretale_run("store", "check", store).stdout


def test_captures_that_were_added_together_are_pruned_together(
    wiretale_run: Any, captures: Path, together: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    shutil.copytree(together, store)
    (store / "views.sql").unlink()
    (store / "notes").touch()
    (store / "day=2026-01-15" / "x.parquet").touch()
    checked = wiretale_run("store", "check", store)
    assert checked.returncode == 3 and checked.stdout.splitlines() == [
        f"{store}/views.sql: is missing or has changed (the next `store add` writes it again)",
        f"{store}/day=2026-01-15/x.parquet: is no part of the store",
        f"{store}/notes: is no part of the store",
        "3 problems",
    ]
    wiretale_run("store", "add", store, captures / "0-00.pcap", check=True)
    assert wiretale_run("store", "check", store).stdout.splitlines()[-1] == "2 problems"
    assert (store / "views.sql").read_text() == (together / "views.sql").read_text()
    size = sum(file.stat().st_size for file in store.glob("day=2026-01-1[678]/*/*"))
    listed = wiretale_run("store", "prune", store, "--size", str(size), "-n").stdout.splitlines()
    assert [line.rpartition(": ")[2] for line in sorted(listed, key=lambda line: line.rpartition("/")[2])] == [
        str(captures / f"0-{number:02}.pcap") for number in range(20)
    ]
    done = wiretale_run("store", "prune", store, "--size", str(size))
    assert done.returncode == 0 and "removed 20 captures" in done.stderr
    assert len(rows(store)["captures"]) == 20
    assert "removed 20 captures" in wiretale_run("store", "prune", store, "--age", "1d").stderr
    assert len(rows(store)["flows"]) == 0


def command(store: Path, captures: Path) -> list[str]:
    return [sys.executable, "-m", "wiretale", "store", "add", "-q", str(store), str(captures)]


def test_two_processes_that_add_the_same_captures_keep_each_once(
    wiretale_run: Any, captures: Path, together: Path, tmp_path: Path
) -> None:
    both = [subprocess.Popen(command(tmp_path / "store", captures)) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert rows(tmp_path / "store") == rows(together)
    assert wiretale_run("store", "check", tmp_path / "store").stdout == "no problems\n"


def test_a_killed_process_leaves_each_capture_whole_or_not_at_all(
    wiretale_run: Any, captures: Path, together: Path, tmp_path: Path
) -> None:
    began = time.monotonic()
    subprocess.run(command(tmp_path / "whole", captures), check=True, timeout=120)
    took, draw, expected, killed = time.monotonic() - began, random.Random(5), rows(together), 0
    for number in range(4):
        store = tmp_path / f"{number // 2}"  # every second one begins with what the first left
        began = time.monotonic()
        with subprocess.Popen(command(store, captures), stderr=subprocess.DEVNULL) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=draw.uniform(0.2, 0.95) * took)
                took = time.monotonic() - began  # the machine was busier before
            process.send_signal(signal.SIGKILL)
            killed += process.wait(timeout=60) == -signal.SIGKILL
        if (store / "store.json").exists():
            stored = rows(store)
            ids = set(stored["captures"])
            assert ids <= set(expected["captures"])
            assert len(stored["flows"]) == sum(int(row[COUNT]) for row in ids)
    assert killed
    for number in range(2):
        subprocess.run(command(tmp_path / f"{number}", captures), check=True, timeout=120)
        assert rows(tmp_path / f"{number}") == expected
        assert wiretale_run("store", "check", tmp_path / f"{number}").stdout == "no problems\n"
