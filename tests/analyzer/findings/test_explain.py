# SPDX-License-Identifier: Apache-2.0
"""wiretale explain: the command, its pages, and the registry behind them."""

from __future__ import annotations

import json
import re
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import wiretale
from checkout import CAPTURES, ROOT, SCENARIOS, Run
from plain_wire import SYN, Connection, Wire
from processes import refusal
from sample_sets import FEW_SAMPLES
from wiretale.analyzer import findings
from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings import registry
from wiretale.analyzer.findings.explain import explain
from wiretale.analyzer.findings.transfers import TIMES
from wiretale.analyzer.rows import FindingRow
from wiretale.reports.terminal.explain import explain_parts

FIELDS = {*FindingRow.__annotations__, "evidence", "frames", "flows"}


def test_each_code_is_defined_once() -> None:
    text = "".join(path.read_text() for path in Path(findings.__path__[0]).rglob("*.py"))
    assert sorted(re.findall(r'^    code="([a-z-]+)",$', text, re.MULTILINE)) == sorted(registry.RULES)
    assert set(registry.LAST) <= set(registry.RULES)


def test_each_rule_has_a_page() -> None:
    for rule in registry.RULES.values():
        assert all((rule.title, rule.severity, rule.computed, rule.unknown, rule.sentence, rule.advice)), rule.code


def test_findings_of_the_capture_name_the_results_in_doubt() -> None:
    for page in registry.CHAPTERS["The capture itself"]:
        assert page.weakens, page.code


def test_docs_are_up_to_date() -> None:
    made = (ROOT / "docs" / "findings.md").read_text()
    for page in registry.RULES.values():
        assert f"### {page.code}\n" in made and page.computed in made and page.unknown in made


def test_every_code_is_shown_by_a_test_or_a_sample() -> None:
    text = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    seen = {code for path in CAPTURES for code in wiretale.analyze(path).findings.column("code")}
    for path in SCENARIOS.rglob("*.txt"):
        seen.update(
            *(
                line.split()[2:]
                for line in path.read_text().splitlines()
                if line.startswith(("findings.code =", "findings.code has"))
            )
        )
    assert {code for code in registry.RULES if f'"{code}"' not in text} - seen == set()


def test_a_page_that_is_none() -> None:
    with pytest.raises(UsageError, match="lost-upstream"):
        registry.page_of("lost-sideways")


def test_findings_are_ranked_by_severity_then_time_lost() -> None:
    trace = wiretale.analyze(ROOT / "sample_pcaps" / "timeouts.pcap")
    ranked = sorted(registry.collapse(registry.every_finding(trace.transfers)), key=registry.rank)
    assert [row["sentence"] for row in trace.findings.rows()] == [entry.finding.sentence for entry in ranked]
    assert [row["severity"] for row in trace.findings.rows()] == sorted(
        trace.findings.column("severity"), key=registry.SEVERITIES.index
    )
    assert len({entry.finding.impact for entry in ranked}) > 3


def test_json_has_headlines_and_ranks(wiretale_run: Run, samples: Path) -> None:
    done = wiretale_run("analyze", samples / "zero_window.pcap", "--json", "--link", "100M")
    result = json.loads(done.stdout)
    assert done.returncode == 0 and result["schema"] == "wiretale.explain/2"
    assert [set(row) for row in result["findings"]] == [FIELDS] * len(result["findings"])
    assert [row["finding"] for row in result["findings"]] == list(range(1, len(result["findings"]) + 1))
    first = result["transfers"][0]
    assert first["limited_by"] == "window" and first["share"] > 0.9
    assert first["headline"].startswith("waited for the receive window for 9")
    assert sum(limit["share"] for limit in first["times"].values()) == pytest.approx(1)
    assert list(first["times"]) == list(TIMES)
    assert first["maximum_bps"] == pytest.approx(94.15e6, rel=0.01)


