# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: measures, flows that belong together, findings that came and went, thresholds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scapy.all import wrpcap

from checkout import Run as Runner
from talk import ENDS, Talk
from wiretale.analyzer.diff.difference import Change, diff_runs
from wiretale.analyzer.diff.fail_condition import parse_condition
from wiretale.analyzer.diff.measures import MEASURES
from wiretale.analyzer.diff.run import load_run
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.trace import analyze

Write = Callable[..., Path]


def transfer(
    count: int = 40,
    lost: frozenset[int] = frozenset(),
    rtt: float = 20.0,
    gap: float = 2.0,
    client: int = 40000,
    address: str = "10.0.0.1",
) -> Talk:
    """Segments and their acknowledgments at the sender; those lost are retransmitted after three duplicate ACKs."""
    talk = Talk(ends=((address, client), ENDS[1])).open(rtt)
    for n in range(count):
        talk.data(30 + n * gap, n * 1000)
    missing = min(lost, default=None)
    for n in range(count):
        if n in lost:
            continue
        upto = n + 1 if missing is None or n < missing else missing
        sack = [] if upto == n + 1 else [((missing or 0) * 1000 + 1000, (n + 1) * 1000)]
        talk.ack(30 + n * gap + rtt, upto * 1000, *sack)
    end = 30 + count * gap + rtt
    for n in sorted(lost):
        talk.data(end + 1, n * 1000)
    if lost:
        talk.ack(end + 1 + rtt, count * 1000)
    return talk


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, *talks: Talk) -> Path:
        path = tmp_path / name
        wrpcap(str(path), sorted((p for talk in talks for p in talk.packets), key=lambda p: float(p.time)))
        return path

    return make


def change(difference: Any, name: str) -> Any:
    return next(candidate for candidate in difference.changes if candidate.measure.name == name)


def test_a_run_is_the_same_as_itself(write: Write) -> None:
    path = write("a.pcap", transfer())
    difference = diff_runs(load_run(str(path)), load_run(str(path)))
    assert difference.most_changed(5) == [] and difference.appeared == [] and difference.gone == []
    assert {candidate.verdict for candidate in difference.changes} == {"same"}
    assert [pair.evidence for pair in difference.flows] == ["ends"]


def test_losses_and_round_trips_are_measured(write: Write) -> None:
    before = load_run(str(write("a.pcap", transfer())))
    after = load_run(str(write("b.pcap", transfer(lost=frozenset({10}), rtt=40.0))))
    difference = diff_runs(before, after)
    sent_again = change(difference, "retransmissions")
    assert sent_again.before == 0 and sent_again.after == pytest.approx(100 / 41)
    assert sent_again.percent == float("inf") and sent_again.verdict == "worse"
    assert change(difference, "lost_downstream").difference == 1
    median = change(difference, "rtt_median")
    assert (median.before, median.after) == (pytest.approx(20e6, rel=0.02), pytest.approx(40e6, rel=0.02))
    assert change(difference, "packets").difference == 1  # one more segment, one acknowledgment less and one more


@pytest.mark.parametrize(
    ("after", "verdict", "word"),
    [(999_995.0, "same", ""), (998_000.0, "worse", ""), (1_002_000.0, "better", ""), (980_000.0, "worse", "worse")],
)
def test_a_change_that_rounds_to_nothing_is_none_and_a_small_one_has_no_word(
    after: float, verdict: str, word: str
) -> None:
    change = Change(MEASURES["goodput"], 1_000_000.0, after)
    assert (change.verdict, change.word) == (verdict, word)


def test_goodput_is_payload_over_time(write: Write) -> None:
    before = load_run(str(write("a.pcap", transfer(count=100, gap=1.0))))
    after = load_run(str(write("b.pcap", transfer(count=100, gap=2.0))))
    goodput = change(diff_runs(before, after), "goodput")
    # The direction's time is from the SYN to its last segment: 30 + 99 ms, and 30 + 198 ms.
    assert goodput.before == pytest.approx(100_000 * 8 / 0.150, rel=0.2)
    assert goodput.percent == pytest.approx(-42, abs=5) and goodput.verdict == "worse"


