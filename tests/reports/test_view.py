# SPDX-License-Identifier: Apache-2.0
"""`wiretale view` as a user starts it: who gets the page, which packets it answers with, and the page under a real mouse."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pytest

import needs
import wiretale
from checkout import Run
from plain_wire import Connection, Wire
from processes import refusal
from report_page import Page
from viewer import SECONDS, Viewer, viewing

pytestmark = pytest.mark.xdist_group("view")
ANSWERS = ("packets?flow=0", "tables?flow=0", "frame?interface=0&frame=1", "stream?flow=0")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transfer of 20,000 packets with retransmissions, beside a short one."""
    wire = Wire()
    long, at = Connection(wire).open(), 0
    for n in range(10_000):
        long.data(30.0 + n, at, 1000 + n % 400)
        if n % 100 == 70:
            long.data(30.3 + n, at, 1000 + n % 400)
        at += 1000 + n % 400
        long.ack(30.6 + n, at)
    Connection(wire, port=41000).open(500.0).data(540.0, 0, 900).ack(560.0, 900)
    return wire.write(tmp_path_factory.mktemp("view") / "transfer.pcap")


@pytest.fixture(scope="module")
def viewer(capture: Path) -> Iterator[Viewer]:
    with viewing(capture) as opened:
        yield opened


def test_the_page_is_served_to_who_has_the_address(viewer: Viewer) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", viewer.url)
    status, body, headers = viewer.ask(viewer.path)
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    policy = re.search(rb'Content-Security-Policy" content="([^"]+)"', body)
    assert policy
    assert b"default-src 'none'" in policy[1]
    assert b"connect-src 'self'" in policy[1]
    assert viewer.ask(viewer.path, "HEAD")[1] == b""
    port = urlsplit(viewer.url).port
    assert viewer.ask(viewer.path, Host=f"localhost:{port}", Origin=f"http://localhost:{port}")[0] == 200


def test_others_get_nothing(viewer: Viewer) -> None:
    port = urlsplit(viewer.url).port
    assert viewer.error("/")[0] == 403
    assert viewer.error("/packets?flow=0")[0] == 403
    wrong = viewer.path[:-2] + ("A" if viewer.path[-2] != "A" else "B") + "/"
    status, text = viewer.error(wrong)
    assert (status, "token" in text) == (403, True)
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        status, text = viewer.error("", Host=host)
        assert (status, text) == (403, "the Host header is not this server's")
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}"):
        assert viewer.error("packets?flow=0", Origin=origin) == (403, "the request comes from another page")
    for target in (f"http://evil.example{viewer.path}", f"http://127.0.0.1:{port}{viewer.path}"):
        status, body, _ = viewer.ask(target)
        assert (status, "another server" in body.decode()) == (403, True)
    for method in ("POST", "PUT", "OPTIONS", "CONNECT"):
        assert viewer.ask(viewer.path, method)[0] == 501


def raw_answer(viewer: Viewer, request: bytes) -> bytes:
    """The first bytes of the answer to a request that no client would send."""
    with socket.create_connection(("127.0.0.1", urlsplit(viewer.url).port or 0), SECONDS) as connection:
        connection.sendall(request)
        return connection.recv(4096)


def test_requests_that_no_browser_sends(viewer: Viewer) -> None:
    host = f"Host: 127.0.0.1:{urlsplit(viewer.url).port}\r\n".encode()
    page = f"GET {viewer.path} HTTP/1.1\r\n".encode()
    assert b" 403 " in raw_answer(viewer, page + b"\r\n")[:20]  # no Host
    assert b" 403 " in raw_answer(viewer, page + host + host + b"\r\n")[:20]
    assert b" 403 " in raw_answer(viewer, page + host + b"Host: evil.example\r\n\r\n")[:20]
    assert b" 431 " in raw_answer(viewer, page + host + b"".join(b"a: b\r\n" for _ in range(200)) + b"\r\n")[:20]
    assert b" 414 " in raw_answer(viewer, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + host + b"\r\n")[:20]
    assert b"505" in raw_answer(viewer, b"GET\xff\x00 / HTTP/9.9\r\n\r\n")
    idle = [socket.create_connection(("127.0.0.1", urlsplit(viewer.url).port or 0), SECONDS) for _ in range(100)]
    for connection in idle:
        connection.close()
    until, status = time.monotonic() + SECONDS, 0
    while status != 200 and time.monotonic() < until:  # connections that have ended leave room for others
        with suppress(OSError, http.client.HTTPException):
            status = viewer.ask(viewer.path)[0]
    assert status == 200