def test_json_has_the_answer_and_the_numbers_of_the_table(wiretale_run: Run, samples: Path) -> None:
    lines = wiretale_run("analyze", samples / "timeouts.pcap", "--top", "10").stdout.splitlines()
    result = json.loads(wiretale_run("analyze", samples / "timeouts.pcap", "--all", "--json").stdout)
    every = result["findings"]
    assert result["answer"]["sentence"] and " ".join(lines).startswith(result["answer"]["sentence"])
    assert {(int(number), code) for number, code in re.findall(r"[✖▲•] (\d+) ([a-z-]+)", "\n".join(lines))} == {
        (row["finding"], row["code"]) for row in every[:10]
    }
    code = every[2]["code"]
    for named, expected in ((code, [row for row in every if row["code"] == code]), ("2", every[1:2])):
        chosen = json.loads(wiretale_run("analyze", samples / "timeouts.pcap", "--json", "--finding", named).stdout)
        assert chosen["findings"] == expected


def test_the_analysis_has_the_same_findings(wiretale_run: Run, samples: Path) -> None:
    result = json.loads(wiretale_run("analyze", samples / "tcp_losses.pcap", "--all", "--json").stdout)
    analyzed = json.loads(wiretale_run("analyze", samples / "tcp_losses.pcap", "--json").stdout)
    assert [row["code"] for row in result["findings"]] == [row["code"] for row in analyzed["findings"]]


def test_all_shares_of_a_transfer_are_of_the_same_time(wiretale_run: Run, samples: Path) -> None:
    result = json.loads(wiretale_run("analyze", samples / "tcp_losses.pcap", "--all", "--json").stdout)
    times, waited = result["transfers"][0]["times"], result["transfers"][0]["waited_seconds"]
    assert sum(share["seconds"] for share in times.values()) == pytest.approx(waited)
    shares = {
        row["code"]: float(row["sentence"].split("% of transfer time")[0].split()[-1].strip("("))
        for row in result["findings"]
        if row["code"] in ("timeout-stalls", "recovery-limited")
    }
    for code, name in (("timeout-stalls", "timeout"), ("recovery-limited", "loss")):
        assert shares[code] == pytest.approx(100 * times[name]["share"], abs=0.06)


def test_silence_that_may_be_a_timeout_is_not_blamed_on_the_application(wiretale_run: Run, samples: Path) -> None:
    result = json.loads(wiretale_run("analyze", samples / "lost_tail.pcap", "--all", "--json").stdout)
    assert [row["code"] for row in result["findings"]][:2] == ["timeout-stalls", "suspected-timeout"]
    assert "in 1 suspected RTO: " in result["findings"][0]["sentence"]
    assert result["transfers"][0]["headline"].startswith("stalled in suspected RTOs for ")


def test_retransmitted_bytes_add_up(samples: Path) -> None:
    for sample in CAPTURES:
        for row in wiretale.analyze(sample).findings.rows():
            result = re.search(r"lost (\d+) .*\(retransmitted: ([^)]*)\)", row["sentence"])
            if result:
                assert int(result[1]) == sum(map(int, re.findall(r"\d+", result[2]))), row["sentence"]


@FEW_SAMPLES
@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_every_sample_is_explained_at_any_width(wiretale_run: Run, sample: Path, columns: str) -> None:
    done = wiretale_run("analyze", sample, "--all", env={"COLUMNS": columns})
    assert done.returncode in (0, 3) and "\x1b" not in done.stdout
    words = [line for line in done.stdout.splitlines() if " " in line.strip()]
    assert max(map(len, words), default=0) <= int(columns)
    for code in wiretale.analyze(sample).findings.column("code"):
        assert code in done.stdout


@pytest.mark.parametrize(("no_color", "mark"), [("", "█"), ("1", "wwww")])
def test_bars_need_no_color(monkeypatch: pytest.MonkeyPatch, samples: Path, no_color: str, mark: str) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    trace = wiretale.analyze(samples / "zero_window.pcap")
    console = Console(file=StringIO(), force_terminal=True, width=80, color_system="standard")
    for part in explain_parts(trace, explain(trace), trace.findings.rows(), [], console):
        console.print(part)
    assert isinstance(console.file, StringIO) and mark in console.file.getvalue()


def test_a_healthy_capture_says_so(wiretale_run: Run, samples: Path) -> None:
    assert "lost nothing" in wiretale_run("analyze", samples / "keep_alives.pcapng").stdout


