# SPDX-License-Identifier: Apache-2.0
"""`wiretale experiment serve`: what its form accepts, who may start a run, and the page under a real mouse."""

from __future__ import annotations

import csv
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from checkout import Run
from experiment_results import stored
from report_page import VIEW
from viewer import SECONDS, Viewer
from wiretale.analyzer.errors import InputError, UsageError
from wiretale.reports.view.apart import has_rights
from wiretale.traffic.console.form import BUILT_IN, check, command, files_of, links, own_plan, read_form
from wiretale.traffic.console.runs import Running, Runs
from wiretale.traffic.experiment.plan import read_plan

pytestmark = pytest.mark.xdist_group("experiment")
FORM_PLAN = {"plan": "own", "protocols": "tcp udp", "sizes": "64, 1024", "value": "20"}
FORM = "application/x-www-form-urlencoded"


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Viewer]:
    words = [sys.executable, "-m", "wiretale", "experiment", "serve", str(folder), *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield Viewer(process, process.stdout.readline().strip())
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def post(viewer: Viewer, name: str, fields: dict[str, str], **headers: str | None) -> tuple[int, Any]:
    """Status and answer of a form; a header of None is left out."""
    at = urlsplit(viewer.url)
    connection = http.client.HTTPConnection("127.0.0.1", at.port, timeout=SECONDS)
    sent = {"Origin": f"http://{at.netloc}", "Content-Type": FORM, **headers}
    connection.request("POST", at.path + name, urlencode(fields), {key: value for key, value in sent.items() if value})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"plan": "../../etc/passwd"}, "plan '../../etc/passwd': expected quick, "),
        ({"plan": "/tmp/mine.toml"}, "plan '/tmp/mine.toml': expected quick, "),
        ({"profile": "/tmp/x.toml"}, "profile '/tmp/x.toml': expected "),
        ({"profile": "s6-base"}, "profile 's6-base': expected "),  # has a scenario of its own
        ({"host": "192.0.2.1"}, "'host': expected plan, profile, "),
        ({"trials": "0"}, "trials '0': expected a whole number from 1 to 100"),
        ({"trials": "1; reboot"}, "trials '1; reboot': expected a whole number"),
        ({"scale": "-1"}, "scale '-1': expected a factor over 0"),
        ({"scale": "nan"}, "scale 'nan': expected a factor over 0"),
        ({"protocols": "sctp"}, "protocol 'sctp': expected tcp or udp"),
        ({"protocols": ""}, "protocols: expected tcp, udp or both"),
        ({"sizes": "31"}, "block size '31': expected a whole number from 32 to 65,507"),
        ({"sizes": "65508"}, "block size '65508': expected a whole number from 32 to 65,507"),
        ({"sizes": ""}, "block sizes: expected 1 to 20"),
        ({"sizes": '64"]\n[receiver]'}, "block size"),
        ({"amount": "packets"}, "amount 'packets': expected count, seconds, bytes or file"),
        ({"amount": "file", "file": "a"}, "file: expected wiretale experiment serve --files FOLDER"),
        ({"address": "192.0.2.1"}, "address '192.0.2.1': expected 127.0.0.1 or ::1"),
        ({"address": "10.99.0.2"}, "address '10.99.0.2': expected 127.0.0.1 or ::1"),
        ({"address": "::1", "profile": "wlan-g"}, "address '::1': expected 10.99.0.2 or fd00:99::2"),
        ({"address": '::1"'}, "address '::1\"': expected"),
        ({"value": "٣"}, "count '٣': expected a whole number from 1 to 10,000,000"),
        ({"rate": '1M"'}, "rate '1M\"': expected bits per second"),
        ({"rate": "0.4"}, "rate '0.4': expected bits per second"),
        ({"rate": "1e400M"}, "rate '1e400M': expected bits per second"),
    ],
)
def test_a_form_names_plans_profiles_and_numbers_only(change: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_form({**FORM_PLAN, **change})
    assert str(refused.value).startswith(text)


def test_a_file_is_one_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / 'of \\ "files'
    (folder / "inside").mkdir(parents=True)
    (folder / "a ' \" b.txt").write_text("text")
    refused = (".hidden", "-rf", "a\\b.txt", "a\u202etxt.exe", "a" * 241)  # by a receiver
    for name in refused:
        (folder / name).write_text("text")
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    assert files_of(folder) == ("a ' \" b.txt",) and files_of(None) == ()
    for name in ("", ".", "..", "link", "inside", "pipe", *refused, "../a ' \" b.txt", "/etc/passwd", "a"):
        with pytest.raises(UsageError, match="expected the name of a file in"):
            read_form({**FORM_PLAN, "amount": "file", "file": name}, folder)
    form = read_form({**FORM_PLAN, "amount": "file", "file": "a ' \" b.txt", "address": "::1"}, folder)
    plan = read_plan(own_plan(form), "form", "form")
    assert plan.address == "::1" and {test.sessions[0].file for test in plan.tests} == {str(folder / "a ' \" b.txt")}
    with pytest.raises(InputError, match="No such file or directory"):
        files_of(tmp_path / "missing")


def test_published_figures_of_a_network_are_beside_a_run(tmp_path: Path) -> None:
    stored(read_plan(own_plan(read_form({**FORM_PLAN, "sizes": "4096"})), "form", "form"), tmp_path / "run")
    runs = Runs(tmp_path)
    assert runs.figures("run", [])["figures"] == []  # one size
    throughput, received = runs.figures("run", [], "S3 WLAN")["figures"]
    drawn = {trace["name"]: trace for trace in throughput["data"] if "published" in trace["name"]}
    assert set(drawn) == {"S3 WLAN, tcp (published)", "S3 WLAN, udp (published)"}
    assert dict(zip(*(drawn["S3 WLAN, udp (published)"][axis] for axis in "xy"), strict=True)) == {
        60000: pytest.approx(4.11 * 8),
        4096: pytest.approx(2.47 * 8),
    }
    assert "S3: File Transfer" in throughput["note"] and received["title"] == "Percent received against block size"
    with pytest.raises(UsageError, match="'S3': expected S3 LAN, S3 WLAN, S3 WAN, "):
        runs.figures("run", [], "S3")


def test_each_form_is_a_plan_and_a_command(tmp_path: Path) -> None:
    plan = read_plan(own_plan(read_form({**FORM_PLAN, "trials": "3", "rate": "10M"})), "form", "form")
    sessions = [test.sessions[0] for test in plan.tests]
    assert len(sessions) == 12 and {s.protocol for s in sessions} == {"tcp", "udp"}
    assert {(s.block_bytes, s.count, s.rate_bps) for s in sessions} == {(64, 20, 1e7), (1024, 20, 1e7)}
    for amount, value in (("seconds", 2.0), ("bytes", None)):
        plan = read_plan(
            own_plan(read_form({**FORM_PLAN, "amount": amount, "value": "2000"[: 1 if value else 4]})), "f", "f"
        )
        assert plan.tests[0].sessions[0].seconds == value
    for name in BUILT_IN:
        check(read_form({"plan": name}))
    assert "wlan-g" in links() and "s6-base" not in links()
    words = command(
        read_form({"plan": "s3-file-transfer", "profile": "wlan-g", "scale": "0.1", "trials": "2"}), tmp_path
    )
    assert words[4:] == [
        *("lab", "run", "s3-file-transfer", "-o", str(tmp_path), "--profile", "wlan-g"),
        *("--trials", "2", "--scale", "0.1"),
    ]


@pytest.mark.parametrize("place", [os.devnull, __file__])
def test_a_place_for_runs_is_a_folder(wiretale_run: Run, place: str) -> None:
    done = wiretale_run("experiment", "serve", place)
    assert (done.returncode, done.stderr) == (4, f"wiretale: {place}: cannot write into it: Not a directory\n")


def test_a_run_is_started_by_its_own_page_only(tmp_path: Path) -> None:
    with serving(tmp_path) as viewer:
        address = urlsplit(viewer.url)
        for headers in (
            {"Origin": None},
            {"Origin": "http://evil.example"},
            {"Host": "evil.example"},
            {"Origin": "null"},
        ):
            assert post(viewer, "start", FORM_PLAN, **headers)[0] == 403, headers
        assert post(viewer, "start", FORM_PLAN, **{"Content-Type": "text/plain"})[0] == 400
        assert post(viewer, "start", {**FORM_PLAN, "sizes": "64 " * 9000})[0] == 400
        assert post(viewer, "state", {})[0] == 404 and viewer.error("start")[0] == 404
        for length in ("-1", "\xb2", "9" * 5000, "many"):
            assert post(viewer, "start", {}, **{"Content-Length": length})[0] == 400, length
        connection = http.client.HTTPConnection(address.netloc, timeout=SECONDS)
        for method, name, status in (("POST", "start", 403), ("GET", "state", 200)):  # the form is no second request
            connection.request(method, address.path + name, urlencode(FORM_PLAN) if method == "POST" else None)
            response = connection.getresponse()
            assert (response.status, bool(response.read())) == (status, True)
        connection.close()
        stranger = Viewer(viewer.process, f"http://{address.netloc}/wrong/")
        assert post(stranger, "start", FORM_PLAN)[0] == 403
        assert list(tmp_path.iterdir()) == []
        for query in ("run=..", "run=%2Fetc", "run="):
            assert viewer.error(f"figures?{query}")[0] == 400 and viewer.error(f"report?{query}")[0] == 400
        if has_rights():
            children = Path(f"/proc/{viewer.process.pid}/task/{viewer.process.pid}/children").read_text().split()
            owners = {os.stat(f"/proc/{child}").st_uid for child in children}
            assert len(owners) == 1 and 0 not in owners  # who reads requests is nobody
        away = tmp_path.rename(tmp_path.with_name("away"))
        assert viewer.error("state") == (409, f"{tmp_path}: No such file or directory")
        away.rename(tmp_path)
        assert viewer.answer("state") == {"run": None, "runs": [], "files": []}
        assert viewer.end() == (0, "")


def test_the_server_ends_with_what_answers(tmp_path: Path) -> None:
    with serving(tmp_path) as viewer:
        viewer.process.kill()
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                viewer.ask(viewer.path)
            except ConnectionError:
                break
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_tests_that_failed_are_named_and_not_the_last_line_of_the_log(tmp_path: Path) -> None:
    runs, word = Runs(tmp_path), "next: wiretale experiment report run"
    folder = stored(
        read_plan(own_plan(read_form(FORM_PLAN)), "form", "form"), tmp_path / "run", "ended with exit code -9"
    )
    (folder / "log").write_text(word)
    assert runs.figures("run", [])["failures"][0] == ("tcp-64-t1", "ended with exit code -9")
    for code, error in ((0, None), (3, None), (4, word)):
        process = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])
        process.wait()
        runs.last = Running("run", process, time.monotonic())
        assert runs.state()["run"]["error"] == error