def test_unknown_paths_and_wrong_queries(viewer: Viewer) -> None:
    paths = [
        "other",
        "list?flow=0",
        "packets/",
        "page.html",
        "index.json",
        "capture-0.frames",
        viewer.path + viewer.path[1:],
    ]
    paths += [
        "../",
        "%2e%2e/",
        "../../../../etc/passwd",
        "..%2f..%2fetc/passwd",
        "/etc/passwd",
        "packets%00",
        "%5c..%5c",
    ]
    for path in paths[:-4]:
        assert viewer.error(path) == (404, "there is no such page")
    for path in paths[-4:]:
        status, body, _ = viewer.ask(viewer.path + path)
        assert (status, json.loads(body)) == (404, {"error": "there is no such page"})
    assert viewer.error(viewer.path.rstrip("/"))[0] == 404
    for query in (
        "packets",
        "packets?flow=",
        "packets?flow=-1",
        "packets?flow=1e3",
        "packets?flow=0&from=x",
        "tables?flow=x",
        "tables",
    ):
        status, text = viewer.error(query)
        assert (status, "expected" in text) == (400, True), text
    assert viewer.error("packets?" + "&".join(f"a{n}=0" for n in range(100)))[0] == 400
    assert viewer.error("packets?flow=" + "9" * 60_000)[0] == 400
    status, text = viewer.error("frame?interface=0&frame=99999999")
    assert (status, "transfer.pcap: has no frame 99,999,999" in text) == (400, True)
    assert viewer.answer("packets", flow=4_000_000)["count"] == 0


def streams(answer: dict[str, Any]) -> dict[str, bytes]:
    return {name: gzip.decompress(base64.b64decode(text)) for name, (_, text) in answer["streams"].items()}


def test_packets_of_a_range_are_those_of_the_trace(viewer: Viewer, capture: Path) -> None:
    trace = wiretale.analyze(capture)
    times = trace.interfaces.column("first_ns")
    base = times[0] // 10**9 * 10**9
    answer = viewer.answer("packets", flow=1)
    count, expected = trace.packets(1)._packet_streams([1], base)
    assert (answer["count"], answer["of"], answer["bucket"]) == (count, count, 1)
    assert streams(answer) == expected
    begin, end = 2 * 10**9, 3 * 10**9
    part = viewer.answer("packets", flow=0, **{"from": begin, "to": end})
    rows = [row for row in trace.packets(0).rows() if base + begin <= row["time_ns"] <= base + end]
    assert (part["count"], part["of"]) == (len(rows), len(rows))
    assert 0 < len(rows) < 3000


def test_large_flows_are_answered_by_few_packets(viewer: Viewer) -> None:
    answer = viewer.answer("packets", flow=0)
    assert answer["of"] == 20_103
    assert answer["bucket"] > 1
    assert 1000 < answer["count"] < 10_000


