# SPDX-License-Identifier: Apache-2.0
"""docs/measured/studies.md: sections that are run again keep the others, and answers are made from all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import needs

needs.benchmarks()

from studies import __main__ as studies
from studies.anomalies import ANOMALIES, judge
from studies.answers import answers
from studies.by_study import by_study
from studies.file_transfer import drawn
from studies.paused_receiver import TICK_S, lost_in_pause, pauses_per_second, published_losses
from studies.three_sessions import spread
from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.experiment.published import block_rate, published_rows

Rows = dict[str, Any]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    """The rows that the sections measure, which a test may change; an error is raised."""
    measured: Rows = {
        "retransmitted": [("same-switch", 10, 0, 0, 100.0), ("wan", 10, 3, 3, 100.0)],
        "anomalies": [("kept", "send", "", "", "yes")],
    }

    def measure(name: str) -> Callable[[], Any]:
        def run() -> Any:
            if isinstance(measured[name], Exception):
                raise measured[name]
            return measured[name]

        return run

    made = [studies.Section(name, name.title(), measure(name), lambda text: f"{text}\n") for name in measured]
    monkeypatch.setattr(studies, "all_sections", lambda folder: made)
    monkeypatch.setattr(studies, "TARGET", tmp_path / "studies.md")
    return measured


def test_a_section_that_is_run_again_changes_the_answers_and_keeps_the_others(rows: Rows, tmp_path: Path) -> None:
    assert not studies.make_page(tmp_path, []).failed
    first = studies.TARGET.read_text("utf-8")
    assert "if it lost 3 (wan), 3 were" in first and "kept" in first
    rows["retransmitted"] = [("same-switch", 10, 0, 0, 100.0), ("wan", 10, 7, 8, 100.0)]
    rows["anomalies"] = [("new", "send", "", "", "yes")]
    assert not studies.make_page(tmp_path, ["retransmitted"]).failed
    second = studies.TARGET.read_text("utf-8")
    assert "if it lost 7 (wan), 8 were" in second and "kept" in second and "new" not in second


def test_without_an_earlier_run_only_the_section_changes(rows: Rows, tmp_path: Path) -> None:
    studies.make_page(tmp_path / "first", [])
    before = studies.TARGET.read_text("utf-8")
    rows["anomalies"] = [("new", "send", "", "", "yes")]
    studies.make_page(tmp_path / "second", ["anomalies"])
    assert studies.TARGET.read_text("utf-8") == before.replace("kept", "new")


@pytest.mark.parametrize("anomaly_rows", [WiretaleError("no lab"), [("kept", "send", "", "", "no: expected `x`")]])
def test_a_section_that_fails_and_an_anomaly_without_its_cause_fail_the_run(
    rows: Rows, tmp_path: Path, anomaly_rows: Any
) -> None:
    rows["anomalies"] = anomaly_rows
    assert studies.make_page(tmp_path, []).failed
    assert "if it lost 3 (wan), 3 were" in studies.TARGET.read_text("utf-8")


def test_a_finding_must_have_the_cause_and_the_words_for_place_and_remedy() -> None:
    anomaly = next(anomaly for anomaly in ANOMALIES if anomaly.name == "narrow")
    text = "more than the path before the capture point carries. *Send at most 1 Mbit/s.*"
    assert judge(anomaly, "udp-above-path", text) == "yes"
    assert judge(anomaly, "blocks-lost", text) == "no: expected `udp-above-path`"
    assert (
        judge(anomaly, "udp-above-path", text.replace("before", "behind")) == "no: expected “before the capture point”"
    )


def test_each_study_has_the_difference_and_its_reason() -> None:
    card = [(1, 5, "tcp", 64.0, 65.5, -2.3, ""), (1, 1, "udp", 9.96, 6.01, 65.7, "sender-queue")]
    wan = [("WAN", "UDP", 20000, None, 0.39, 81.2, 304.0, 6.0, 6.0)]
    lines = by_study({"card": card, "transfers": wan}, studies.markdown).splitlines()
    assert "| 1 TCP and 5 UDP at 10 Mbit/s: TCP, each | Mbit/s | 64 | 65.5 | -2 % | as published |" in lines
    assert any(
        line.startswith("| 1 TCP and 1 UDP") and "| +66 % | the study does not describe its network" in line
        for line in lines
    )
    assert "| WAN, UDP, 100 blocks of 20,000: rate | MB/s | – | 0.39 | – | not known |" in lines
    assert "| WAN, UDP, 100 blocks of 20,000: received | % | 6 | 6 | +0 % | fits |" in lines
    assert "cannot fit: TCP brought 0.58 MB/s through this link, UDP beside its full queue 0.395 |" in "\n".join(lines)
    assert [line for line in lines if line.startswith("### ")] == [
        "### S3: File Transfer",
        "### S5: TCP and UDP sessions",
    ]


def test_lines_of_a_section_of_its_own_are_left() -> None:
    table = "| figure | runs |\n| --- | --- |\n| uneven | 3 |\n"
    old, new = (
        by_study({"sharing": [spread("uneven", "", ratios, 1.35)]}, studies.markdown) for ratios in ([1.0], [1.1, 1.9])
    )
    page = "# Studies\n\n{}\n## Runs\n\n" + table
    assert old != new and studies.with_lines(page.format(old), new) == page.format(new)


def test_figures_of_many_runs_are_as_published_if_the_runs_had_them() -> None:
    rows = [
        spread("uneven", "", [1.1, 1.2, 1.9], 1.35),
        spread("even", "", [1.1, 1.0, 1.05], 1.35),
        spread("near", "Mbit/s", [60.0, 62.0, 58.0], 63.6),
    ]
    lines = by_study({"sharing": rows}, studies.markdown).splitlines()
    assert "| uneven |  | 1.2 | 1.35 | -11 % | as published; 3 runs had 1.1 to 1.9 |" in lines
    assert "| even |  | 1.05 | 1.35 | -22 % | not reproduced: 3 runs had 1 to 1.1 |" in lines
    assert "| near | Mbit/s | 60 | 63.6 | -6 % | as published; 3 runs had 58 to 62 |" in lines


def test_rates_on_the_wire_stand_beside_rates_on_the_wire() -> None:
    """The payload of the study's own runs, blocks times bytes over its time: with their headers they are what it published."""
    published = {
        (row["protocol"], int(row["block_bytes"])): block_rate(row)
        for row in published_rows("block_benchmark")
        if row["system"] == "Windows 7"
    }
    blocks = [
        ("UDP", size, rate, rate, 0, 0, 0, 0) for (protocol, size), rate in published.items() if protocol == "udp"
    ]
    windows = [("S4: 1 Gb/s", 65536, size, published["tcp", size]) for size in (1000, 10000)]
    lines = by_study({"blocks": blocks, "windows": windows}, studies.markdown).splitlines()
    assert "| UDP, blocks of 1,000: sent, on the wire | MB/s | 59.2 | 59.2 | +0 % | as published |" in lines
    for name in ("UDP, blocks of 10,000: sent", "TCP, window 65,536, round trip 2.37 ms, blocks of 10,000"):
        (line,) = (line for line in lines if line.startswith(f"| {name}"))
        difference = float(line.split(" | ")[4].rstrip(" %"))
        assert abs(difference) <= 1, line