def test_a_run_whose_tests_are_done_has_no_time_left(tmp_path: Path) -> None:
    folder = stored(read_plan(own_plan(read_form(FORM_PLAN)), "form", "form"), tmp_path / "run")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:  # ends with this block
        runs = Runs(tmp_path)
        runs.last = Running("run", process, time.monotonic() - 9)
        assert (runs.state()["run"]["done"], runs.state()["run"]["left_s"]) == (4, None)
        next(folder.glob("raw/*.json")).unlink()
        assert runs.state()["run"]["left_s"] == pytest.approx(3, abs=0.5)


def until(tab: Any, condition: Callable[[], bool]) -> None:
    """Waits for a condition: the policy of the page forbids scripts that a test would add."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, tab.inner_text("main")
        time.sleep(0.05)


def send_file(tab: Any, before: str) -> str:
    """Sends the file of the folder to this machine, after the run `before`, and returns the run's name."""
    tab.select_option("#profile", "wlan-g")
    assert tab.input_value("#address") == "10.99.0.2"
    tab.select_option("#profile", "")
    assert tab.input_value("#address") == "127.0.0.1"
    tab.fill("#sizes", "4096")
    tab.select_option("#amount", "file")
    until(tab, lambda: tab.input_value("#file") == "war.txt")
    assert tab.is_hidden("#value")
    tab.click("#start")
    until(tab, lambda: tab.inner_text("#said") == "4 of 4 tests, done" and tab.inner_text("#h-run") != before)
    run: str = tab.inner_text("#h-run")
    return run