@needs.TSHARK
@pytest.mark.parametrize("frame", [1, 300, 15_000])
def test_a_frame_is_decoded_as_by_tshark(viewer: Viewer, capture: Path, frame: int) -> None:
    answer = viewer.answer("frame", interface=0, frame=frame, flow=0)
    assert answer["list"][0]["frame"] == frame
    fields = ["tcp.seq", "tcp.ack", "tcp.window_size", "ip.id", "frame.len"]
    command = ["tshark", "-n", "-r", str(capture), "-Y", f"frame.number == {frame}", "-T", "fields"]
    command += [word for name in fields for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    sequence, _, window, ip_id, length = done.stdout.rstrip("\n").split("\t")
    tree = gzip.decompress(base64.b64decode(answer["trees"])).decode()
    assert f"Sequence Number: {sequence} " in tree
    assert f"Calculated window size: {window}" in tree
    assert ip_id[2:] in tree
    assert answer["list"][0]["length"] == int(length)
    data = gzip.decompress(base64.b64decode(answer["bytes"]))
    assert len(data) == answer["list"][0]["kept"]
    assert answer["made_by"].startswith("tshark ")


def test_a_capture_that_changes_is_named(samples: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(samples / "timeouts.pcap", tmp_path / "mine.pcap"))
    with viewing(path) as viewer:
        assert viewer.answer("packets", flow=0)["count"] > 0
        with path.open("ab") as file:
            file.write(bytes(8))
        for query in ANSWERS:
            status, text = viewer.error(query)
            assert status == 409
            assert f"{path}: changed since it was analyzed" in text
        path.unlink()
        assert viewer.error("packets?flow=0") == (409, f"{path}: is no longer there")


@pytest.mark.parametrize("program", ["gzip", "zstd"])
def test_a_compressed_capture_that_changes_is_named(program: str, capture: Path, tmp_path: Path) -> None:
    needs.skip_without(needs.programs(program))
    path = tmp_path / "mine.pcap.z"
    with path.open("wb") as file:
        subprocess.run([program, "-q", "-c", str(capture)], stdout=file, check=True)
    with viewing(path) as viewer:
        assert viewer.answer("frame", interface=0, frame=15_000)["list"][0]["frame"] == 15_000
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        for query in ANSWERS:
            assert viewer.error(query) == (409, f"{path}: changed since it was analyzed: run wiretale view again")


def test_one_file_of_a_folder_that_changes_is_named(samples: Path, tmp_path: Path) -> None:
    for name in ("timeouts.pcap", "tcp_blocks.pcapng"):
        shutil.copy(samples / name, tmp_path)
    with viewing(tmp_path) as viewer:
        assert viewer.answer("packets", flow=0)["count"] > 0
        os.utime(tmp_path / "tcp_blocks.pcapng", ns=(1, 1))
        for query in ANSWERS:
            status, text = viewer.error(query)
            assert (status, "tcp_blocks.pcapng: changed since it was analyzed" in text) == (409, True)
        (tmp_path / "tcp_blocks.pcapng").unlink()
        assert viewer.error("tables?flow=0") == (409, f"{tmp_path / 'tcp_blocks.pcapng'}: is no longer there")


def test_an_index_that_is_damaged_is_an_error(samples: Path, tmp_path: Path, wiretale_run: Run) -> None:
    with viewing(samples / "timeouts.pcap", "-o", tmp_path / "kept") as viewer:
        viewer.end()
    about = tmp_path / "kept" / "index.json"
    description = json.loads(about.read_text())
    for change in (
        {"captures": [1]},
        {"words": {}},
        {"interfaces": [7]},
        {"base_ns": "0; DROP"},
        {"shifts": ["x"]},
        {"format": 1},
    ):
        about.write_text(json.dumps({**description, **change}))
        assert "index.json: is " in refusal(wiretale_run("view", tmp_path / "kept"), 4)
    about.write_text("{" * 100_000)
    assert "index.json" in refusal(wiretale_run("view", tmp_path / "kept"), 4)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_it_ends_cleanly(number: int, code: int, samples: Path, tmp_path: Path) -> None:
    with viewing(samples / "timeouts.pcap", folder=tmp_path) as viewer:
        assert list(tmp_path.iterdir())
        assert viewer.end(number) == (code, "")
    assert not list(tmp_path.iterdir())


def test_nohup_keeps_it_when_the_terminal_is_closed(samples: Path, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a child inherits
    try:
        with viewing(samples / "timeouts.pcap", folder=tmp_path) as viewer:
            viewer.process.send_signal(signal.SIGHUP)
            assert viewer.answer("packets", flow=0)
            assert viewer.end() == (0, "")
    finally:
        signal.signal(signal.SIGHUP, before)


def test_it_ends_while_it_answers(capture: Path, tmp_path: Path) -> None:
    with viewing(capture, folder=tmp_path) as viewer, ThreadPoolExecutor(8) as pool:
        requests = [
            pool.submit(viewer.ask, f"{viewer.path}frame?interface=0&frame={n}&flow=0") for n in range(1, 20_000, 1000)
        ]
        requests[0].result()
        assert viewer.end() == (0, "")
        for request in requests:
            assert request.exception() is None or isinstance(request.exception(), (OSError, http.client.HTTPException))
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("wiretale-view-")]


def test_it_ends_while_it_analyzes(capture: Path, tmp_path: Path) -> None:
    """Ctrl-C reaches parent and child; SIGTERM only the parent."""
    many = [tmp_path / f"{n}.pcap" for n in range(20)]
    for path in many:
        shutil.copy(capture, path)
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "wiretale", "view", *map(str, many)]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )
        until = time.monotonic() + SECONDS
        while not list((tmp_path / "temporary").iterdir()) and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.3)
        (os.kill if number == signal.SIGTERM else os.killpg)(process.pid, number)
        out, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, out) == (130 if number == signal.SIGINT else 143, ""), errors
        assert "Traceback" not in errors
        assert not list((tmp_path / "temporary").iterdir())


