# SPDX-License-Identifier: Apache-2.0
"""The comparison of limits with the sender's kernel: the kernel's shares, the claimed ones, rows, page, and runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import needs

needs.benchmarks()

from score.limits.drawn import DRAWS, LEAST_BUFFER, draw_scenarios
from score.limits.page import limits_section, replace_section, shortfalls
from score.limits.rows import SHAPED, Row, scenarios_of, score_limits
from score.limits.scenarios import SCENARIOS
from score.limits.talk import Sample
from score.limits.truth import BUFFER, COLUMNS, claimed_shares, dominant, greatest_difference, is_right, true_shares
from score.runs.testbed import POINTS, missing

MS = 1_000_000
OPEN = Sample(0, 0, 0, 0, 0, 0, 50_000, False, 10, 10, False, False, 20_000, 20_000)
TIMES = ("pause", "send_buffer", "delayed_ack", "window", "loss", "network", "unknown")


def timeline(*spans: tuple[float, Sample], busy: float = 1, window: float = 0, buffer: float = 0) -> list[Sample]:
    """Returns samples of 10 ms; the chronometers run for these shares of the time, unless a sample has its own busy_us of 1."""
    samples = [OPEN]
    for seconds, state in spans:
        for _ in range(round(seconds * 100)):
            last = samples[-1]
            idle = state.busy_us == 1
            samples.append(
                state._replace(
                    time_ns=last.time_ns + 10 * MS,
                    busy_us=last.busy_us + (0 if idle else round(10_000 * busy)),
                    window_us=last.window_us + (0 if idle else round(10_000 * window)),
                    buffer_us=last.buffer_us + (0 if idle else round(10_000 * buffer)),
                    acked=last.acked + state.acked,
                )
            )
    return samples


SENDS = OPEN._replace(acked=1_000)


@pytest.mark.parametrize(
    "state, limit",
    [
        (SENDS, "path"),
        (SENDS._replace(not_sent=0), "application"),
        (SENDS._replace(ca_state=2), "path"),
        (SENDS._replace(full=True), "window"),  # the pace was tested first
        (SENDS._replace(full=True, not_sent=0), "application"),
        (SENDS._replace(ca_state=3), "loss"),
        (SENDS._replace(ca_state=4), "loss"),
        (SENDS._replace(ca_state=3, not_sent=0), "loss"),
        (SENDS._replace(grows=True), "slow start"),
        (SENDS._replace(grows=True, rtt_us=60_000), "path"),  # a queue has grown
        (SENDS._replace(grows=True, flight=5), "path"),  # the congestion window is not full
        (SENDS._replace(busy_us=1), "application"),  # idle
    ],
)
def test_each_state_of_the_sender_is_one_limit(state: Sample, limit: str) -> None:
    shares = true_shares(timeline((1, state)))
    assert shares == {name: float(name == limit) for name in (*COLUMNS, BUFFER)}


def test_a_write_that_does_not_return_waits_for_the_send_buffer() -> None:
    shares = true_shares(timeline((1, SENDS._replace(not_sent=0, writing=True)), (1, SENDS._replace(writing=True))))
    assert (shares["application"], shares[BUFFER], shares["path"]) == pytest.approx((0.5, 0.5, 0.5))


def test_the_chronometers_come_first() -> None:
    shares = true_shares(timeline((1, SENDS), busy=0.9, window=0.6, buffer=0.2))
    expected = {"application": 0.3, "window": 0.6, "path": 0.1, "loss": 0, "slow start": 0, BUFFER: 0.2}
    assert shares == pytest.approx(expected)


def test_ticks_of_the_kernel_give_no_share() -> None:
    """A chronometer that advances by 20 ms in every second sample of 10 ms is that of a sender that is always busy."""
    samples = [sample._replace(busy_us=number // 2 * 20_000) for number, sample in enumerate(timeline((1, SENDS)))]
    assert true_shares(samples) == pytest.approx({**dict.fromkeys((*COLUMNS, BUFFER), 0.0), "path": 1.0})


def test_the_silence_before_an_rto_is_loss() -> None:
    silent, lost = SENDS._replace(acked=0), SENDS._replace(acked=0, ca_state=4)
    shares = true_shares(timeline((1, SENDS), (0.3, silent), (0.7, lost)))
    assert shares["loss"] == pytest.approx(0.5, abs=0.01) and shares["path"] == pytest.approx(0.5, abs=0.01)


def test_silence_without_an_rto_stays_the_path() -> None:
    shares = true_shares(timeline((1, SENDS), (0.3, SENDS._replace(acked=0)), (0.2, SENDS)))
    assert shares["path"] == pytest.approx(1)


def direction(**times: int | None) -> dict[str, int | None]:
    parts = {f"{name}_ns": times.get(name, 0) for name in ("slow_start", "recovery", "suspected")}
    return {**{f"time_{name}_ns": times.get(name, 0) for name in TIMES}, **parts}


def test_columns_become_limits() -> None:
    sender = {"pause": 60 * MS, "send_buffer": 40 * MS, "delayed_ack": 50 * MS}
    network = {"network": 550 * MS, "slow_start": 200 * MS, "recovery": 50 * MS}
    row = direction(**sender, **network, window=200 * MS, loss=60 * MS, suspected=40 * MS, unknown=140 * MS)
    expected = {"application": 0.15, "window": 0.2, "loss": 0.15, "slow start": 0.2, "path": 0.3}
    assert claimed_shares(row) == pytest.approx(expected)


@pytest.mark.parametrize("row", [direction(window=8, unknown=1), direction(**dict.fromkeys(TIMES)), direction()])
def test_a_limit_that_is_not_known_makes_the_row_not_known(row: dict[str, int | None]) -> None:
    assert claimed_shares(row) is None


def shares_of(**shares: float) -> dict[str, float]:
    return {name: shares.get(name.replace(" ", "_"), 0.0) for name in (*COLUMNS, BUFFER)}


def test_a_limit_close_to_the_greatest_is_right() -> None:
    claimed = shares_of(path=0.6, window=0.4)
    assert dominant(claimed) == "path"
    assert is_right(shares_of(path=0.48, window=0.52), claimed)
    assert not is_right(shares_of(path=0.4, window=0.6), claimed)


def test_the_difference_is_that_of_what_the_chronometers_divide() -> None:
    assert greatest_difference(shares_of(path=0.5, loss=0.5), shares_of(slow_start=1.0)) == 0
    assert greatest_difference(shares_of(path=0.7, window=0.3), shares_of(path=1.0)) == pytest.approx(0.3)


SHAPED_ONE = next(case for case in SCENARIOS if case.shaper)
PLAIN = next(case for case in SCENARIOS if not case.shaper)


def test_a_row_is_right_near_or_not_known() -> None:
    true = shares_of(path=1.0)
    right, wrong = Row(PLAIN, "sender", true, true), Row(PLAIN, "tracer", true, shares_of(window=1.0))
    unknown = Row(SHAPED_ONE, "sender", true, None)
    assert (right.right, right.near, wrong.right, wrong.near) == (True, True, False, False)
    assert (unknown.right, unknown.near, unknown.difference, unknown.place) == (False, False, None, SHAPED)
    assert Row(SHAPED_ONE, "tracer", true, None).place == "tracer"
    assert ["not known" in str(row) for row in (right, wrong, unknown)] == [False, False, True]


def test_the_page_has_what_is_right_wrong_and_not_known(tmp_path: Path) -> None:
    true, claimed = shares_of(path=1.0), shares_of(window=1.0)
    rows = [Row(PLAIN, "sender", true, true), Row(PLAIN, "tracer", true, claimed), Row(PLAIN, "receiver", true, None)]
    section = limits_section(rows)
    assert "| **all** | 3 | 1 | 1 | 1 | 0.500 | 0.500 |" in section and "@" not in section
    assert list(shortfalls(rows)) == [
        "- **limits, tracer**: 0 of 1 right (wrong: `path` (path taken for window) 1); 0 near"
    ]
    page = tmp_path / "page.md"
    page.write_text("# Accuracy\n\n## Scores\n\nones\n\n## Earlier work\n\nsome\n")
    replace_section(rows, page)
    once = page.read_text()
    replace_section(rows, page)
    assert page.read_text() == once
    assert [line for line in once.splitlines() if line.startswith("## ")] == [
        "## Scores",
        "## Limits",
        "## Earlier work",
    ]
    assert limits_section([]) == ""


def test_every_kind_is_run_under_each_control_with_and_without_timestamps() -> None:
    assert len({case.name for case in SCENARIOS}) == len(SCENARIOS)
    kinds = {case.kind for case in SCENARIOS}
    assert kinds == set(COLUMNS)
    for kind in kinds:
        runs = {(case.control, bool(case.sysctl)) for case in SCENARIOS if case.kind == kind}
        assert runs == {(control, off) for control in ("cubic", "bbr", "reno") for off in (False, True)}


def test_a_draw_can_be_repeated_and_each_has_other_scenarios() -> None:
    count = 2 * len(DRAWS)
    assert draw_scenarios(1, count) == draw_scenarios(1, count) != draw_scenarios(2, count)
    assert scenarios_of(["drawn-7-"], draw=7, drawn=3) == draw_scenarios(7, 3)
    assert scenarios_of((), draw=7, drawn=0) == SCENARIOS
    drawn = [case for draw in range(20) for case in draw_scenarios(draw, count)]
    assert len({case.name for case in drawn}) == len(drawn)
    assert {(case.control, bool(case.sysctl)) for case in drawn} >= {
        (case.control, bool(case.sysctl)) for case in SCENARIOS
    }
    buffers = [case.talk.send_buffer for case in drawn if case.talk.send_buffer]
    assert buffers and min(buffers) >= LEAST_BUFFER


def test_drawn_rows_have_a_table_of_their_own() -> None:
    true, claimed = shares_of(path=1.0), shares_of(window=1.0)
    drawn = draw_scenarios(7, 1)[0]
    rows = [Row(PLAIN, "sender", true, true), Row(drawn, "sender", true, claimed), Row(drawn, "tracer", true, None)]
    before, after = limits_section(rows).split("### Drawn limits")
    assert "| **all** | 1 | 0 | 1 | 1 | 1.000 | 1.000 |" in before
    assert "| **all** | 2 | 1 | 0 | 0 | 0.000 | 0.000 |" in after and "| 7-1 | as fast as the path; " in after
    assert list(shortfalls(rows)) == [
        "- **drawn limits, sender**: 0 of 1 right (wrong: `drawn-7-1` (path taken for window) 1); 0 near"
    ]


@pytest.mark.parametrize(
    "name", ["limits-window-cubic", "limits-large-writes-reno", "limits-shaped-path-reno", "limits-send-buffer-bbr"]
)
def test_the_kernel_confirms_what_a_scenario_is_made_for(name: str, tmp_path: Path) -> None:
    needs.skip_without(missing(), needs.programs("tc"), needs.network_namespaces())
    scenario = next(case for case in scenarios_of([name], draw=1, drawn=0) if case.name == name)
    short = replace(scenario, talk=replace(scenario.talk, seconds=1.5))
    rows = score_limits([short], tmp_path, False)
    assert [row.point for row in rows] == list(POINTS)
    assert {dominant(row.true) for row in rows} == {scenario.kind}
    again = score_limits([short], tmp_path, True)
    assert [str(row) for row in again] == [str(row) for row in rows]
