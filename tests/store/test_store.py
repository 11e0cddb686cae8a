# SPDX-License-Identifier: Apache-2.0
"""`wiretale store`: every row of every capture once, queries with and without wiretale, and what must be refused."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest
from scapy.all import IP, UDP, Ether

import needs
import wiretale
from crafted import NEIGHBOR, dns_answer, dns_query, write_timed
from processes import refusal, small_disk, wait_until
from wiretale.analyzer.query import register
from wiretale.analyzer.table import STORED_TABLES
from wiretale.reports.store.layout import publish
from wiretale.reports.store.views import connect, select, tables_in

NAMES = ("tcp_losses.pcap", "udp_blocks.pcap", "vlan_ipv6.pcap", "ip_fragments.pcap")
DAY = 86_400
TEXT = "SELECT COLUMNS(*)::VARCHAR FROM"
COUNTS = " UNION ALL ".join(
    f"SELECT '{table}' AS name, count(*) AS rows FROM {table}" for table in ("captures", *STORED_TABLES)
)


@pytest.fixture(scope="module")
def store(wiretale_run: Any, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of some samples."""
    folder = tmp_path_factory.mktemp("stores") / "a 'store' of [captures]"
    done = wiretale_run("store", "add", folder, *(samples / name for name in NAMES))
    assert (done.returncode, done.stdout) == (0, "") and "added 4 captures" in done.stderr, done
    return folder


def rows(run: Any, folder: Path, *words: str) -> list[dict[str, Any]]:
    """The rows that an action of `wiretale store` prints as JSON."""
    action, *options = words
    done = run("store", action, folder, *options, "--json")
    assert done.returncode == 0, done.stderr
    printed: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return printed


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a store that readers see."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.relative_to(folder).parts[0].startswith(".")
    }


def dated(folder: Path, days: int) -> Path:
    """A capture of one question of DNS, so many days before 14 November 2023."""
    timed = [(at - days * DAY, packet) for at, packet in (dns_query(0.5), dns_answer(0.6))]
    return write_timed(folder / f"{days}.pcap", timed)


@pytest.mark.parametrize("name", NAMES)
def test_each_table_has_the_rows_of_the_analysis(
    wiretale_run: Any, samples: Path, store: Path, tmp_path: Path, name: str
) -> None:
    assert wiretale_run("analyze", samples / name, "-o", tmp_path).returncode == 0
    for table in STORED_TABLES:
        of_capture = f"SEMI JOIN (FROM captures WHERE path LIKE '%{name}') USING (capture_id)"
        sql = f"{TEXT} (SELECT * EXCLUDE (day, capture_id) FROM {table} {of_capture})"
        expected = duckdb.sql(f"{TEXT} '{tmp_path}/{table}.parquet'")
        with connect(store, sql) as connection:
            columns, stored = select(connection, sql, 10**6)
        assert [column for column, _ in columns] == expected.columns, table
        assert [tuple(row) for row in stored] == expected.fetchall(), table


def test_the_captures_have_path_size_and_span(wiretale_run: Any, samples: Path, store: Path) -> None:
    captures = {Path(row["path"]).name: row for row in rows(wiretale_run, store, "query", "FROM captures")}
    for name in NAMES:
        trace, row = wiretale.analyze(samples / name), captures[name]
        assert (row["bytes"], row["flows"]) == ((samples / name).stat().st_size, len(trace.flows))
        assert row["packets"] == sum(trace.interfaces["packets"]) and row["damage"] is None
        assert row["day"] == row["first_ns"][:10] == "2026-01-15"
        assert row["interface_captures"] == [row["capture_id"]] * len(trace.interfaces)
    (row,) = rows(wiretale_run, store, "query", "SELECT ['a', NULL] AS names, [[1.5::DOUBLE, 'nan'::DOUBLE]] AS shares")
    assert row == {"names": ["a", None], "shares": [[1.5, None]]}