def test_flows_find_their_partners_by_ends_then_by_rank(write: Write) -> None:
    before = write(
        "a.pcap",
        transfer(20, client=1111),
        transfer(60, client=2222),
        transfer(30, client=5),
    )
    after = write(
        "b.pcap",
        transfer(25, client=3333),
        transfer(70, client=4444),
        transfer(10, client=5),
    )
    pairs = diff_runs(load_run(str(before)), load_run(str(after))).flows
    partners = {
        (p.before.label.split()[1], p.after.label.split()[1], p.evidence) for p in pairs if p.before and p.after
    }
    assert partners == {
        ("10.0.0.1:5", "10.0.0.1:5", "ends"),
        ("10.0.0.1:2222", "10.0.0.1:4444", "service"),
        ("10.0.0.1:1111", "10.0.0.1:3333", "service"),
    }


def test_a_flow_without_partner_is_reported(write: Write) -> None:
    before, after = write("a.pcap", transfer()), write("b.pcap", transfer(), transfer(5, client=77, address="10.0.0.9"))
    pairs = diff_runs(load_run(str(before)), load_run(str(after))).flows
    assert [(p.before is None, p.after.label.split()[1]) for p in pairs if not p.evidence and p.after] == [
        (True, "10.0.0.9:77")
    ]


def test_findings_come_and_go(write: Write) -> None:
    before = load_run(str(write("a.pcap", transfer())))
    after = load_run(str(write("b.pcap", transfer(lost=frozenset({10})))))
    difference = diff_runs(before, after)
    assert difference.appeared and not difference.gone
    turned = diff_runs(after, before)
    assert turned.gone == difference.appeared and not turned.appeared


def test_tables_of_an_analysis_measure_the_same(write: Write, tmp_path: Path) -> None:
    path = write("a.pcap", transfer(lost=frozenset({10})))
    tables = analyze(str(path)).write(tmp_path / "a.wiretale")
    difference = diff_runs(load_run(str(path)), load_run(str(tables)))
    assert (difference.before.kind, difference.after.kind) == ("capture", "tables")
    assert difference.most_changed(5) == [] and [pair.evidence for pair in difference.flows] == ["ends"]


def report(path: Path, received: int, mbit: float, **more: Any) -> Path:
    came = {"blocks_received": received, "blocks_lost": 1000 - received, "bytes_received": 1000 * received}
    result = {
        "schema": "wiretale.send/1",
        "test": {"run": 1, "protocol": "udp", "direction": "forward", "sizes": [1000], "port": 5001},
        "sender": {"blocks_sent": 1000, "rate_mbit_s": 10.0, "elapsed_s": 2.0},
        "receiver": {**came, "rate_mbit_s": mbit, "elapsed_s": 2.0, "jitter_ns": 20_000, **more},
    }
    path.write_text(json.dumps(result))
    return path


def test_reports_of_the_generator_are_compared(tmp_path: Path) -> None:
    before, after = report(tmp_path / "a.json", 1000, 9.0), report(tmp_path / "b.json", 900, 8.1, host_dropped=60)
    difference = diff_runs(load_run(str(before)), load_run(str(after)))
    assert change(difference, "goodput").percent == pytest.approx(-10)
    assert change(difference, "block_loss").difference == pytest.approx(10)
    assert change(difference, "host_dropped").difference is None  # unknown in the first run
    assert [pair.evidence for pair in difference.flows] == ["ends"]


def test_tests_of_an_experiment_are_paired_by_name(tmp_path: Path) -> None:
    folders = []
    for name, received in (("a", 1000), ("b", 950)):
        raw = tmp_path / name / "raw"
        raw.mkdir(parents=True)
        (tmp_path / name / "experiment.json").write_text(json.dumps({"schema": "wiretale.experiment/1"}))
        for test in ("udp-small", "udp-large"):
            got = json.loads(report(tmp_path / "x.json", received if test == "udp-large" else 1000, 9.0).read_text())
            (raw / f"{test}.json").write_text(json.dumps({"test": {"name": test}, "sessions": [{"report": got}]}))
        folders.append(str(tmp_path / name))
    difference = diff_runs(load_run(folders[0]), load_run(folders[1]))
    assert {(p.before.label, p.after.label) for p in difference.flows if p.before and p.after} == {
        ("udp-small", "udp-small"),
        ("udp-large", "udp-large"),
    }
    assert change(difference, "blocks_lost").difference == 50


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("goodput<-5%", True),
        ("goodput < -15%", False),
        ("goodput<=-10%", True),
        ("goodput<-0.8Mbit", True),
        ("goodput<-1Mbit/s", False),
        ("goodput>-1Mbps", True),
        ("block_loss>9", True),
        ("block-loss>11", False),
        ("blocks_lost==100", True),
        ("blocks_lost!=100", False),
        ("jitter>0", False),
        ("jitter>=0us", True),
        ("rtt_p99>5ms", None),
    ],
)
def test_thresholds_hold_as_they_say(tmp_path: Path, text: str, holds: bool | None) -> None:
    before, after = report(tmp_path / "a.json", 1000, 9.0), report(tmp_path / "b.json", 900, 8.1)
    assert parse_condition(text).holds(diff_runs(load_run(str(before)), load_run(str(after)))) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "goodput",
        "goodput<",
        "goodput~5%",
        "speed<5%",
        "goodput<5ms",
        "rtt_p99>5",
        "rtt_p99>5Mbit",
        "goodput<5%%",
        "<5%",
        "goodput<abc",
    ],
)
def test_wrong_thresholds_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-if"):
        parse_condition(text)


