# SPDX-License-Identifier: Apache-2.0
"""`wiretale diff --store`: 20 normal runs, and runs with a change of known size, through the installed command."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import wiretale
from plain_wire import MSS, Connection, Wire, sack
from processes import refusal
from report_page import Page

pytestmark = pytest.mark.xdist_group("baseline")

RUNS = 20
SEGMENTS = 150
CONNECTIONS = 6  # of each service


def transfer(draw: random.Random, flow: Connection, trip: float, loss: float) -> int:
    """A bulk transfer that loses segments at random and retransmits them fast. Returns the number lost."""
    now, lost, count = flow.wire.packets[-1][0] + 10, -1, 0
    for i in range(SEGMENTS):
        now += 2.3
        flow.data(now, i * MSS)
        back = now + trip + draw.expovariate(2)
        if lost < 0 and draw.random() < loss and i + 25 < SEGMENTS:
            lost, count = i, count + 1
        if lost < 0:
            flow.ack(back, (i + 1) * MSS)
        elif lost < i < lost + 20:
            flow.ack(back, lost * MSS, options=sack(((lost + 1) * MSS, (i + 1) * MSS)))
            if i == lost + 10:
                flow.data(back + 0.1, lost * MSS)
        elif i == lost + 20:
            flow.ack(back, (i + 1) * MSS)
            lost = -1
    return count


def a_run(path: Path, seed: int, longer: tuple[float, float] = (0, 0), loss: float = 0.0005) -> tuple[Path, float]:
    """A run of two services whose path has about 20 ms; `longer` is added for each. Returns the share lost, in percent."""
    draw, wire, lost = random.Random(seed), Wire(by_time=True), 0
    path_ms = draw.gauss(20, 0.5)
    for number in range(2 * CONNECTIONS):
        service = number % 2
        trip = path_ms + longer[service]
        flow = Connection(wire, 40000 + number, server_port=(443, 80)[service]).open(number * 400.0, rtt=trip)
        lost += transfer(draw, flow, trip, loss)
    return wire.write(path), 100 * lost / (2 * CONNECTIONS * SEGMENTS + lost)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baseline")
    (folder / "runs").mkdir()
    for seed in range(RUNS):
        a_run(folder / "runs" / f"{seed:02}.pcap", seed)
    return folder


@pytest.fixture(scope="module")
def store(wiretale_run: Any, captures: Path) -> Path:
    assert wiretale_run("store", "add", captures / "store", captures / "runs", "-q").returncode == 0
    return captures / "store"


def compared(run: Any, *words: str | Path, code: int = 0) -> dict[str, Any]:
    """The JSON object of a comparison."""
    done = run("diff", "--store", *words, "--json")
    assert done.returncode == code, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def unusual(result: dict[str, Any]) -> dict[tuple[str, str | None], dict[str, Any]]:
    return {(row["measure"], row["service"]): row for row in result["unusual"]}


def test_a_normal_run_is_as_usual(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    path, _ = a_run(tmp_path / "normal.pcap", 100)
    result = compared(wiretale_run, store, path, "--fail-if", "unusual")
    assert (result["verdict"], result["runs"], result["unusual"], result["failed"]) == ("usual", RUNS, [], False)
    assert result["schema"] == "wiretale.baseline/1" and result["services_new"] == result["services_gone"] == []
    text = wiretale_run("diff", "--store", store, path).stdout.splitlines()
    assert text[3] == result["sentence"] and text[3].startswith("B is as usual: none of ")


def test_a_longer_path_is_found(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    path, _ = a_run(tmp_path / "longer.pcap", 101, (20, 20))
    result = compared(wiretale_run, store, path, "--fail-if", "worse", code=1)
    median = unusual(result)["rtt_median", None]
    assert result["verdict"] == median["verdict"] == "worse" and result["failed"]
    assert median["b"] == pytest.approx(40.5e6, abs=2e6) and median["median"] == pytest.approx(20.5e6, abs=1e6)
    assert median["p"] == pytest.approx(1 / (RUNS + 1)) and median["runs"] == RUNS
    assert median["p5"] < median["median"] < median["p95"] < median["greatest"] < median["b"]
    assert ("handshake", None) in unusual(result) and ("downstream_loss", None) not in unusual(result)
    judged = compared(wiretale_run, store, path, "--fail-if", "rtt_median>15ms", "--fail-if", "rtt_median>25ms", code=1)
    assert [condition["holds"] for condition in judged["conditions"]] == [True, False]


def test_one_percent_of_loss_is_found(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    path, share = a_run(tmp_path / "lossy.pcap", 102, loss=0.016)
    assert 0.8 < share < 1.2
    result = compared(wiretale_run, store, path)
    loss = unusual(result)["downstream_loss", None]
    assert result["verdict"] == loss["verdict"] == "worse" and loss["b"] == pytest.approx(share)
    assert ("rtt_min", None) not in unusual(result)


def test_a_longer_path_of_one_service_is_found_there(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    path, _ = a_run(tmp_path / "service.pcap", 103, (0, 20))
    keys = set(unusual(compared(wiretale_run, store, path)))
    assert ("rtt_median", "tcp/80") in keys and ("rtt_median", "tcp/443") not in keys
    assert {service for _, service in keys} <= {"tcp/80", None}


@pytest.mark.parametrize("kind", ["capture", "copy", "tables"])
def test_a_run_of_the_store_is_not_compared_with_itself(
    wiretale_run: Any, captures: Path, store: Path, tmp_path: Path, kind: str
) -> None:
    run = captures / "runs" / "03.pcap"
    if kind == "copy":
        with gzip.open(tmp_path / "copy.pcap.gz", "wb") as file:
            file.write(run.read_bytes())
        run = tmp_path / "copy.pcap.gz"
    elif kind == "tables":
        assert wiretale_run("analyze", run, "-q", "-o", tmp_path / "run.wiretale").returncode == 0
        run = tmp_path / "run.wiretale"
    result = compared(wiretale_run, store, run)
    assert (result["runs"], result["left_out"], result["verdict"]) == (RUNS - 1, 1, "usual")


def test_python_returns_the_object_and_the_text_of_the_command(
    wiretale_run: Any, captures: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    path, _ = a_run(tmp_path / "slow.pcap", 102, (10, 10))
    result = wiretale.diff(path, store=store)
    assert result.verdict == "worse" and result.unusual and result.runs == RUNS and result.left_out == 0
    assert json.loads(json.dumps(result.as_dict())) == compared(wiretale_run, store, path)
    text = wiretale_run("diff", "--store", store, path, env={"COLUMNS": "160"}).stdout
    assert str(result) == text.rstrip("\n")
    run, some = captures / "runs" / "03.pcap", "path LIKE '%/0%'"
    subset = wiretale.diff(wiretale.analyze(run), store=str(store), where=some, services=0)
    assert (subset.runs, subset.left_out, subset.verdict) == (9, 1, None)


@pytest.mark.parametrize(
    ("runs", "options", "text"),
    [
        (["a.pcap"], {}, "two runs, or one run and a store"),
        (["a.pcap", "b.pcap"], {"store": "s"}, "two runs, or one run and a store"),
        (["a.pcap", "b.pcap"], {"where": "true"}, "it needs store"),
        (["a.pcap"], {"store": "s", "services": -1}, "services"),
    ],
)
def test_python_refuses_wrong_arguments(runs: list[Any], options: dict[str, Any], text: str) -> None:
    with pytest.raises(wiretale.UsageError, match=text):
        wiretale.diff(*runs, **options)


def test_a_condition_chooses_the_runs(wiretale_run: Any, captures: Path, store: Path, tmp_path: Path) -> None:
    path, _ = a_run(tmp_path / "longer.pcap", 101, (20, 20))
    where = ("--where", "path LIKE '%/0_.pcap'")
    result = compared(wiretale_run, store, path, *where, "--fail-if", "worse")
    assert result["runs"] == 10 and result["verdict"] is None and result["unusual"] == []
    assert "10 runs, 19 are needed" in result["sentence"]
    done = wiretale_run("diff", "--store", store, path, *where, "--fail-if", "worse", "-q")
    assert (done.returncode, done.stdout) == (0, "") and "undetermined" in done.stderr


def test_tables_are_compared_like_their_capture(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    path, _ = a_run(tmp_path / "longer.pcap", 101, (20, 0))
    assert wiretale_run("analyze", path, "-o", tmp_path / "tables", "-q").returncode == 0
    first, second = (compared(wiretale_run, store, run) for run in (path, tmp_path / "tables"))
    assert first["measures"] == second["measures"] and first["sentence"] == second["sentence"]


def test_a_damaged_run_has_its_exit_code(wiretale_run: Any, store: Path, tmp_path: Path) -> None:
    path, _ = a_run(tmp_path / "cut.pcap", 100)
    path.write_bytes(path.read_bytes()[:-5])
    assert compared(wiretale_run, store, path, code=3)["b"]["damaged"]


@pytest.mark.parametrize(
    "words, message, code",
    [
        (("STORE", "RUN", "RUN"), "expected one run", 2),
        (("STORE",), "expected one run, B", 2),
        (("STORE", "RUN", "--fail-if", "bad"), ", or worse, or unusual", 2),
        (("STORE", "RUN", "--where", "nothing = 1"), "--where", 2),
        (("STORE", "RUN", "--where", "1 = 1) --"), "--where", 2),
        (("STORE", "RUN", "--where", "true); SELECT (1"), "--where", 2),
        (("STORE", "RUN", "--where", "path = '\udcff'"), "in UTF-8", 2),
        (("STORE", "RUN", "--fail-if", "spurious>1"), "no measure 'spurious'", 2),
        (("RUN", "RUN"), "expected a store", 4),
        (("STORE", "missing.pcap"), "missing.pcap", 4),
    ],
)
def test_wrong_words_are_one_line(
    wiretale_run: Any, captures: Path, store: Path, words: tuple[str, ...], message: str, code: int
) -> None:
    places = {"STORE": store, "RUN": captures / "runs" / "00.pcap"}
    assert message in refusal(wiretale_run("diff", "--store", *(places.get(word, word) for word in words)), code)


def test_a_damaged_store_is_not_the_fault_of_a_condition(
    wiretale_run: Any, captures: Path, store: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(store, tmp_path / "s"))
    os.truncate(max(folder.glob("day=[12]*/*/captures.parquet")), 100)
    error = refusal(wiretale_run("diff", "--store", folder, captures / "runs" / "00.pcap"), 4)
    assert "captures.parquet" in error and "wiretale store check" in error and "--where" not in error


def test_an_unknown_change_is_not_called_equal(wiretale_run: Any, store: Path, captures: Path) -> None:
    run = captures / "runs" / "00.pcap"
    done = wiretale_run("diff", "--store", store, "--where", "false", run)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  goodput")]
    assert lines and all("=" not in line and line.split()[-1] == "0" for line in lines)
    page = wiretale_run("diff", "--store", store, "--where", "false", run, "--report", "-").stdout
    assert "<td" in page and '<td class="n">=</td>' not in page


def test_two_runs_are_needed_without_a_store(wiretale_run: Any, captures: Path) -> None:
    run = captures / "runs" / "00.pcap"
    assert "two runs, or one with --store" in refusal(wiretale_run("diff", run))
    assert "needs --store" in refusal(wiretale_run("diff", run, run, "--where", "true"))


def test_the_mouse_reads_the_new_run_in_the_page(wiretale_run: Any, store: Path, tmp_path: Path, page: Page) -> None:
    path, _ = a_run(tmp_path / "longer.pcap", 101, (20, 20))
    done = wiretale_run("diff", "--store", store, path, "-q", "--report", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page.open(tmp_path / "page.html")
    assert page.page.inner_text("h1").startswith("B is worse than 20 runs: ")
    points = page.drawn("standing")
    assert sum(point.trace == "runs of the baseline" for point in points) > RUNS
    first = min((point for point in points if point.trace == "B"), key=lambda point: point.y)
    assert "spreads from the median" in page.hover(first, "standing")
    assert page.complaints == [] and "worse" in page.page.inner_text("table")