def test_a_signal_as_the_analysis_begins(samples: Path) -> None:
    command = [sys.executable, "-m", "wiretale", "view", str(samples / "tcp_losses.pcap")]
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until = time.monotonic() + SECONDS
        while not children.read_text() and time.monotonic() < until:
            time.sleep(0.001)
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        out, errors = process.communicate(timeout=SECONDS)
        assert (process.returncode, out, b"Traceback" in errors) == (128 + number, b"", False), errors


def test_an_index_that_is_kept(samples: Path, tmp_path: Path, wiretale_run: Run) -> None:
    path = Path(shutil.copy(samples / "tcp_losses.pcap", tmp_path / "mine.pcap"))
    with viewing(path, "-o", tmp_path / "kept") as viewer:
        first = viewer.answer("packets", flow=0)
        assert viewer.end() == (0, "")
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "kept").iterdir()}
    with viewing(tmp_path / "kept") as viewer:
        assert viewer.answer("packets", flow=0) == first
        viewer.end()
    assert {file.name: file.stat().st_mtime_ns for file in (tmp_path / "kept").iterdir()} == before
    with path.open("ab") as file:
        file.write(bytes(8))
    assert "mine.pcap: changed since it was analyzed" in refusal(wiretale_run("view", tmp_path / "kept"), 4)


def test_output_folders_and_folders_of_captures(samples: Path, tmp_path: Path, wiretale_run: Run) -> None:
    captures = tmp_path / "captures"
    captures.mkdir()
    for name in ("timeouts.pcap", "tcp_blocks.pcapng"):
        shutil.copy(samples / name, captures)
    assert wiretale_run("analyze", captures, "-o", tmp_path / "out", "-q").returncode == 0
    with viewing(tmp_path / "out") as viewer:
        packets = viewer.answer("packets", flow=0)
        viewer.end()
    assert (tmp_path / "out" / "view" / "index.json").exists()
    message = refusal(wiretale_run("view", captures, "-o", tmp_path / "out"))
    assert message == f"{tmp_path / 'out'}: has tables of `wiretale analyze -o`: expected another folder"
    with viewing(tmp_path / "out") as viewer:
        assert viewer.answer("packets", flow=0) == packets
    with viewing(captures) as viewer:
        assert viewer.answer("packets", flow=0) == packets
    shutil.rmtree(tmp_path / "out" / "view")
    (captures / "timeouts.pcap").unlink()
    assert "timeouts.pcap: expected the capture that" in refusal(wiretale_run("view", tmp_path / "out"), 4)