def test_exit_codes_serve_scripts(write: Write, wiretale_run: Runner, tmp_path: Path) -> None:
    a, b = write("a.pcap", transfer()), write("b.pcap", transfer(lost=frozenset({10})))
    assert wiretale_run("diff", a, b).returncode == 0
    failed = wiretale_run("diff", a, b, "--fail-if", "goodput<-90%", "--fail-if", "retransmissions>1")
    assert failed.returncode == 1 and "FAILED" in failed.stdout
    unknown = wiretale_run("diff", a, b, "--fail-if", "jitter>1ms", "--json")
    assert unknown.returncode == 1 and json.loads(unknown.stdout)["failed"] and "undetermined" in unknown.stderr
    wrong = wiretale_run("diff", a, b, "--fail-if", "speed<1")
    assert wrong.returncode == 2 and "goodput, throughput" in wrong.stderr and wrong.stderr.count("\n") == 1
    assert wiretale_run("diff", a, tmp_path / "none.pcap").returncode == 4
    (tmp_path / "text.json").write_text("{not json")
    assert wiretale_run("diff", a, tmp_path / "text.json").returncode == 4
    content = a.read_bytes()
    (tmp_path / "cut.pcap").write_bytes(content[:-7])
    assert wiretale_run("diff", a, tmp_path / "cut.pcap").returncode == 3


def test_json_is_one_object_with_the_same_exit_code(write: Write, wiretale_run: Runner) -> None:
    a, b = write("a.pcap", transfer()), write("b.pcap", transfer(lost=frozenset({10})))
    done = wiretale_run("diff", a, b, "--json", "--fail-if", "retransmissions>1")
    result = json.loads(done.stdout)
    assert (done.returncode, result["schema"], result["failed"]) == (1, "wiretale.diff/2", True)
    measures = {row["measure"]: row for row in result["measures"]}
    assert measures["retransmissions"]["change_percent"] is None  # from 0
    assert result["conditions"][0]["holds"] is True
    assert result["flows"][0]["matched_by"] == "ends" and result["findings_appeared"]


def test_a_mirror_port_changes_neither_rates_nor_shares(write: Write) -> None:
    talk = transfer(lost=frozenset({10}))
    once = load_run(str(write("once.pcap", talk)))
    copies = [packet.copy() for packet in talk.packets]
    for packet, copied in zip(talk.packets, copies, strict=True):
        copied.time = packet.time + 2e-6
    talk.packets.extend(copies)
    twice = load_run(str(write("twice.pcap", talk)))
    assert twice.total["packets"] == 2 * (once.total["packets"] or 0)
    assert twice.total["bytes"] == once.total["bytes"] == 41_000  # 40 segments, one of them twice
    for name in ("throughput", "goodput", "retransmissions"):
        assert twice.total[name] == pytest.approx(once.total[name], rel=1e-3)


def test_the_verdict_comes_first_with_both_rates_in_one_unit(write: Write, wiretale_run: Runner) -> None:
    """100 segments of 1,000 bytes take 129 ms and 228 ms."""
    fast, slow = write("a.pcap", transfer(count=100, gap=1.0)), write("b.pcap", transfer(count=100, gap=2.0))
    difference = diff_runs(load_run(str(fast)), load_run(str(slow)))
    rates = [change(difference, "goodput").before / 1e6, change(difference, "goodput").after / 1e6]
    percent = 100 * (1 - rates[1] / rates[0])
    verdict = f"B is slower: goodput {rates[1]:.2f} against {rates[0]:.2f} Mbit/s, −{percent:.1f}%."
    lines = wiretale_run("diff", fast, slow).stdout.splitlines()
    assert lines[0] == verdict
    assert [line.split()[0] for line in lines if line.startswith(("A  ", "B  "))] == ["A", "B"]
    result = json.loads(wiretale_run("diff", fast, slow, "--json").stdout)
    assert result["b"]["answer"] == analyze(slow).answer.sentence and result["b"]["answer"] in " ".join(
        line.strip() for line in lines
    )
    assert result["sentence"] == verdict and result["verdict"] == "slower"
    assert diff_runs(load_run(str(slow)), load_run(str(fast))).verdict == "faster"
    same = wiretale_run("diff", fast, fast).stdout.splitlines()
    assert same[0] == f"B is as fast as A: goodput {rates[0]:.2f} Mbit/s in both." and "Time by limit" not in same