def test_the_mouse_starts_compares_and_stops_runs(only_tab: Any, tmp_path: Path) -> None:
    tab, sent = only_tab, tmp_path / "sent"
    tmp_path = tmp_path / "runs"
    sent.mkdir()
    (sent / "war.txt").write_bytes(b"peace " * 5000)
    with serving(tmp_path, "--files", str(sent)) as viewer:
        tab.goto(viewer.url)
        tab.wait_for_selector("body[data-state=answers]")
        assert tab.inner_text("#none") == "No run yet."
        tab.select_option("#plan", "own")
        tab.fill("#sizes", "64 1024")
        tab.fill("#value", "50")
        tab.check("input[value=udp]")
        tab.fill("#trials", "0")
        tab.evaluate("document.getElementById('form').noValidate = true")
        tab.click("#start")
        until(tab, lambda: tab.inner_text("#problem").startswith("trials '0': expected"))
        tab.fill("#trials", "2")
        tab.click("#start")
        until(tab, lambda: tab.inner_text("#said") == "8 of 8 tests, done")
        first = tab.inner_text("#h-run")
        tab.wait_for_selector("#figures .plot .scatterlayer .trace")
        assert tab.inner_text("#runs tbody td") == first and not tab.inner_text("#problem")
        filed = send_file(tab, first)
        results = list(csv.DictReader((tmp_path / filed / "results.csv").read_text().splitlines()))
        assert {(row["protocol"], row["complete"]) for row in results} == {("tcp", "true"), ("udp", "true")}
        assert {row["blocks_received"] for row in results if row["protocol"] == "tcp"} == {"8"}  # 30,000 of 4,064 each
        tab.select_option("#published", "S3 LAN")
        tab.wait_for_selector("#figures .legendtext:has-text('S3 LAN, tcp (published)')")
        tab.select_option("#published", "")
        until(tab, lambda: not tab.locator("#figures .plot").count())  # one size
        tab.fill("#sizes", "64 8192")
        tab.select_option("#amount", "seconds")
        tab.fill("#value", "60")
        tab.click("#start")
        until(tab, lambda: tab.inner_text("#h-run") not in (first, filed))
        until(tab, lambda: tab.inner_text("#said") == "0 of 8 tests" and not tab.locator("#figures .plot").count())
        tab.click("#stop")
        until(tab, lambda: tab.inner_text("#said").endswith(" tests, stopped"))
        second = tab.inner_text("#h-run")
        tab.click(f"#runs tr:has-text('{first}') button")
        until(tab, lambda: (tab.get_attribute("body", "data-figures") or "").startswith(first))
        assert tab.evaluate("document.getElementById('progress').value") == 8 and tab.is_hidden("#failures")
        traces = tab.locator("#figures .plot >> nth=0 >> .scatterlayer .trace").count()
        tab.check(f"#runs tr:has-text('{first}') input")  # itself: no line twice
        assert tab.locator("#figures .plot >> nth=0 >> .scatterlayer .trace").count() == traces
        tab.set_viewport_size({"width": 390, "height": 844})
        until(tab, lambda: tab.evaluate("document.documentElement.scrollWidth") <= 390)
        tab.set_viewport_size(VIEW)
        report = f"{viewer.url}report?{urlencode({'run': first})}"
        assert b"A test of one&#39;s own" in viewer.ask(urlsplit(report).path + "?" + urlsplit(report).query)[1]
        assert {first, filed, second} == {path.name for path in tmp_path.iterdir()}
    deadline = time.monotonic() + 10
    while subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True).returncode == 0:
        assert time.monotonic() < deadline, "a run goes on after its page"
