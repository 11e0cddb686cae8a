# SPDX-License-Identifier: Apache-2.0
"""`wiretale watch`: flows that cross files are those of one analysis of all files, each in the store once."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import needs
import wiretale
from plain_wire import ACK, FIN, Connection, Wire
from processes import SECONDS, refusal, small_disk, wait_until
from rotated_files import publish, rotated, traffic, write_files
from running_rows import store_rows, trace_rows
from wiretale.analyzer.findings.registry import every_finding
from wiretale.analyzer.options import NO_OPTIONS
from wiretale.analyzer.table import OF_FINDINGS, OF_FLOWS
from wiretale.cli import parse
from wiretale.reports.store.continuing import Continuing
from wiretale.reports.store.watch import Notes, Watch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 40 s, with flows of up to 250 s."""
    captures = tmp_path_factory.mktemp("watch") / "captures"
    write_files(captures, rotated(traffic(1, 700, 300, 250), 40))
    return captures


def command(folder: Path, store: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "wiretale", "watch", str(folder), "--store", str(store), *options]


@contextlib.contextmanager
def running(folder: Path, store: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A watch that goes on; it is gone afterwards."""
    with subprocess.Popen(command(folder, store, *options), stderr=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(SECONDS, process.kill)  # a test that waits for a line ends then
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            process.kill()


STORED_FINDINGS = """SELECT f.code, f.sentence, concat_ws(' ', w.source, w.source_port, w.destination_port),
    parse_filename(i.file) || '#' || p.frame, f.explained_by
FROM tables.findings AS f JOIN tables.finding_flows AS m USING (capture_id, finding)
JOIN tables.flows AS w ON w.capture_id = m.capture_id AND w.flow = m.flow
JOIN tables.finding_frames AS p ON p.capture_id = f.capture_id AND p.finding = f.finding AND p.role = 'first'
JOIN tables.interfaces AS i ON i.capture_id = p.capture_id AND i.capture = p.capture WHERE f.flow = m.flow"""


def evidence_in(store: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Ends and first packet of each finding about one flow, by its code and sentence, through the numbers in the store."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA tables")
        for name in ("flows", "interfaces", *OF_FINDINGS):
            files = f"{store}/day=*/capture_id=*/{name}.parquet"
            connection.execute(f"CREATE VIEW tables.{name} AS FROM read_parquet('{files}', union_by_name = true)")
        rows = connection.execute(STORED_FINDINGS).fetchall()
        dangling = "FROM tables.finding_flows ANTI JOIN tables.flows USING (capture_id, flow)"
        assert connection.execute(f"SELECT count(*) {dangling}").fetchone() == (0,)
    return {(code, sentence): (ends, packet) for code, sentence, ends, packet, _ in rows}


def evidence_of(trace: wiretale.Trace) -> dict[tuple[str, str], tuple[str, str]]:
    """The same of one analysis."""
    files, evidence = [Path(name).name for name in trace.interfaces.column("file")], {}
    for ranked in every_finding(trace.transfers):
        finding = ranked.finding
        if finding.flow is not None and finding.frames:
            flow, first = trace.flows[finding.flow], finding.frames[0]
            ends = " ".join(map(str, (flow["source"], flow["source_port"], flow["destination_port"])))
            evidence[finding.code, finding.sentence] = (ends, f"{files[first.capture or 0]}#{first.frame}")
    return evidence


def test_flows_across_files_are_those_of_one_analysis(wiretale_run: Any, tmp_path: Path, folder: Path) -> None:
    store = tmp_path / "store"
    done = wiretale_run("watch", folder, "--store", store, "--once")
    assert (done.returncode, done.stdout) == (0, ""), done
    trace = wiretale.analyze(folder)
    assert len({row[0].partition("#")[0] for row in store_rows(store, "flows")}) > 12
    for name in OF_FLOWS:
        assert store_rows(store, name) == trace_rows(trace, name), name
    stored, expected = evidence_in(store), evidence_of(trace)
    both = stored.keys() & expected.keys()
    assert len(both) >= 5 and {key: stored[key] for key in both} == {key: expected[key] for key in both}
    assert wiretale_run("store", "check", store).stdout == "no problems\n"
    again = wiretale_run("watch", folder, "--store", store, "--once")
    assert again.returncode == 0 and again.stderr.count("\n") == 1


def test_ten_kills_lose_and_repeat_nothing(wiretale_run: Any, tmp_path: Path) -> None:
    files = rotated(traffic(3, 240, 50, 100), 25)
    write_files(tmp_path / "all", files)
    began = time.monotonic()
    assert wiretale_run("watch", tmp_path / "all", "--store", tmp_path / "whole", "--once").returncode == 0
    took = time.monotonic() - began
    draw, folder, store = random.Random(3), tmp_path / "captures", tmp_path / "store"
    folder.mkdir()
    killed = 0
    for number in range(10):
        for name, packets in files[number * len(files) // 10 : (number + 1) * len(files) // 10]:
            publish(folder, name, packets)
        with running(folder, store) as process:
            time.sleep(draw.uniform(0.1, 0.4) * took)
            process.send_signal(signal.SIGKILL)
            killed += process.wait(timeout=60) == -signal.SIGKILL
    assert killed == 10
    assert wiretale_run("watch", folder, "--store", store, "--once").returncode == 0
    for name in OF_FLOWS:
        assert store_rows(store, name) == store_rows(tmp_path / "whole", name), name
    assert wiretale_run("store", "check", store).stdout == "no problems\n"


def captures_of(run: Any, store: Path) -> dict[str, dict[str, Any]]:
    """The rows of `captures` by name."""
    done = run("store", "query", store, "FROM captures", "--json")
    return {Path(row["path"]).name: row for row in json.loads(done.stdout)["rows"]}


def test_missing_damaged_and_other_files_are_named_once_and_listed(
    wiretale_run: Any, samples: Path, tmp_path: Path
) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    names = [file.name for file in write_files(folder, rotated(traffic(4, 100, 30, 20), 20))]
    (folder / names[2]).unlink()
    (folder / names[3]).write_bytes((samples / "damaged.pcap").read_bytes())
    (folder / "wrong.pcap").write_bytes(b"no capture")
    (folder / "notes.txt").write_text("no capture either")
    (folder / ".hidden.pcap").write_bytes(b"x")
    (folder / f"{names[0]}.part").write_bytes((folder / names[0]).read_bytes())
    done = wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert done.returncode == 3 and done.stderr.count("\n") == 3, done.stderr
    listed = captures_of(wiretale_run, store)
    missing = "eth0_*_00003.pcap"
    assert set(listed) == {*names[:2], *names[3:], missing, "wrong.pcap"}
    assert listed[missing]["damage"].startswith("1 file missing before ") and listed[missing]["packets"] is None
    assert "captured length" in listed[names[3]]["damage"] and "not a capture" in listed["wrong.pcap"]["damage"]
    again = wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert (again.returncode, again.stderr) == (0, "")
    assert captures_of(wiretale_run, store) == listed
    assert wiretale_run("store", "check", store).stdout == "no problems\n"


@contextlib.contextmanager
def watching(folder: Path, store: Path) -> Iterator[tuple[Watch, list[str]]]:
    """A watch in this process that has seen the files of a folder, and its lines about problems."""
    lines: list[str] = []
    watch = Watch(folder, store, NO_OPTIONS, Notes(lambda text: None, lines.append))
    watch.open()
    try:
        watch.look()
        yield watch, lines
    finally:
        watch.close()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_file_that_is_removed_too_early_is_a_fact_in_the_store(
    wiretale_run: Any, tmp_path: Path, stopped: bool
) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    first, *_ = write_files(folder, rotated(traffic(5, 60, 30, 20), 20))
    text = "removed before it was analyzed"
    with watching(folder, store) as (watch, lines):
        first.rename(tmp_path / "away.pcap")
        if not stopped:
            watch.publish(False)
            assert lines == [f"{first}: {text}"]
    done = wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert (done.returncode, text in done.stderr) == ((3, True) if stopped else (0, False)), done
    assert captures_of(wiretale_run, store)[first.name]["damage"] == text
    (tmp_path / "away.pcap").rename(first)  # it comes back
    done = wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert sums_in(wiretale_run, store)[1] == sum(wiretale.analyze(folder).flows["packets"])


def test_a_file_that_is_renamed_or_compressed_is_analyzed_once(wiretale_run: Any, tmp_path: Path) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    files = rotated(traffic(5, 60, 30, 20), 20)
    first, second, third, *remaining = write_files(folder, files)
    with watching(folder, store) as (watch, lines):
        first.rename(folder / "renamed.pcap")
        shutil.copy(second, folder / "copied.pcap")
        second.unlink()
        subprocess.run(["gzip", third], check=True)
        watch.publish(True)
        assert lines == []
    packets_of = {name: row["packets"] for name, row in captures_of(wiretale_run, store).items()}
    names = ("renamed.pcap", "copied.pcap", f"{third.name}.gz", *(file.name for file in remaining))
    assert packets_of == dict(zip(names, (len(packets) for _, packets in files), strict=True))
    assert len(store_rows(store, "flows")) == len(trace_rows(wiretale.analyze(folder), "flows"))
    subprocess.run(["gzip", *remaining], check=True)
    done = wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert len(captures_of(wiretale_run, store)) == len(files)


def test_a_file_is_read_when_its_writer_has_closed_it(wiretale_run: Any, tmp_path: Path) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    (file,) = write_files(folder, rotated(traffic(6, 5, 10, 3), 20))
    with file.open("ab"):
        assert wiretale_run("watch", folder, "--store", store, "--once").returncode == 0
        assert captures_of(wiretale_run, store) == {}
    assert wiretale_run("watch", folder, "--store", store, "--once").returncode == 0
    assert set(captures_of(wiretale_run, store)) == {file.name}


def test_a_file_that_its_tracer_will_compress_is_waited_for(wiretale_run: Any, tmp_path: Path) -> None:
    """Its marker says so for an hour; an older one is of a tracer that was never started again."""
    folder, store = tmp_path / "captures", tmp_path / "store"
    replaced, left = write_files(folder, rotated(traffic(6, 25, 10, 3), 20))[:2]
    markers = [folder / f".{file.name}.unfinished" for file in (replaced, left)]
    for marker in markers:
        marker.touch()
    os.utime(markers[1], (time.time() - 3 * 3600,) * 2)
    assert wiretale_run("watch", folder, "--store", store, "--once").returncode == 0
    assert replaced.name not in captures_of(wiretale_run, store) and left.name in captures_of(wiretale_run, store)
    subprocess.run(["zstd", "-q", "--rm", replaced], check=True)
    markers[0].unlink()
    assert wiretale_run("watch", folder, "--store", store, "--once").returncode == 0
    assert f"{replaced.name}.zst" in captures_of(wiretale_run, store)


def test_a_folder_is_watched_by_one_process(wiretale_run: Any, tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    with running(tmp_path / "captures", tmp_path / "store") as process:
        assert process.stderr and "watching" in next(iter(process.stderr))
        done = wiretale_run("watch", tmp_path / "captures", "--store", tmp_path / "store", "--once")
        assert "another process watches" in refusal(done, 4)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr.read().endswith("wiretale: stopped\n")


def test_once_is_no_success_when_it_is_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(watch: Watch, once: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "run", interrupted)
    (tmp_path / "captures").mkdir()
    parsed = parse(["watch", str(tmp_path / "captures"), "--store", str(tmp_path / "store"), "--once", "-q"])
    with pytest.raises(KeyboardInterrupt):
        parsed.command(parsed)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["nowhere", "--store", "s"], 4, "nowhere: No such file or directory"),
        (["s3://captures/day", "--store", "s"], 2, "expected a directory"),
        (["."], 2, "--store"),
    ],
)
def test_wrong_use_is_one_line(wiretale_run: Any, words: list[str], code: int, text: str) -> None:
    assert text in refusal(wiretale_run("watch", *words), code)


@needs.marked(needs.root())
def test_a_full_disk_is_waited_for_and_destroys_nothing(wiretale_run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    files = write_files(folder, rotated(traffic(7, 60, 60, 20), 20))
    with small_disk(tmp_path / "disk", "size=4m") as disk:
        store = disk / "store"
        assert wiretale_run("store", "add", store, folder / ".", "-q").returncode in (0, 4)
        filler = disk / "filler"
        shutil.rmtree(store)
        (tmp_path / "none").mkdir()
        assert wiretale_run("watch", tmp_path / "none", "--store", store, "--once").returncode == 0
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)) == 4096:
                pass
        assert "cannot write: No space left on device" in refusal(
            wiretale_run("watch", folder, "--store", store, "--once", "-q"), 4
        )
        with running(folder, store, "-q") as process:
            assert process.stderr and "waiting" in next(iter(process.stderr))
            filler.unlink()
            assert "continues" in next(iter(process.stderr))
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        assert wiretale_run("watch", folder, "--store", store, "--once").returncode == 0
        assert len(captures_of(wiretale_run, store)) == len(files)
        assert wiretale_run("store", "check", store).stdout == "no problems\n"


def test_captures_that_were_compacted_count_as_analyzed(wiretale_run: Any, tmp_path: Path, folder: Path) -> None:
    store, files = tmp_path / "store", sorted(folder.iterdir())
    some = tmp_path / "captures"
    some.mkdir()
    for number, file in enumerate(files):
        shutil.copy2(file, some / file.name)
        if number in (len(files) // 2, len(files) - 1):
            with watching(some, store) as (watch, lines):
                watch.publish(False)
                assert lines == []
            assert wiretale_run("store", "compact", store, "--age", "0s", "-q").returncode == 0
    assert wiretale_run("watch", some, "--store", store, "--once", "-q").returncode == 0
    assert wiretale_run("store", "check", store).stdout == "no problems\n"
    expected = wiretale.analyze(files).flows
    done = wiretale_run("store", "query", store, "SELECT count(*), sum(packets) FROM flows", "--json")
    (row,) = json.loads(done.stdout)["rows"]
    assert list(row.values()) == [len(expected), sum(expected["packets"])]


def sums_in(run: Any, store: Path) -> list[int]:
    """Flows and packets of a store."""
    done = run("store", "query", store, "SELECT count(*), sum(packets) FROM flows", "--json")
    return list(json.loads(done.stdout)["rows"][0].values())


def test_packets_behind_the_rest_of_a_closed_connection_are_a_flow(wiretale_run: Any, tmp_path: Path) -> None:
    """Its closing is in one file, its last ACK in the next one, and 109 s later one more segment."""
    wire = Wire()
    for number in range(100):
        wire.udp(number * 10_000, b"x" * 100, 30_000 + number)
    talk = Connection(wire, 40_000).open(190_000)
    talk.data(195_000, 0).ack(195_020, 1460)
    talk.send(199_000, 0, 1460, flags=FIN | ACK).send(199_020, 1, 0, flags=FIN | ACK, ack=1461)
    talk.send(201_000, 0, 1461, ack=1).send(310_000, 0, 1461, 10, ack=1)
    files, store = write_files(tmp_path / "captures", rotated(wire, 50)), tmp_path / "store"
    done = wiretale_run("watch", tmp_path / "captures", "--store", store, "--once", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    trace = wiretale.analyze(files)
    assert len(trace.flows) == 102
    for name in ("flows", "directions", "events"):
        assert store_rows(store, name) == trace_rows(trace, name), name


def test_a_file_that_comes_late_is_analyzed_alone(wiretale_run: Any, tmp_path: Path) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    files = write_files(folder, rotated(traffic(8, 300, 60, 200), 20))
    late = files[3].rename(tmp_path / files[3].name)
    with watching(folder, store) as (watch, lines):
        watch.publish(False)
        assert len(lines) == 1 and "1 file missing" in lines[0]
    late.rename(files[3])
    wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert sums_in(wiretale_run, store)[1] == sum(wiretale.analyze(files).flows["packets"])


def test_open_flows_whose_files_are_gone_do_not_stop_the_watch(wiretale_run: Any, tmp_path: Path) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    files = write_files(folder, rotated(traffic(8, 100, 30, 80), 20))
    with watching(folder, store) as (watch, _):
        watch.publish(False)
    assert len(list(store.glob(".watch-*.open"))) == 1
    for file in files:
        file.unlink()
    done = wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert (done.returncode, done.stderr, list(store.glob(".watch-*.open"))) == (0, "", [])


def test_a_file_that_is_replaced_while_it_is_read_is_not_taken_for_the_one_before(
    wiretale_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    before, after = rotated(traffic(8, 100, 30, 80), 50)[:2]
    write_files(folder, [before])
    read, left = Continuing.read, [after]

    def replacing(continuing: Continuing, path: Path, digest: str) -> None:
        read(continuing, path, digest)
        if left:
            publish(folder, before[0], left.pop()[1])

    monkeypatch.setattr(Continuing, "read", replacing)
    with watching(folder, store) as (watch, lines):
        watch.publish(True)
    assert len(lines) == 1 and "removed before it was analyzed" in lines[0]
    assert sums_in(wiretale_run, store)[1] == len(after[1])


def test_a_damaged_file_of_open_flows_or_cache_stops_nothing(wiretale_run: Any, tmp_path: Path) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    files = rotated(traffic(8, 100, 30, 80), 20)
    write_files(folder, files[:3])
    with watching(folder, store) as (watch, _):
        watch.publish(False)
    (flows,) = store.glob(".watch-*.open")
    flows.write_bytes(flows.read_bytes()[3:])
    write_files(folder, files[3:])
    with watching(folder, store) as (watch, _):
        watch.publish(True)
    stored = sums_in(wiretale_run, store)
    assert stored[0] and not list(store.glob(".watch-*.open"))
    (cache,) = store.glob(".watch-*.json")
    for damaged in (
        '{"points": [{"digest": [], "name": 1, "first_ns": "", "files": 3, "flows": 4}]}',
        '{"points": [], "done": []}',
        "[]",
    ):
        cache.write_text(damaged)
        done = wiretale_run("watch", folder, "--store", store, "--once", "-q")
        assert (done.returncode, done.stderr, sums_in(wiretale_run, store)) == (0, "", stored), damaged


EVENTS_ELSEWHERE = """FROM events JOIN captures AS own USING (capture_id)
JOIN captures AS named ON named.capture_id = own.interface_captures[capture + 1]
WHERE events.time_ns NOT BETWEEN named.first_ns AND named.last_ns"""


@pytest.mark.parametrize("most", [2, 10_000])
def test_events_name_the_file_that_had_their_name(
    wiretale_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """tcpdump -W writes to the same names again and again."""
    monkeypatch.setattr("wiretale.reports.store.continuing.FILES_MOST", most)
    folder, store = tmp_path / "captures", tmp_path / "store"
    files = rotated(traffic(1, 300, 120, 250), 20)
    folder.mkdir()
    with watching(folder, store) as (watch, lines):
        for number, (_, packets) in enumerate(files):
            publish(folder, f"ring{number % 4}.pcap", packets)
            watch.look()
            watch.publish(False)
        watch.publish(True)
    assert not lines
    assert sums_in(wiretale_run, store)[1] == sum(len(packets) for _, packets in files)
    done = wiretale_run("store", "query", store, f"SELECT count(*) AS n {EVENTS_ELSEWHERE}", "--json")
    assert json.loads(done.stdout)["rows"] == [{"n": 0}], done


def test_captures_in_a_subfolder_are_named(wiretale_run: Any, tmp_path: Path) -> None:
    folder, store = tmp_path / "captures", tmp_path / "store"
    line = f"wiretale: {folder / 'nobody'}: captures in subfolders are not read: watch that folder instead\n"
    folder.mkdir()
    with running(folder, store, "-q") as process:
        wait_until(lambda: (store / "store.json").exists())
        write_files(folder / "nobody", rotated(traffic(1, 50, 10, 5), 40))
        assert process.stderr and process.stderr.readline() == line
    done = wiretale_run("watch", folder, "--store", store, "--once", "-q")
    assert (done.returncode, done.stderr) == (0, line)