def test_the_verdict_says_if_the_runs_carried_different_payload(write: Write) -> None:
    long, short = write("a.pcap", transfer(count=100, gap=1.0)), write("b.pcap", transfer(count=40, gap=100.0))
    sentence = diff_runs(load_run(str(long)), load_run(str(short))).sentence()
    assert sentence.endswith(
        " The runs carried different payload, 40 kB against 100 kB: compare rates and shares, not counts and sums."
    )
    other = diff_runs(load_run(str(short)), load_run(str(long))).sentence()
    assert other.startswith("B is faster: goodput ") and " times as much. The runs carried" in other


def test_times_and_findings_that_changed_are_ordered_by_cost(samples: Path, wiretale_run: Runner) -> None:
    clean, lossy = samples / "window_full.pcap", samples / "timeouts.pcap"
    result = json.loads(wiretale_run("diff", clean, lossy, "--json").stdout)
    changes = [abs(entry["change_seconds"]) for entry in result["times"]]
    assert changes and changes == sorted(changes, reverse=True)
    (loss,) = [entry for entry in result["times"] if entry["part"] == "loss"]
    truth = sum(row or 0 for row in analyze(lossy).flows.column("time_loss_ns")) / 1e9
    assert loss["b_seconds"] == pytest.approx(truth) and truth > 0.2
    seconds = [entry for entry in result["findings"] if entry["cost_unit"] == "seconds"]
    costs = [abs(entry["change"]) for entry in seconds]
    assert costs == sorted(costs, reverse=True) and costs[0] > 0
    assert result["findings"][: len(seconds)] == seconds
    stalls = next(entry for entry in seconds if entry["code"] == "timeout-stalls")
    assert (stalls["a_count"], stalls["a_cost"]) == (0, 0) and stalls["b_cost"] == stalls["change"]


def test_the_screen_of_diff_is_short_and_all_is_asked_for(samples: Path, wiretale_run: Runner) -> None:
    clean, lossy = samples / "window_full.pcap", samples / "timeouts.pcap"
    screen, text = (wiretale_run("diff", clean, lossy, *words).stdout for words in ((), ("--all",)))
    assert len(screen.splitlines()) <= 24 and "\nNew " in screen and "timeout-stalls (" in screen
    assert screen.splitlines()[-1].endswith("--all") and "In total" not in screen
    assert wiretale_run("diff", clean, lossy, "--flows", "10").stdout == text
    assert (
        text.index("B is ") < text.index("Where the time went") < text.index("Findings that") < text.index("In total")
    )
    assert "+ timeout-stalls  " in text


def test_two_runs_without_goodput_have_no_verdict(tmp_path: Path, wiretale_run: Runner) -> None:
    first = report(tmp_path / "a.json", 900, 9.0)
    second = report(tmp_path / "b.json", 900, 9.0)
    for path in (first, second):
        record = json.loads(path.read_text())
        del record["receiver"]["rate_mbit_s"], record["sender"]["rate_mbit_s"]
        path.write_text(json.dumps(record))
    done = wiretale_run("diff", first, second)
    assert "Which run is slower cannot be determined" in done.stdout
    assert json.loads(wiretale_run("diff", first, second, "--json").stdout)["verdict"] is None


def test_a_change_that_is_unknown_is_not_called_equal(samples: Path, wiretale_run: Runner) -> None:
    """UDP has no round trips, so that the first run has no RTT."""
    lines = wiretale_run(
        "diff", samples / "ip_fragments.pcap", samples / "tail_loss_probes.pcapng", "--all"
    ).stdout.splitlines()
    cells = dict(re.split(r" {2,}", line.strip(), maxsplit=1) for line in lines if re.match(r"  \S.*\S {2,}\S", line))
    assert cells["RTT min"].split() == ["–", "20", "ms", "–"]
    assert cells["flows"].split() == ["2", "2", "="]
    assert "out of order" not in cells  # 0 in both