def test_times_are_utc_wherever_the_machine_is(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    capture, here, store = samples / NAMES[0], {"env": {"TZ": "America/New_York"}}, tmp_path / "store"
    first = min(wiretale.analyze(capture).flows["first_ns"])
    before = time.time_ns()
    wiretale_run("analyze", capture, "-q", "--no-frames", "-o", tmp_path / "out", check=True, **here)
    wiretale_run("store", "add", store, capture, check=True, **here)
    earliest = f"SELECT min(epoch_ns(first_ns)) FROM '{tmp_path}/out/flows.parquet'"
    assert duckdb.sql(earliest).fetchall() == [(first,)]
    columns = "first_ns, epoch_ns(first_ns) AS ns, epoch_ns(added_ns) AS added"
    sql = f"SELECT {columns} FROM captures WHERE first_ns < '2026-01-15 12:01'"
    done = wiretale_run("store", "query", store, sql, "--json", check=True, **here)
    (row,) = json.loads(done.stdout)["rows"]
    assert row["ns"] == first and row["first_ns"].startswith("2026-01-15 12:00:00") and row["first_ns"].endswith("+00")
    assert before <= row["added"] <= time.time_ns()


def test_duckdb_alone_reads_it(samples: Path, store: Path) -> None:
    flows = sum(len(wiretale.analyze(samples / name).flows) for name in NAMES)
    script = """
import duckdb
connection = duckdb.connect()
connection.execute(open("views.sql").read())
print(connection.sql("SELECT count(*), count(DISTINCT capture_id) FROM flows WHERE day = '2026-01-15'").fetchall())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=store, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"[({flows}, {len(NAMES)})]\n", done.stderr


def test_a_damaged_marker_is_one_line_with_the_remedy(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(store, tmp_path / "store"))
    (copy / "store.json").write_text("garbage")
    error = refusal(wiretale_run("store", "check", copy), 4)
    assert error.startswith(f"{copy}/store.json: damaged: write `{{")
    (copy / "store.json").write_text(error.split("`")[1])
    assert wiretale_run("store", "check", copy).stdout == "no problems\n"
    assert len(rows(wiretale_run, copy, "query", "FROM captures")) == len(NAMES)


def test_a_capture_that_is_not_there_is_one_line(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    before = contents(store)
    done = wiretale_run("store", "add", store, tmp_path / "misspelt.pcap")
    assert refusal(done, 4) == f"{tmp_path / 'misspelt.pcap'}: No such file or directory"
    assert contents(store) == before


def test_a_full_disk_is_one_line_and_leaves_the_store_as_it_was(
    wiretale_run: Any, samples: Path, tmp_path: Path
) -> None:
    needs.skip_without(needs.mounts())
    with small_disk(tmp_path / "small", "size=600k") as small:
        assert wiretale_run("store", "add", small / "store", samples / NAMES[0]).returncode == 0
        room = os.statvfs(small)
        (small / "other").write_bytes(bytes((room.f_bavail - 3) * room.f_frsize))
        before = contents(small / "store")
        problem = refusal(wiretale_run("store", "add", small / "store", samples / NAMES[1]), 4)
        assert "No space left on device" in problem
        assert contents(small / "store") == before
        assert wiretale_run("store", "check", small / "store").returncode == 0


def test_a_capture_is_kept_once_whatever_its_name(
    wiretale_run: Any, samples: Path, store: Path, tmp_path: Path
) -> None:
    shutil.copy(samples / NAMES[0], tmp_path / "other.pcap")
    before = contents(store)
    done = wiretale_run("store", "add", store, tmp_path / "other.pcap", samples / NAMES[1])
    assert done.returncode == 0 and "added 0 captures, 2 already there" in done.stderr
    assert contents(store) == before


def test_a_file_that_cannot_be_read_does_not_end_the_others(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pcap"
    wrong.write_bytes(b"no capture")
    done = wiretale_run("store", "add", tmp_path / "s", samples / "damaged.pcap", wrong, samples / NAMES[0])
    assert done.returncode == 3 and str(wrong) in done.stderr
    assert f"{samples / 'damaged.pcap'}: added up to the damage: at byte" in done.stderr
    assert len(rows(wiretale_run, tmp_path / "s", "query", "FROM captures")) == 2
    assert wiretale_run("store", "add", tmp_path / "t", samples / "damaged.pcap").returncode == 3
    (row,) = rows(wiretale_run, tmp_path / "t", "query", "SELECT damage, packets FROM captures")
    assert "captured length" in row["damage"] and row["packets"] == 60


def test_an_empty_store_has_every_view(wiretale_run: Any, tmp_path: Path) -> None:
    empty = write_timed(tmp_path / "none.pcap", [])
    assert wiretale_run("store", "add", tmp_path / "s", empty).returncode == 0
    assert wiretale_run("store", "prune", tmp_path / "s", "--size", "0").returncode == 0
    counts = {row["name"]: row["rows"] for row in rows(wiretale_run, tmp_path / "s", "query", COUNTS)}
    assert counts == dict.fromkeys(("captures", *STORED_TABLES), 0)
    assert rows(wiretale_run, tmp_path / "s", "query", "FROM flows") == []
    for action in ("flows", "findings", "top"):
        assert rows(wiretale_run, tmp_path / "s", action) == []


def test_flows_findings_and_sums_agree_with_the_captures(wiretale_run: Any, samples: Path, store: Path) -> None:
    traces = [wiretale.analyze(samples / name) for name in NAMES]
    flows = rows(wiretale_run, store, "flows")
    sizes = sorted((row["wire_bytes"] for trace in traces for row in trace.flows), reverse=True)
    assert [row["wire_bytes"] for row in flows] == sizes
    lost = sum(trace.directions.total(name) for trace in traces for name in ("lost_upstream", "lost_downstream"))
    assert sum(row["lost"] for row in rows(wiretale_run, store, "flows", "--where", "lost > 0")) == lost > 0
    # A condition on a column of directions is answered by another query.
    assert rows(wiretale_run, store, "flows", "--where", "lost IS NULL OR lost >= 0") == flows
    assert rows(wiretale_run, store, "flows", "--where", "day = '2026-01-15'") == flows
    assert rows(wiretale_run, store, "flows", "--limit", "3") == flows[:3]
    assert len(rows(wiretale_run, store, "findings")) == sum(len(trace.findings) for trace in traces)
    packets = sum(row["packets"] for trace in traces for row in trace.flows)
    for group, sum_of in (("hosts", 2 * packets), ("pairs", packets), ("ports", packets), ("days", packets)):
        assert sum(row["packets"] for row in rows(wiretale_run, store, "top", "--by", group)) == sum_of, group
    printed = wiretale_run("store", "flows", store, "--limit", "2")
    assert printed.returncode == 0 and "2 rows, and more: see --limit" in printed.stdout
    assert "10.30.0.2:5001" in printed.stdout


def test_times_of_sums_are_shown_like_those_of_flows(wiretale_run: Any, store: Path) -> None:
    times = [row["first_ns"] for row in rows(wiretale_run, store, "flows")]
    (day,) = rows(wiretale_run, store, "top", "--by", "days")
    assert day["first_ns"] == min(times) <= day["last_ns"]
    printed = wiretale_run("store", "top", store, "--by", "days").stdout.splitlines()
    assert printed[0].split()[-2:] == ["first", "last"]
    assert printed[2].endswith(f"{day['first_ns'][:19]}   {day['last_ns'][:19]}")


def test_a_host_that_talks_to_itself_counts_once(wiretale_run: Any, tmp_path: Path) -> None:
    packet = Ether(dst=NEIGHBOR) / IP(src="127.0.0.1", dst="127.0.0.1") / UDP(sport=5000, dport=5001)
    capture = write_timed(tmp_path / "loopback.pcap", [(0.5, packet), (0.6, packet)])
    assert wiretale_run("store", "add", tmp_path / "s", capture).returncode == 0
    (row,) = rows(wiretale_run, tmp_path / "s", "top")
    assert (row["host"], row["flows"], row["packets"]) == ("127.0.0.1", 1, 2)


@pytest.mark.parametrize("width", [60, 80, 105, 122])
@pytest.mark.parametrize("words", [("flows",), ("findings",), ("query", "FROM flows")])
def test_no_word_is_broken_in_a_narrow_terminal(
    wiretale_run: Any, store: Path, words: tuple[str, ...], width: int
) -> None:
    action, *sql = words

    def printed(columns: int) -> str:
        return str(wiretale_run("store", action, store, *sql, "--limit", "5", env={"COLUMNS": str(columns)}).stdout)

    narrow = printed(width)
    assert max(map(len, narrow.splitlines())) <= width
    assert {word for word in narrow.split() if set(word) != {"─"}} <= set(printed(1000).split())
    assert narrow.count("\n") > 5


def test_counts_of_a_list_have_one_style_and_each_row_a_name(wiretale_run: Any, store: Path) -> None:
    sql = "SELECT 47812 AS packets, 47697328 AS wire_bytes, 44300 AS source_port, 12345 AS flow"
    printed = wiretale_run("store", "query", store, sql).stdout.splitlines()[2]
    assert printed.split() == ["47,812", "47,697,328", "44300", "12345"]
    printed = wiretale_run("store", "query", store, "SELECT 47812 AS packets, 2026 AS number").stdout.splitlines()[2]
    assert printed.split() == ["47812", "2026"]
    assert "(not recognized)" in wiretale_run("store", "top", store, "--by", "applications").stdout
    assert None in [row["application"] for row in rows(wiretale_run, store, "top", "--by", "applications")]


@pytest.mark.parametrize("words", [("query", "FROM flows"), ("flows",), ("top",)])
def test_a_damaged_file_is_not_the_fault_of_the_query(
    wiretale_run: Any, store: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    folder = Path(shutil.copytree(store, tmp_path / "s"))
    os.truncate(max(folder.glob("day=2*/*/flows.parquet")), 100)
    error = refusal(wiretale_run("store", words[0], folder, *words[1:]), 4)
    assert "flows.parquet" in error and "wiretale store check" in error and "query" not in error


def test_losses_that_were_not_judged_are_null(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    """The answers of a DNS query have no sequence numbers; TCP has losses, also 0."""
    assert wiretale_run("store", "add", tmp_path / "s", dated(tmp_path, 1)).returncode == 0
    assert [row["lost"] for row in rows(wiretale_run, tmp_path / "s", "flows")] == [None]
    assert rows(wiretale_run, tmp_path / "s", "flows", "--where", "lost = 0") == []
    tcp = rows(wiretale_run, store, "flows", "--where", "protocol = 'tcp'")
    assert tcp and all(row["lost"] is not None for row in tcp)


def test_a_capture_is_added_though_its_empty_day_is_removed_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, place = tmp_path / "made", tmp_path / "day=2023-11-14" / "capture_id=0"
    made.mkdir()
    (made / "flows.parquet").write_text("rows")
    rename = Path.rename

    def prune_first(source: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        place.parent.rmdir()
        return source.rename(target)

    monkeypatch.setattr(Path, "rename", prune_first)
    assert publish(made, place) and (place / "flows.parquet").read_text() == "rows"


@pytest.mark.parametrize(
    "words, message",
    [
        (("query", "DROP TABLE flows"), "expected one SELECT statement"),
        (("query", "SELECT 1; SELECT 2"), "expected one SELECT statement"),
        (("query", "COPY flows TO 'x.csv'"), "expected one SELECT statement"),
        (("query", "SELECT nothing FROM flows"), 'column "nothing" not found'),
        (("query", "SELECT 'a'::INT FROM range(3)"), "Could not convert"),
        (("query", "SELECT '\udcff'"), "expected one SELECT statement in UTF-8"),
        (("query", "FROM 'day=1.parquet'"), "the query: "),
        (("flows", "--where", "source = '\udcff'"), "in UTF-8"),
        (("flows", "--where", "no_column > 1"), "no_column"),
        (("flows", "--where", "1 = 1) --"), '--where: Parser Error: syntax error at or near ")"\n'),
        (("flows", "--where", "lost >"), '--where: Parser Error: syntax error at or near ">"\n'),
        (("flows", "--where", "losst > 1"), 'Candidate bindings: "lost", '),
        (("flows", "--where", "packets = 'a'"), "--where: Conversion Error: Could not convert string 'a' to INT64\n"),
        (("top", "--where", "true; SELECT 1"), "--where: expected one condition\n"),
        (("query", "SELECT 1,\n  FRM flows"), "FROM clause is missing\n"),
        (("prune",), "needs --age, --size or both"),
        (("prune", "--age", "soon"), "expected a duration"),
        (("prune", "--age", "3"), "'3': expected a duration such as 30d or 12h"),
        (("compact", "--age", "3."), "'3.': expected a duration such as 30d or 12h"),
        (("top", "--by", "color"), "color"),
    ],
)
def test_wrong_words_are_one_line(wiretale_run: Any, store: Path, words: tuple[str, ...], message: str) -> None:
    action, *options = words
    before = contents(store)
    assert message in refusal(wiretale_run("store", action, store, *options)) + "\n"
    assert contents(store) == before


def test_a_folder_that_is_no_store_is_refused(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt" in refusal(wiretale_run("store", "add", tmp_path, samples / NAMES[0]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt"]
    for action in ("flows", "check"):
        assert "expected a store" in refusal(wiretale_run("store", action, tmp_path), 4)
    os.mkfifo(tmp_path / "pipe.pcap")
    for path in ("-", tmp_path / "pipe.pcap", "/dev/zero"):
        assert "expected capture files" in refusal(wiretale_run("store", "add", tmp_path / "new", path)), path
    assert not (tmp_path / "new").exists()


def test_old_captures_are_removed_by_day_or_size(wiretale_run: Any, tmp_path: Path) -> None:
    folder, captures = tmp_path / "s", [dated(tmp_path, days) for days in (3, 2, 1)]
    assert wiretale_run("store", "add", folder, *captures).returncode == 0
    days = "SELECT day FROM captures ORDER BY day"
    before = contents(folder)
    done = wiretale_run("store", "prune", folder, "--age", "1d", "-n")
    assert done.returncode == 0 and "would remove 3 captures" in done.stderr and done.stdout.count("day=2023-11-1") == 3
    assert contents(folder) == before
    size = sum(len(data) for name, data in before.items() if "day=2023-11-13" in name)
    done = wiretale_run("store", "prune", folder, "--size", str(size * 2 + 200))
    assert done.returncode == 0 and "removed 1 capture" in done.stderr
    assert [row["day"] for row in rows(wiretale_run, folder, "query", days)] == ["2023-11-12", "2023-11-13"]
    assert not (folder / "day=2023-11-11").exists()
    assert wiretale_run("store", "prune", folder, "--age", "1d").returncode == 0
    assert rows(wiretale_run, folder, "query", days) == []
    assert wiretale_run("store", "add", folder, captures[0]).returncode == 0
    assert len(rows(wiretale_run, folder, "query", days)) == 1


def test_a_check_finds_each_change(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    wiretale_run("store", "add", folder, samples / NAMES[0])
    done = wiretale_run("store", "check", folder)
    assert (done.returncode, done.stdout) == (0, "no problems\n")
    (place,) = folder.glob("day=2*/capture_id=*")
    changes = {"flows.parquet": "has changed", "events.parquet": "is missing", "capture.json": "is missing or damaged"}
    for name, problem in changes.items():
        file, data = place / name, (place / name).read_bytes()
        if "missing" in problem:
            file.unlink()
        else:
            file.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
        done = wiretale_run("store", "check", folder)
        assert done.returncode == 3 and f"{file}: {problem}" in done.stdout, done.stdout
        file.write_bytes(data)
    (folder / ".adding-killed").mkdir()
    assert ".adding-killed" in wiretale_run("store", "check", folder).stdout
    wiretale_run("store", "add", folder, samples / NAMES[1])
    assert wiretale_run("store", "check", folder).returncode == 0


def test_a_check_while_a_process_adds_finds_no_problem(wiretale_run: Any, store: Path) -> None:
    place = store / ".adding-now"
    place.mkdir()
    with (store / ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert wiretale_run("store", "check", store).stdout == "no problems\n"
    assert wiretale_run("store", "check", store).returncode == 3
    place.rmdir()


def test_tables_without_rows_have_no_file(wiretale_run: Any, tmp_path: Path) -> None:
    assert wiretale_run("store", "add", tmp_path / "s", dated(tmp_path, 1)).returncode == 0
    (place,) = (tmp_path / "s").glob("day=2*/capture_id=*")
    tables = {file.stem for file in place.glob("*.parquet")}
    assert {"captures", "interfaces", "flows", "exchanges"} <= tables
    counts = rows(wiretale_run, tmp_path / "s", "query", COUNTS)
    assert {row["name"] for row in counts if row["rows"]} == tables and len(counts) == 1 + len(STORED_TABLES)


def test_captures_of_versions_with_other_columns(wiretale_run: Any, tmp_path: Path) -> None:
    """The first capture has a column that later ones lack, as by another version."""
    folder, (first, second) = tmp_path / "s", (dated(tmp_path, days) for days in (2, 1))
    assert wiretale_run("store", "add", folder, first).returncode == 0
    columns = json.loads((folder / "store.json").read_text())["columns"]
    (file,) = folder.glob("day=2*/capture_id=*/flows.parquet")
    duckdb.sql(f"COPY (SELECT *, 7 AS other FROM '{file}') TO '{tmp_path}/flows.parquet' (FORMAT parquet)")
    shutil.move(tmp_path / "flows.parquet", file)
    (folder / "store.json").write_text(json.dumps({"schema": "wiretale.store/1", "columns": columns[::-1]}))
    assert wiretale_run("store", "add", folder, second).returncode == 0
    assert json.loads((folder / "store.json").read_text())["columns"] is None
    flows = rows(wiretale_run, folder, "query", "SELECT DISTINCT day, other FROM flows ORDER BY day")
    assert [row["other"] for row in flows] == [7, None]


def test_an_interrupted_process_is_one_line(wiretale_run: Any, tmp_path: Path) -> None:
    folder, captures = tmp_path / "s", [dated(tmp_path, days) for days in range(60)]
    command = [sys.executable, "-m", "wiretale", "store", "add", str(folder), *map(str, captures)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(folder.glob("day=2*/capture_id=*")), "a capture is stored")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == "wiretale: interrupted\n"
    assert process.returncode == 130
    assert wiretale_run("store", "check", folder).stdout == "no problems\n"


def test_an_interrupt_while_duckdb_calls_python_stays_one() -> None:
    class Interrupted:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise KeyboardInterrupt

        __arrow_c_schema__ = __arrow_c_stream__
        with_integers = table = lambda self, *_: self

    with duckdb.connect() as connection, pytest.raises(KeyboardInterrupt):
        register(connection, cast(Any, Interrupted()), ["flows"])


def test_columns_of_one_name_and_infinity(wiretale_run: Any, store: Path) -> None:
    sql = "SELECT 1 AS a, 2 AS a, 3 AS a_1, TIME '01:02:03' AS a, 'inf'::DOUBLE AS b, 'nan'::FLOAT AS c"
    (row,) = rows(wiretale_run, store, "query", sql)
    assert row == {"a": 1, "a_2": 2, "a_1": 3, "a_3": "01:02:03", "b": None, "c": None}
    printed = wiretale_run("store", "query", store, sql).stdout.split()
    assert printed[:4] == ["a", "a_2", "a_1", "a_3"] and {"2", "01:02:03", "inf", "nan"} <= set(printed)


@pytest.mark.parametrize(
    "sql, tables",
    [('select 1 from Flows, "events"', {"flows", "events"}), ("SHOW TABLES", {"captures", *STORED_TABLES})],
)
def test_a_query_opens_the_tables_that_it_names(sql: str, tables: set[str]) -> None:
    assert set(tables_in(sql)) == tables


@needs.marked(needs.root(), needs.mounts())
def test_a_full_disk_is_one_line_and_changes_nothing(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=700k") as disk:
        folder = disk / "s"
        assert wiretale_run("store", "add", folder, samples / "vlan_ipv6.pcap").returncode == 0
        before = contents(folder)
        with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))
        assert "cannot write" in refusal(wiretale_run("store", "add", folder, samples / NAMES[0]), 4)
        assert contents(folder) == before
        (disk / "ballast").unlink()
        assert wiretale_run("store", "check", folder).returncode == 0


def test_two_processes_add_the_same_captures_once(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "wiretale",
        "store",
        "add",
        str(tmp_path / "s"),
        *(str(samples / n) for n in NAMES),
    ]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    assert wiretale_run("store", "check", tmp_path / "s").stdout == "no problems\n"
    assert len(rows(wiretale_run, tmp_path / "s", "query", "FROM captures")) == len(NAMES)