def test_pages_and_list(wiretale_run: Run) -> None:
    page = wiretale_run("analyze", "--finding", "bufferbloat").stdout
    assert "How it is computed" in page and "Limits" in page
    assert json.loads(wiretale_run("analyze", "--finding", "offload", "--json").stdout)["weakens"]
    listed = wiretale_run("analyze", "--list").stdout
    assert all(code in listed for code in registry.RULES)
    result = json.loads(wiretale_run("analyze", "--list", "--json").stdout)
    assert result["schema"] == "wiretale.finding-codes/1"
    assert {row["code"] for row in result["findings"]} == set(registry.RULES)


def test_findings_can_be_chosen(wiretale_run: Run, samples: Path) -> None:
    explained = json.loads(
        wiretale_run("analyze", samples / "timeouts.pcap", "--finding", "lost-downstream", "--json").stdout
    )
    assert {row["code"] for row in explained["findings"]} == {"lost-downstream"}
    top = wiretale_run("analyze", samples / "timeouts.pcap", "--top", "1")
    assert top.stdout.count("Stalled in retransmission timeouts") == 1 and "more findings (--all)" in top.stdout


def test_ten_findings_are_shown_and_the_rest_is_summed_by_kind(wiretale_run: Run, tmp_path: Path) -> None:
    wire = Wire()
    for port in range(12):  # on each of 6 connections a zero window and a loss
        talk = Connection(wire, 40000 + port).open(port)
        talk.data(100, 0).ack(120, 1460, window=0).ack(220, 1460).data(230, 1460).data(500, 1460).ack(520, 2920)
    file = str(wire.write(tmp_path / "a.pcap"))
    few, every = (wiretale_run("analyze", file, *words) for words in (("--top", "10"), ("--all",)))
    all_findings = json.loads(wiretale_run("analyze", file, "--all", "--json").stdout)["findings"]
    assert len(all_findings) > 10 and few.stdout.count("▲") + few.stdout.count("•") == 10
    assert f"{len(all_findings) - 10} more finding" in few.stdout
    left = Counter(row["code"] for row in all_findings[10:])
    for code, count in left.items():
        assert re.search(rf"{count} +{code} ", few.stdout), code
    assert every.stdout.count("▲") + every.stdout.count("•") == len(all_findings) and "more finding" not in every.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--list", "x.pcap"],
        ["--finding", "no-such"],
        ["x.pcap", "--link", "fast"],
        ["x.pcap", "--top", "0"],
        ["x.pcap", "--cause", "tail-loss", "--all"],
        ["x.pcap", "--cause", "tail-loss", "--top", "2"],
        ["x.pcap", "--cause", "tail-loss", "--link", "1G"],
    ],
)
def test_wrong_usage_is_one_line(wiretale_run: Run, arguments: list[str]) -> None:
    refusal(wiretale_run("analyze", *arguments))


def test_a_damaged_file_is_explained_with_exit_code_3(wiretale_run: Run, samples: Path) -> None:
    done = wiretale_run("analyze", samples / "damaged.pcap", "--all")
    assert done.returncode == 3 and "capture-damaged" in done.stdout and "affects" in done.stdout


def test_goodput_is_drawn_against_the_link(tmp_path: Path) -> None:
    talk = Connection(Wire()).open()
    for i in range(500):
        talk.data(30 + i * 2, i * 1460).ack(50 + i * 2, (i + 1) * 1460)
    trace = wiretale.analyze(talk.wire.write(tmp_path / "wire.pcap"))
    result = explain(trace, link_bps=10**7)[0]
    assert result.maximum_bps == pytest.approx(1e7 * 1460 / 1538) and result.used == pytest.approx(0.6, abs=0.02)
    assert explain(trace)[0].used is None


def test_a_capture_without_a_transfer_has_no_heading_of_transfers(wiretale_run: Run, tmp_path: Path) -> None:
    """Three SYNs without an answer carry no data."""
    talk = Connection(Wire())
    for second in (0, 1, 3):
        talk.send(1000 * second, 0, -1, flags=SYN, ack=0)
    text = wiretale_run("analyze", talk.wire.write(tmp_path / "syn.pcap"), "--all").stdout
    assert "syn-unanswered" in text and "Other flows" in text and "Transfers" not in text
