# SPDX-License-Identifier: Apache-2.0
"""The report of an experiment: figures of the table, in a real browser, offline."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import causes_path as paths
from experiment_results import NOW, built_in, stored
from plain_wire import START_NS, Wire, block
from report_page import Page
from wiretale.analyzer.errors import InputError
from wiretale.reports.html.experiment.data import alone, mix_points, points
from wiretale.reports.html.experiment.figures import experiment_figures
from wiretale.reports.html.experiment.page import answer, write_page
from wiretale.traffic.experiment.plan import read_plan, scaled
from wiretale.traffic.experiment.results import read_outcome
from wiretale.traffic.experiment.session_series import assign, bin_seconds, fairness, jain, spread, tcp_losses
from wiretale.traffic.experiment.store import Store

pytestmark = pytest.mark.xdist_group("experiment-report")

Row = dict[str, Any]
PORT = 80  # of the transfers in the captures of causes_path


def figures(folder: Path) -> dict[str, Row]:
    return {figure["title"]: figure for figure in experiment_figures(read_outcome(folder))}


def traces(figure: Row) -> dict[str, Row]:
    return {trace["name"]: trace for trace in figure["data"]}


# --- the answer


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        (
            {"tcp": [20.0, 30.0, 90.0], "udp": [40.0]},
            "udp was fastest at 40 Mbit/s (median of the sessions), tcp was slowest",
        ),
        ({"tcp": [67.1], "udp": [67.1], "mix": [12.0]}, "2 tests (tcp, udp) were fastest at 67.1 Mbit/s"),
        ({"tcp": [67.1], "udp": [67.1]}, "All 2 tests reached 67.1 Mbit/s (median of the sessions)."),
        ({"tcp": [5.0, 7.0]}, "tcp: 6 Mbit/s, the median of the sessions."),
        ({}, "No throughput was measured."),
    ],
)
def test_the_answer_names_every_test_at_either_end(
    tmp_path: Path, sessions: dict[str, list[float]], expected: str
) -> None:
    outcome = read_outcome(stored(built_in("s2-controller-sweep"), tmp_path))
    rows = [
        {"group": group, "throughput_mbit_s": rate, "block_bytes": 512}
        for group, rates in sessions.items()
        for rate in rates
    ]
    assert answer(replace(outcome, rows=rows, failures=[])).startswith(expected)
    if sessions:
        larger = [{**row, "block_bytes": 1024} for row in rows]
        assert "median over all block sizes" in answer(replace(outcome, rows=rows + larger, failures=[]))


# --- figures


def test_medians_and_spread_are_those_of_the_trials(tmp_path: Path) -> None:
    outcome = read_outcome(stored(built_in("s2-controller-sweep"), tmp_path))
    line = points(alone(outcome.rows), lambda row: row["block_bytes"], "throughput_mbit_s")["udp+12"]
    assert [point.x for point in line] == [44, 76, 140, 268, 524, 1036, 2060, 4108, 8204]
    assert all(len(point.trials) == 5 for point in line)
    drawn = traces(figures(tmp_path)["Throughput against block size"])["udp+12"]
    values = [row["throughput_mbit_s"] for row in outcome.rows if row["block_bytes"] == 44]
    assert drawn["y"][0] == pytest.approx(sorted(values)[2])
    assert drawn["y"][0] + drawn["error_y"]["array"][0] == pytest.approx(max(values))
    assert drawn["y"][0] - drawn["error_y"]["arrayminus"][0] == pytest.approx(min(values))


def test_s2_has_its_three_graphs_with_medians_and_per_trial(tmp_path: Path) -> None:
    drawn = figures(stored(built_in("s2-controller-sweep", 2), tmp_path))
    assert list(drawn) == [
        "Throughput against block size",
        "Throughput against elapsed time",
        "Percent received against block size",
    ]
    for title in drawn:
        assert {"tcp, trial 1", "udp, trial 2", "udp+12"} <= set(traces(drawn[title]))
        assert [choice["label"] for choice in drawn[title]["choices"]] == ["medians", "per trial"]


@pytest.mark.parametrize(
    "plan, title, published",
    [
        ("s3-file-transfer", "Throughput against block size", {"S3 LAN, udp (published)": (4096, 3.79 * 8)}),
        ("s3-file-transfer", "Percent received against block size", {"S3 WLAN, udp (published)": (60000, 20)}),
        (
            "s4-block-benchmark",
            "Throughput against block size",
            {"S4 Windows 7, udp (published)": (1000, 1000 * 500000 * 8 / 9.0 / 1e6)},
        ),
        (
            "s4-block-benchmark",
            "Percent received against block size",
            {"S4 Ubuntu VM, udp (published)": (10000, 100 - 48 / 1000)},
        ),
        ("s5-rate-sweep", "Offered against received rate", {"S5 802.11b (published)": (10, 6.53)}),
        ("s5-tcp-udp-mix", "One TCP session beside UDP sessions", {"S5 (published)": (5, 65.5)}),
        ("s5-tcp-udp-mix", "One UDP session beside TCP sessions", {"S5 (published)": (1, 6.01)}),
    ],
)
def test_published_figures_stand_beside_and_are_named_as_theirs(
    tmp_path: Path, plan: str, title: str, published: dict[str, tuple[float, float]]
) -> None:
    drawn = figures(stored(scaled(built_in(plan), 0.1), tmp_path))[title]
    for name, (x, y) in published.items():
        line = traces(drawn)[name]
        assert pytest.approx(y) == dict(zip(line["x"], line["y"], strict=True))[x]
    assert "published" in drawn["note"]


def test_sending_rates_are_beside_the_throughput(tmp_path: Path) -> None:
    folder = stored(scaled(built_in("s2-controller-sweep"), 0.1), tmp_path, lost=25)
    drawn = traces(figures(folder)["Throughput against block size"])
    sent = {
        (row["block_bytes"], row["sending_rate_mbit_s"]) for row in read_outcome(folder).rows if row["group"] == "udp"
    }
    assert {"tcp, sent", "udp, sent", "udp+12, sent"} <= set(drawn)
    assert set(drawn["udp, sent"]["x"]) <= {size for size, _ in sent}
    assert min(rate for _, rate in sent) <= min(drawn["udp, sent"]["y"]) <= max(rate for _, rate in sent)


@pytest.mark.parametrize(
    ("make", "congestion"),
    [
        (paths.dropped_at_random, False),
        (paths.policed, False),
        (paths.short_queue, True),
        (lambda: paths.rounds(lambda now: False, [10] * 20), None),
    ],
)
def test_the_page_says_whether_losses_of_tcp_were_congestion(
    tmp_path: Path, make: Any, congestion: bool | None
) -> None:
    plan = replace(scaled(built_in("s2-controller-sweep", 1), 0.1), port=PORT)
    folder = stored(plan, tmp_path / "out")
    path = next((folder / "raw").glob("tcp-8192-t1.json"))
    data = json.loads(path.read_text())
    (folder / "captures").mkdir(exist_ok=True)
    make().write(folder / "captures" / "one.pcap")
    path.write_text(json.dumps({**data, "tracer": {"program": "tcpdump", "files": ["captures/one.pcap"]}}))
    losses = read_outcome(folder).tcp_losses
    assert [row["congestion"] for row in losses] == ([] if congestion is None else [congestion])
    write_page(read_outcome(folder), tmp_path / "page.html")
    assert ("Was it congestion?" in (tmp_path / "page.html").read_text()) == bool(losses)
    assert list(tcp_losses(Store(folder).tests(), folder, PORT + 1)) == []  # flows of others


def test_published_sessions_stand_at_the_place_of_the_measured_ones(tmp_path: Path) -> None:
    drawn = traces(figures(stored(scaled(built_in("s5-parallel-tcp"), 0.1), tmp_path))["Throughput of each session"])
    measured, published = drawn["measured"], drawn["S5 (published)"]
    assert set(zip(*published["x"], strict=True)) == set(zip(*measured["x"], strict=True))
    places = list(zip(*published["x"], strict=True))
    assert published["y"][places.index(("three TCP at once", "tcp 3"))] == pytest.approx((39.6 + 36.8) / 2)


def test_a_plan_of_no_study_has_nothing_published_beside(tmp_path: Path) -> None:
    drawn = figures(stored(built_in("quick"), tmp_path))
    assert not any("published" in trace["name"] for figure in drawn.values() for trace in figure["data"])
    assert "Offered against received rate" not in drawn  # one rate is no sweep


def test_one_session_is_drawn_by_the_number_of_the_others(tmp_path: Path) -> None:
    lines = mix_points(read_outcome(stored(scaled(built_in("s5-tcp-udp-mix"), 0.1), tmp_path)).rows)
    for line in lines.values():
        assert [point.x for point in line] == [0, 1, 2, 3, 4, 5]
        assert [len(point.trials) for point in line] == [1, 2, 1, 1, 1, 1]  # 1 and 1 are run for both


def test_lost_blocks_lower_the_share_that_came(tmp_path: Path) -> None:
    drawn = figures(stored(built_in("s3-file-transfer"), tmp_path, lost=25))["Percent received against block size"]
    assert set(traces(drawn)["tcp"]["y"]) == {75.0}


# --- sessions over time


def test_jains_index_is_one_for_equals_and_a_share_for_one_of_them() -> None:
    assert jain([5, 5, 5]) == pytest.approx(1)
    assert jain([5, 0, 0, 0]) == pytest.approx(1 / 4)
    assert jain([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    assert jain([0, 0]) is None


def test_bytes_are_spread_over_the_bins_that_they_cross() -> None:
    assert spread([(0.0, 1.0, 100.0)], 0.5, 4) == pytest.approx([50, 50, 0, 0])
    assert spread([(0.25, 1.25, 100.0), (1.6, 1.7, 7.0)], 0.5, 4) == pytest.approx([25, 50, 25, 7])
    assert sum(spread([(0.1 * n, 0.1 * n + 0.37, 10.0) for n in range(20)], 0.2, 12)) == pytest.approx(200)


@pytest.mark.parametrize("seconds, expected", [(2, 0.05), (20, 0.1), (40, 0.2), (100, 0.5), (1000, 5)])
def test_bins_are_of_a_round_length(seconds: float, expected: float) -> None:
    assert bin_seconds(seconds) == pytest.approx(expected)


def test_fairness_is_of_those_that_run_throughout_a_bin() -> None:
    lines = [[10, 10, 10, 0], [0, 10, 30, 30]]
    pieces = [[(0.0, 3.0, 30.0)], [(1.0, 4.0, 70.0)]]
    assert fairness(lines, pieces, 1.0) == [None, pytest.approx(1), pytest.approx(1600 / 2000), None]


def test_flows_are_of_the_session_that_started_nearest() -> None:
    flows = [
        {"flow": 3, "direction": 0, "sent_ns": NOW + 7, "protocol": "tcp"},
        {"flow": 1, "direction": 0, "sent_ns": NOW + 1_000_000_100, "protocol": "tcp"},
        {"flow": 2, "direction": 0, "sent_ns": NOW + 8, "protocol": "udp"},
        {"flow": 9, "direction": 0, "sent_ns": NOW + 60_000_000_000, "protocol": "tcp"},  # of another run
    ]
    sessions = [("tcp", NOW + 1_000_000_000, 1), ("tcp", NOW, 1), ("udp", NOW, 1)]
    assert assign(flows, sessions) == {(3, 0): 1, (1, 0): 0, (2, 0): 2}


def test_sessions_over_time_without_a_capture_are_as_they_were_sent(tmp_path: Path) -> None:
    spans = ((0, 60), (10, 30), (20, 10))
    session = '[[test.session]]\nprotocol = "tcp"\nsize = 8192\nlabel = "{1} s"\nstart = {0}\nseconds = {1}\n'
    text = '[[test]]\nname = "t"\n' + "".join(session.format(*span) for span in spans)
    (together,) = read_outcome(stored(read_plan(text, "plan.toml", "plan"), tmp_path)).together
    assert together["source"] == "senders" and together["labels"] == ["60 s", "30 s", "10 s"]
    at = {second: int(second / together["bin_s"]) for second in (5, 15, 25, 35, 45)}
    rates = [[round(line[at[second]] * 1e6 / 8) for second in at] for line in together["rates"]]
    assert rates == [[2000] * 5, [0, 4000, 4000, 4000, 0], [0, 0, 6000, 0, 0]]
    assert together["fairness"][at[25]] == pytest.approx(jain([1, 2, 3])) and together["fairness"][at[5]] is None


def test_the_rate_over_time_is_the_mean_of_the_captures_beside_the_rate_of_the_program(tmp_path: Path) -> None:
    text = 'trials = 3\n[[test]]\nname = "u"\nprotocol = "udp"\nsizes = [1000]\ncount = 40\n'
    folder = stored(read_plan(text, "plan.toml", "plan"), tmp_path)
    for trial, gap_ms in ((1, 0.5), (2, 1.0)):  # the third has no capture
        wire = Wire()
        for number in range(40):
            wire.udp(50 * trial + gap_ms * number, block(number, 1000, sent_ms=gap_ms * number))
        (folder / "captures").mkdir(exist_ok=True)
        wire.write(folder / "captures" / f"{trial}.pcap")
        path = folder / "raw" / f"u-1000-t{trial}.json"
        data = json.loads(path.read_text())
        data["sessions"][0]["report"]["start_ns"] = data["sessions"][0]["report"]["sender"]["first_ns"] = START_NS
        path.write_text(json.dumps({**data, "tracer": {"program": "tcpdump", "files": [f"captures/{trial}.pcap"]}}))
    outcome = read_outcome(folder)
    (course,) = outcome.courses
    assert course["tests"] == ["u-1000-t1", "u-1000-t2"] and course["bin_s"] == 0.002
    first, second = course["rates"]
    assert first == pytest.approx([16.0] * 10 + [0.0] * 10) and second == pytest.approx([8.0] * 20)
    (drawn,) = (
        figure for title, figure in figures(folder).items() if title == "Rate over time: u, 1,000 bytes a block"
    )
    lines = traces(drawn)
    mean = next(trace for trace in drawn["data"] if trace["name"] == "in the capture" and trace.get("showlegend", True))
    assert mean["y"] == pytest.approx([12.0] * 10 + [4.0] * 11)
    reported = [row["throughput_mbit_s"] for row in outcome.rows if row["trial"] < 3]
    assert lines["as the program reports"]["y"] == pytest.approx([sum(reported) / 2] * 2)
    assert [choice["label"] for choice in drawn["choices"]] == ["means", "per trial"]


# --- the page


def test_results_of_an_earlier_version_have_a_report(tmp_path: Path) -> None:
    """Their sessions have no options, and their tests neither programs nor ping."""
    folder = stored(built_in("quick"), tmp_path / "out")
    for path in (folder / "raw").glob("*.json"):
        data = json.loads(path.read_text())
        for session in data["test"]["sessions"]:
            del session["sending"]
        del data["test"]["programs"], data["test"]["ping"]
        path.write_text(json.dumps(data))
    outcome = read_outcome(folder)
    assert {row["settings"] for row in outcome.rows} == {""} and outcome.latency == outcome.programs == []
    assert "Means of the trials" in write_page(outcome, tmp_path / "page.html").read_text()


def test_a_folder_without_tests_is_an_error(tmp_path: Path) -> None:
    Store(tmp_path).begin(built_in("quick"))
    with pytest.raises(InputError, match="expected at least one completed test"):
        read_outcome(tmp_path)
    (tmp_path / "raw" / "tcp-512-t1.json").write_text("{")
    with pytest.raises(InputError, match=r"tcp-512-t1\.json"):
        read_outcome(tmp_path)


def test_nothing_of_a_plan_or_a_program_becomes_markup(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    text = f'title = "{evil}"\n[[test]]\nname = "{evil}"\nprotocol = "tcp"\nsizes = [100, 200]\ncount = 5\n'
    folder = stored(read_plan(text, "plan.toml", evil), tmp_path / "out", error=evil)
    page = write_page(read_outcome(folder), tmp_path / "page.html").read_text()
    assert evil not in page and "&lt;img src=x" in page


PLANS = ("quick", "s2-controller-sweep", "s3-file-transfer", "s4-block-benchmark", "s5-rate-sweep", "s5-parallel-tcp")


@pytest.mark.parametrize("name", [*PLANS, "s5-tcp-udp-mix", "s5-durations"])
def test_the_page_of_every_built_in_plan_draws_offline(page: Page, tmp_path: Path, name: str) -> None:
    folder = stored(built_in(name), tmp_path / "out")
    path = write_page(read_outcome(folder), tmp_path / "page.html")
    page.open(path)
    assert page.complaints == [] and page.requests == [path.as_uri()]
    drawn = page.page.evaluate(
        "[...document.querySelectorAll('.plot')].map(p => p.querySelectorAll('.point, .js-line').length)"
    )
    assert len(drawn) == len(figures(folder)) and all(drawn)
    ticks = page.page.evaluate(
        "[...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => ['x', 'y']"
        ".filter(side => plot._fullLayout[`${side}axis`].type === 'log')"
        ".map(side => [plot.id, side, [...plot.querySelectorAll(`.${side}tick text`)].map(one => one.textContent)]))"
    )
    assert all(len(labels) >= 2 for *_, labels in ticks), ticks
    buttons = page.page.evaluate("[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
    assert buttons and not [title for title in buttons if "hare" in title or "Plotly" in title]


def test_the_buttons_show_each_trial_as_a_line(page: Page, tmp_path: Path) -> None:
    folder = stored(built_in("s2-controller-sweep", 2), tmp_path / "out")
    page.open(write_page(read_outcome(folder), tmp_path / "page.html"))
    lines = "document.querySelectorAll('#figure-1 .scatterlayer .js-line').length"
    assert page.page.evaluate(lines) == 6  # medians of three, and their sending rates
    page.page.locator(".choices button", has_text="per trial").first.click()
    page.until(f"{lines} === 9")
    assert page.complaints == []


def test_the_page_has_failures_and_missing_trials(page: Page, tmp_path: Path) -> None:
    folder = stored(built_in("quick"), tmp_path / "out", error="no route to host")
    next((folder / "raw").glob("udp-512*")).unlink()
    page.open(write_page(read_outcome(folder), tmp_path / "page.html"))
    text = page.page.inner_text("main")
    assert "no route to host" in text and "still to run" in text and "1 test" in text and page.complaints == []
