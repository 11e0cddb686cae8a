# SPDX-License-Identifier: Apache-2.0
"""A run among the runs of its baseline: changes of known size, false alarms over many draws, and what is unknown."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import transfer_wires
from crafted import dns_answer, dns_query, tls_handshake, write_timed
from plain_wire import Wire
from wiretale.analyzer.diff.baseline import BASELINE, LEVEL, RUNS_LEAST, AgainstBaseline, RunMeasures, against
from wiretale.analyzer.diff.baseline_runs import FLOWS_MOST, measured_new, parts_of
from wiretale.analyzer.diff.measures import Values
from wiretale.analyzer.diff.run import Run, load_run
from wiretale.analyzer.findings.transfers import PARTS

DRAWS = 1000
# Standard errors of the share of false alarms over DRAWS draws, beyond which it is too large.
ERRORS = 3 * (LEVEL * (1 - LEVEL) / DRAWS) ** 0.5


def drawn(draw: random.Random, **changed: float) -> RunMeasures:
    """A run whose measures depend on each other, have heavy tails, are mostly zero, or are unknown in some runs."""
    common, loss = draw.gauss(0, 1), max(0.0, draw.gauss(0, 0.1))
    rtt = 20e6 * 1.05 ** (common + draw.gauss(0, 1))
    values: Values = {
        "goodput": 5e6 * 1.1 ** (draw.gauss(0, 1) - common),
        "throughput": 6e6 * 1.1 ** (draw.gauss(0, 1) - common),
        "rtt_min": rtt * 0.9,
        "rtt_median": rtt,
        "rtt_p99": rtt * (1 + draw.paretovariate(1.5)),
        "retransmissions": loss,
        "downstream_loss": loss,
        "upstream_loss": 0.0,
        "reordering": 2.0 if draw.random() < 0.1 else 0.0,
        "jitter": None if draw.random() < 0.3 else draw.expovariate(1e-6),
        "findings": float(draw.randrange(3)),
        **{name: draw.uniform(0, 30) for name in ("time_path", "time_window")},
        "bytes": 1e6,
        **changed,
    }
    return RunMeasures({None: values}, {None: 1000.0}, frozenset())


def compare(new: RunMeasures, runs: list[RunMeasures]) -> AgainstBaseline:
    return against(Run("b.pcap", "capture", {}), new, "store", runs, 10)


@pytest.mark.parametrize("count", [RUNS_LEAST, 45])
def test_false_alarms_are_as_rare_as_promised(count: int) -> None:
    draw, alarms = random.Random(count), 0
    for _ in range(DRAWS):
        runs = [drawn(draw) for _ in range(count + 1)]
        alarms += compare(runs[0], runs[1:]).verdict != "usual"
    assert alarms / DRAWS <= LEVEL + ERRORS


def test_changes_are_found_and_named() -> None:
    draw, verdicts = random.Random(1), {"rtt_median": 0, "downstream_loss": 0}
    for _ in range(100):
        runs = [drawn(draw) for _ in range(60)]
        for name, value in (("rtt_median", 60e6), ("downstream_loss", 5.0)):
            result = compare(drawn(draw, **{name: value}), runs)
            verdicts[name] += result.verdict == "worse" and any(
                unusual.measure.name == name for unusual in result.unusual
            )
    assert min(verdicts.values()) >= 80, verdicts


def test_better_and_neutral_changes_have_their_names() -> None:
    draw = random.Random(2)
    runs = [drawn(draw) for _ in range(60)]
    assert compare(drawn(draw, goodput=5e8), runs).verdict == "better"
    assert compare(drawn(draw, time_window=100_000.0), runs).verdict == "different"
    assert "different from 60 runs" in compare(drawn(draw, time_window=100_000.0), runs).sentence()


def test_a_change_too_small_to_matter_is_usual() -> None:
    """The runs are equal to 0.01%, so that a change of 1% is the farthest of all."""
    draw = random.Random(3)
    runs = [RunMeasures({None: {"goodput": 5e6 * draw.uniform(0.9999, 1.0001)}}, {}, frozenset()) for _ in range(40)]
    result = compare(RunMeasures({None: {"goodput": 5.05e6}}, {}, frozenset()), runs)
    assert result.standings[0].is_outside and result.tested[0].p == pytest.approx(1 / 41) and result.verdict == "usual"
    assert compare(RunMeasures({None: {"goodput": 4e6}}, {}, frozenset()), runs).verdict == "worse"


def test_too_few_runs_are_said_so() -> None:
    draw = random.Random(4)
    result = compare(drawn(draw, rtt_median=900e6), [drawn(draw) for _ in range(RUNS_LEAST - 1)])
    assert result.verdict is None and "18 runs, 19 are needed" in result.sentence()
    assert compare(drawn(draw), []).verdict is None


def test_unknown_measures_are_neither_0_nor_tested() -> None:
    draw = random.Random(5)
    runs = [drawn(draw) for _ in range(30)]
    for run in runs[:20]:
        run.by_service[None]["rtt_p99"] = None
    new = drawn(draw)
    new.by_service[None]["rtt_min"] = None
    standings = {standing.measure.name: standing for standing in compare(new, runs).standings}
    least, greatest = standings["rtt_min"], standings["rtt_p99"]
    assert (least.value, least.p, least.verdict, least.change.difference) == (None, None, None, None)
    assert (greatest.p, greatest.verdict, len(greatest.baseline_values)) == (None, None, 10)  # known in too few runs
    assert "dns" not in standings
    nothing = compare(RunMeasures({None: {}}, {}, frozenset()), runs)
    assert nothing.verdict is None and "no measure is known" in nothing.sentence()


def test_every_measure_of_a_capture_has_a_name(tmp_path: Path) -> None:
    """A DNS answer after 100 ms, one question without; a TLS handshake; two of four connections refused."""
    dns = write_timed(tmp_path / "dns.pcap", [dns_query(0.5), dns_answer(0.6), dns_query(0.7, number=9, port=4001)])
    values = measured_new(load_run(str(dns), keep=True)).by_service
    assert values[None]["dns"] == pytest.approx(100e6) and values["udp/53"]["dns_failed"] == 50.0
    assert values[None]["rtt_median"] is None and values[None]["handshake"] is None and values[None]["failed"] is None
    tls = write_timed(tmp_path / "tls.pcap", tls_handshake(0.3))
    services = measured_new(load_run(str(tls), keep=True)).by_service
    assert (
        services[None]["tls"]
        and services[None]["tls"] >= 300e6
        and set(services[None])
        <= set(BASELINE)
        | {
            *("spurious", "blocks_lost", "lost_upstream", "lost_downstream", "out_of_order", "fragments"),
            *("incomplete_datagrams", "zero_windows"),
        }
    )
    wire = Wire()
    for number, outcome in enumerate(("refused", "open", "refused", "open")):
        transfer_wires.probe(wire, number, "10.0.0.9", 80, outcome)
    refused = measured_new(load_run(str(wire.write(tmp_path / "refused.pcap")), keep=True)).by_service
    assert refused["tcp/80"]["failed"] == refused[None]["failed"] == 50.0


def test_parts_of_the_time_are_shares(samples: Path) -> None:
    values = measured_new(load_run(str(samples / "timeouts.pcap"), keep=True)).by_service[None]
    shares = [values[f"time_{part}"] for part in PARTS]
    assert sum(share or 0.0 for share in shares) == pytest.approx(100) and (values["time_loss"] or 0) > 10


def test_captures_are_measured_in_groups_of_bounded_size() -> None:
    captures = [(f"{number}", FLOWS_MOST // 2 + number % 2) for number in range(5)] + [("large", FLOWS_MOST * 3)]
    parts = list(parts_of(captures))
    assert [capture for part in parts for capture in part] == [capture for capture, _ in captures]
    sizes = dict(captures)
    assert all(len(part) == 1 or sum(sizes[capture] for capture in part) <= FLOWS_MOST for part in parts)
    assert list(parts_of([])) == []