def test_an_output_folder_keeps_filter_and_options(samples: Path, tmp_path: Path, wiretale_run: Run) -> None:
    path, out = Path(shutil.copy(samples / "two_interfaces.pcapng", tmp_path / "it's.pcapng")), tmp_path / "out"
    complete = wiretale.analyze(path)
    port = next(row["destination_port"] for row in complete.flows.rows() if row["destination_port"])
    selected = wiretale.analyze(path, filter=f"port {port}", block_size=4096)
    assert 0 < len(selected.flows) < len(complete.flows)
    done = wiretale_run("analyze", path, "-f", f"port {port}", "--block-size", 4096, "-o", out, "-q")
    assert done.returncode == 0
    with viewing(out) as viewer:
        data = viewer.ask(viewer.path)[1].decode()
        assert f'"filter":"port {port}"' in data.replace('": ', '":')
        assert "--block-size 4096" in data
        flows = json.loads((out / "view" / "index.json").read_text())["packets"]
        assert flows == sum(row["packets"] for row in selected.flows.rows())
    for option in (("-f", "tcp"), ("--start", "0"), ("--end", "9"), ("--max-flows", "7"), ("--block-size", "100")):
        assert f"{option[0]}: {out} has the options" in refusal(wiretale_run("view", out, *option), 2)
    shutil.rmtree(out / "view")
    path.write_bytes(path.read_bytes() + bytes(8))
    assert "it's.pcapng: changed since" in refusal(wiretale_run("view", out), 4)
    duckdb.execute(f"COPY (FROM '{out}/interfaces.parquet') TO '{out}/other.parquet'")
    (out / "other.parquet").rename(out / "interfaces.parquet")
    assert "has no options of its analysis" in refusal(wiretale_run("view", out), 4)


def test_input_that_cannot_be_viewed(samples: Path, tmp_path: Path, wiretale_run: Run) -> None:
    assert "expected files" in refusal(wiretale_run("view", "-"), 2)
    assert "nothing.pcap" in refusal(wiretale_run("view", tmp_path / "nothing.pcap"), 4)
    text = tmp_path / "text.txt"
    text.write_text("no capture at all\n")
    assert "text.txt" in refusal(wiretale_run("view", text), 4)
    with viewing(samples / "timeouts.pcap") as viewer:
        port = urlsplit(viewer.url).port
        done = wiretale_run("view", samples / "timeouts.pcap", "--port", port)
        assert f"--port {port}: Address already in use" in refusal(done, 2)


def test_damage_is_reported_and_the_rest_is_served(samples: Path) -> None:
    with viewing(samples / "damaged.pcap") as viewer:
        assert viewer.answer("packets", flow=0)["count"] > 0
        code, errors = viewer.end()
    assert code == 3
    assert "damaged.pcap: at byte" in errors


def in_browser(viewer: Viewer, page: Page, link: str = "") -> Page:
    """The page in a browser, after its first answer."""
    page.page.goto(viewer.url + link)
    page.until("document.body.dataset.ready")
    return page


def test_the_page_asks_for_what_is_in_view(viewer: Viewer, page: Page) -> None:
    in_browser(viewer, page, "#flow=1")
    assert page.page.evaluate("document.body.dataset.of") == "5"
    page.page.evaluate("choose({ flow: 0 })")
    page.until("document.body.dataset.of === '20103'")
    assert int(page.page.evaluate("document.body.dataset.bucket")) > 1
    assert "Zoom in for all" in page.page.locator("#note").inner_text()
    page.page.evaluate("choose({ range: [2, 3] })")
    page.until("document.body.dataset.bucket === '1'")
    assert 2000 < int(page.page.evaluate("document.body.dataset.of")) < 3000
    assert all(url.startswith(viewer.url) for url in page.requests)
    assert not page.complaints


@needs.TSHARK
def test_a_zoom_and_a_click_reach_any_packet(viewer: Viewer, page: Page, capture: Path) -> None:
    in_browser(viewer, page, "#flow=0&t=2-2.02")
    assert page.page.evaluate("document.body.dataset.bucket") == "1"
    row = page.page.locator("#packet-rows tbody tr[data-frame]").nth(5)
    row.scroll_into_view_if_needed()
    frame = int(row.get_attribute("data-frame") or 0)
    row.click()
    page.until(f"document.getElementById('h-frame').textContent === 'Frame {frame}'")
    page.until("document.querySelector('#frame-tree [role=treeitem]')")
    command = ["tshark", "-n", "-r", str(capture), "-Y", f"frame.number == {frame}", "-T", "fields", "-e", "tcp.seq"]
    sequence = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert f"Sequence Number: {sequence} " in page.page.locator("#frame-tree").inner_html()
    assert f"frame={frame}" in page.hash()
    assert not page.complaints