def test_ten_blocks_are_compared_with_the_words_of_the_study_because_it_prints_no_figures() -> None:
    rows = [
        ("LAN", "TCP", 4096, 50.0, 80.0, 100.0, 100.0),
        ("LAN", "UDP", 4096, 100.0, 100.0, 100.0, 100.0),
        ("WLAN", "TCP", 4096, 3.0, 3.0, 100.0, 100.0),
        ("WLAN", "UDP", 4096, None, 3.0, 20.0, 33.0),
    ]
    answer = answers({"ten": rows}).splitlines()[-1]
    assert "pictures, so its figures cannot be compared" in answer
    assert "2.00 times TCP's rate with 10 blocks of 4096 bytes and 1.25 times with 100 (its text: much slower" in answer
    assert "WLAN" not in answer  # a rate is unknown
    section = next(section for section in studies.all_sections(Path()) if section.name == "ten")
    assert "| LAN | UDP | 4,096 | 100 | 100 | 100 | 100 |" in section.show(rows)


def test_pauses_of_a_receiver_lose_the_published_blocks() -> None:
    rows = published_losses()
    assert [(row.size, row.missing, row.late) for row in rows][:2] == [(1000, 8621, 2230), (2000, 10912, 1655)]
    for row in rows:
        there = row.sent / row.seconds
        room = max(1, 8192 // row.size)  # blocks
        pauses = pauses_per_second(there, row.size, row.lost_share) * row.seconds
        assert pauses * (there * TICK_S - room) == pytest.approx(row.missing)
        assert lost_in_pause(2 * there, row.size) > 2 * lost_in_pause(there, row.size)
    text = by_study({"paused": [(1000, 500000, 8621, 1.72, 2230, 1.12, 1.17, 15.8, 1.87, 0)]}, studies.markdown)
    assert (
        "| UDP, blocks of 1,000: missing | % | 1.87 | 1.72 | +9 % | fits a receiver that misses 1.1 ticks of 15.6 ms"
        in text
    )


def test_a_rate_over_time_is_drawn_in_eighths_of_its_highest() -> None:
    assert drawn([0.0, 1.0, 4.0, 7.9, 8.0]) == " ▁▄██"
