# SPDX-License-Identifier: Apache-2.0
"""S6's TCP series of `make studies`: the window of 20 packets is in the queue, by the log of the link."""

from __future__ import annotations

from pathlib import Path

import pytest

import needs
from lab_bench import NEEDED

needs.benchmarks()

from studies import __main__ as studies
from studies.by_study import by_study
from studies.tcp_over_link import CASES, expected_ms, run_case

CASE = {case.name: case for case in CASES}
AMOUNT = {"base": "300k", "small packets": "200k"}
LIVE = (pytest.mark.xdist_group("live"), NEEDED)


def live(name: str) -> pytest.ParameterSet:
    return pytest.param(name, marks=LIVE)


def test_the_expected_latencies_are_those_that_the_study_published() -> None:
    expected = {name: expected_ms(case) for name, case in CASE.items()}
    assert expected["base"] == pytest.approx(73.04)  # "almost 73 ms"
    assert expected["large packets"] == pytest.approx(313.04)  # "more than 300 ms"
    assert expected["small packets"] == pytest.approx(10.56)
    assert expected["queue 5"] is None


@pytest.mark.parametrize("name", [live("base"), live("small packets")])
def test_the_window_of_20_packets_waits_in_the_queue_or_does_not_fill_the_link(name: str, tmp_path: Path) -> None:
    latency, kibps, sent, lost = run_case(CASE[name], tmp_path, "--bytes", AMOUNT[name])
    assert latency == pytest.approx(expected_ms(CASE[name]), rel=0.05)
    assert lost == 0 < sent
    # A full link, or 20 packets of 140 bytes in each round trip of 20.72 ms: 1056 Kibit/s.
    assert kibps == pytest.approx({"base": 1953, "small packets": 1056}[name], rel=0.15)


def test_the_page_has_the_mechanism_beside_each_figure() -> None:
    rows = [
        (*CASE["base"][:4], 73.02, 73.04, 1942.6, 100.0, 2622, 0, "almost 73 ms"),
        (*CASE["small packets"][:4], 10.59, 10.56, 1027.1, 52.9, 10493, 0, "almost one-half"),
        (*CASE["queue 5"][:4], 23.1, None, 1834.9, 94.3, 2688, 62, "felt the hit"),
    ]
    section = next(section for section in studies.all_sections(Path()) if section.name == "s6tcp")
    assert "| queue 5 | 1,000 | 5 | 10 | 23.1 | – |" in section.show(rows)
    base, small, short = by_study({"s6tcp": rows}, studies.markdown).splitlines()[-3:]
    assert (
        base.endswith("20 × 4.16 less the way back, 10.16, is 73.0 ms |") and "| 73 | 73 | +0 % | as published" in base
    )
    assert "| 0.529 | 0.5 | +6 % | as published; 20 packets of 140 bytes in a round trip of 20.7 ms" in small
    assert "| 0.943 | – | – | published in words; 20 packets do not fit in the queue: 62 were lost |" in short