def test_flows_over_each_other_are_fetched_in_view(viewer: Viewer, page: Page) -> None:
    assert viewer.answer("packets", flow=1, **{"from": 10**9})["begin"] == 500 * 10**6
    in_browser(viewer, page, "#flow=1&with=0")
    page.until(
        "document.querySelector('#with-list [data-flow=\"0\"] .lack').textContent.includes('thinned to some of each')"
    )
    before = len(page.requests)
    page.page.evaluate("choose({ toggled: ['relative'], range: [0.53, 0.56] })")
    page.until("!document.querySelector('#with-list .lack')")
    queries = [url.split("?")[1] for url in page.requests[before:]]
    assert {words.split("&")[0] for words in queries} == {"flow=0", "flow=1"}
    first = "document.getElementById('plot').data.find(one => one.meta === 'sequence@0').x.find(time => time >= 0.53)"
    assert page.page.evaluate(first) == pytest.approx(0.53)  # 30 ms after its first packet, as in flow 1 from 0.5 s on
    before = len(page.requests)
    page.page.evaluate("choose({ with: [] })")
    page.until("document.getElementById('with').hidden")
    assert len(page.requests) == before
    assert not page.complaints


def test_commands_of_the_served_page_copy_what_it_shows(
    samples: Path, tmp_path: Path, page: Page, wiretale_run: Run
) -> None:
    path = Path(shutil.copy(samples / "fast_retransmissions.pcap", tmp_path / "it's mine.pcap"))
    with viewing(path) as viewer:
        in_browser(viewer, page, "#flow=2")
        page.drawn()
        low, high = page.range("yaxis")
        box = [(start + (end - start) * at) for (start, end) in (page.range(), (low, high)) for at in (0.2, 0.7)]
        left, right = (page.pixel("xaxis", at) for at in box[:2])
        bottom, top = (page.pixel("yaxis", at) for at in box[2:])
        page.drag((left, top), (right, bottom))
        count = int(page.until("document.getElementById('packet-count').textContent.match(/^(\\d+) packets of/)?.[1]"))
        page.page.click("#copy-flow-cut")
        copied = shlex.split(page.until("document.body.dataset.copied"))
        assert copied[:2] == ["wiretale", "cut"] and "--start" in copied
        done = wiretale_run(*copied[1:], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (copied_flow,) = wiretale.analyze(tmp_path / "flow-2.pcapng").flows.rows()
        assert 0 < count == copied_flow["packets"] < wiretale.analyze(path).flows.column("packets")[2]
        page.page.locator("#packet-rows tbody tr[data-frame]").nth(3).click()
        frame = int(page.until("choice.frame"))
        page.page.click("#copy-cut")
        text = page.until(f"document.body.dataset.copied?.includes('--frames {frame}') && document.body.dataset.copied")
        done = wiretale_run(*shlex.split(text)[1:], cwd=tmp_path)
        assert done.returncode == 0 and ": 1 of" in done.stderr, done.stderr
        assert not page.complaints


def test_the_page_names_a_capture_that_changed(samples: Path, tmp_path: Path, page: Page) -> None:
    path = Path(shutil.copy(samples / "tcp_losses.pcap", tmp_path / "mine.pcap"))
    with viewing(path) as viewer:
        in_browser(viewer, page)
        os.utime(path, ns=(1, 1))
        page.page.evaluate("choose({ range: [0.1, 0.2] })")
        page.until("!document.getElementById('missing').hidden")
        assert "mine.pcap: changed since it was analyzed" in page.page.locator("#missing").inner_text()


def test_the_served_page_has_the_time_by_part_and_waits(viewer: Viewer, page: Page) -> None:
    page.page.goto(f"{viewer.url}#flow=0")
    page.until("document.body.dataset.ready")
    parts = page.page.evaluate("[...new Set(spansOf(0).map(one => one.band.part))]")
    shapes = page.page.evaluate("document.getElementById('plot').layout.shapes.map(shape => shape.name)")
    painted = page.page.evaluate("shownCanvas() ? manyBands().map(band => `part-${band.part}`) : []")
    assert parts and {f"part-{part}" for part in parts} <= {*shapes, *painted}
    assert page.page.evaluate("document.querySelectorAll('#flows .mini').length") >= 1


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of so many flows that the page has series and events only of the larger ones; flow 0 is the smallest."""
    wire = Wire()
    for n in range(7000):
        size = 10 if n == 0 else 900
        talk = Connection(wire, port=10_000 + n).open(10.0 * n)
        for k in range(12 if n == 0 else 1):
            talk.data(10.0 * n + 3 + 5 * k, k * size, size).ack(10.0 * n + 5 + 5 * k, (k + 1) * size)
        for again in range(1 if n == 0 else 3):
            talk.data(10.0 * n + 300 + 300 * again, 0, size).ack(10.0 * n + 302 + 300 * again, size)
    return wire.write(tmp_path_factory.mktemp("crowd") / "crowd.pcap")


def test_flows_that_are_not_in_the_page_are_found_and_drawn(crowd: Path, page: Page) -> None:
    trace = wiretale.analyze(crowd)
    (first,) = [row["flow"] for row in trace.flows.rows() if 10_000 in (row["source_port"], row["destination_port"])]
    with viewing(crowd) as viewer:
        in_browser(viewer, page)
        assert not page.page.evaluate(f"data.whole_flows.includes({first})")
        assert page.page.evaluate(
            f"rowsOf(tables.series, {first}).next().done && rowsOf(tables.events, {first}).next().done"
        )
        for words in (str(first), f"#{first}", ":10000"):
            page.page.locator("#find").fill(words)
            page.until(f"document.querySelector('#flows tbody tr')?.dataset.flow === '{first}'")
        page.page.locator("#flows tbody tr").first.click()
        page.until(f"document.body.dataset.flow === '{first}'")
        count = "(table) => [...rowsOf(table, choice.flow)].length"
        for name in ("series", "events"):
            rows = [row for row in trace.table(name).rows() if row["flow"] == first]
            assert rows
            assert page.page.evaluate(f"({count})(tables.{name})") == len(rows)
        spans, base = trace.time_spans(first).rows(), int(page.page.evaluate("data.base"))
        bands = page.page.evaluate("spansOf(choice.flow).map((one) => [one.band.part, one.from])")
        assert spans and [(part, pytest.approx(since, abs=2e-6)) for part, since in bands] == [
            (row["part"], (row["start_ns"] - base) / 1e9) for row in spans
        ]
        assert "part-" in page.page.evaluate(
            "document.getElementById('plot').layout.shapes.map((one) => one.name).join()"
        )
        assert page.page.evaluate("document.body.dataset.of") == str(len(trace.packets(first)))
        page.page.evaluate("choose({ flow: choice.flow + 1 }).then(() => history.back())")
        page.until(f"document.body.dataset.flow === '{first}'")
        assert page.page.evaluate(f"({count})(tables.events)") == sum(
            row["flow"] == first for row in trace.events.rows()
        )
        assert not page.complaints


def test_the_stream_is_read_from_the_capture(viewer: Viewer, page: Page, capture: Path) -> None:
    flow, base = 0, wiretale.analyze(capture).interfaces.rows()[0]["first_ns"]
    carrying = [row for row in wiretale.analyze(capture).packets([flow]).rows() if row["payload_bytes"]]
    assert base is not None
    answer = json.loads(viewer.ask(f"{viewer.path}stream?flow={flow}")[1])
    assert answer["of"] == len(carrying) and answer["count"] == len(answer["kept"]) == min(400, len(carrying))
    assert len(gzip.decompress(base64.b64decode(answer["bytes"]))) == sum(answer["kept"]) <= 2**20
    in_browser(viewer, page, f"#flow={flow}&tab=stream")
    page.until("document.querySelector('#stream pre')")
    assert page.page.evaluate("document.getElementById('packet-count').textContent.includes('bytes in the capture')")
    assert page.complaints == [] and all(url.startswith("http://127.0.0.1") for url in page.requests)
