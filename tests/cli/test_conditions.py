# SPDX-License-Identifier: Apache-2.0
"""Conditions on one analysis: `analyze --fail-if`, wiretale.check(), and the plugin of pytest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import needs
import wiretale
from checkout import ROOT, SAMPLES, Run
from wiretale.analyzer.diff.trace_condition import parse_condition

LOSSES = SAMPLES / "tcp_losses.pcap"  # 2 of 210 segments lost: one in the middle, one at the end, which cost 224 ms
PAGE = ROOT / "docs" / "howto" / "fail-a-build.md"
TRACE = wiretale.analyze(LOSSES)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("lost>0", True),
        ("lost > 2", False),
        ("lost_downstream=2", True),
        ("failed>0", False),
        ("retransmissions>1%", False),
        ("retransmissions>0.9%", True),
        ("network_time>0.5s", True),
        ("server_time>0.2s", False),
        ("flow.rtt_p99>20ms", True),
        ("flow.rtt-min>=20.1ms", False),
        ("block_loss>0", None),
        ("cause.waited>200ms", True),
        ("answer.failed>0", False),
        ("cause=tail-loss", True),
        ("cause=policer", False),
        ("cause!=policer", True),
        ("answer=tail-loss", True),
        ("finding==lost-downstream", True),
        ("severity>=warning", True),
        ("severity=error", False),
        ("certainty>=proven", True),
        ("place=server", False),
    ],
)
def test_what_holds_of_a_capture(condition: str, holds: bool | None) -> None:
    checks = wiretale.check(TRACE, condition)
    assert [entry["holds"] for entry in checks.as_dict()["conditions"]] == [holds]
    assert (bool(checks.failed), bool(checks.undetermined)) == (bool(holds), holds is None)
    assert checks.passed == (holds is False) == (not checks.as_dict()["failed"])


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("speed>1", "goodput"),
        ("flow.waited>1s", "flow.waited"),
        ("path.lost>0", "flow.…"),
        ("cause>policer", "no order"),
        ("cause=none-such", "no cause"),
        ("lost>5ms", "'ms'"),
        ("flow.rtt_p99>20", "flow.rtt_p99 needs a unit: expected ns, us,"),
        ("goodput<-5%", "'%'"),
        ("server_time=long", "compared with a number"),
        ("severity>=bad", "info, warning or error"),
        ("lost", "'lost>0'"),
    ],
)
def test_wrong_conditions_are_refused(condition: str, named: str) -> None:
    with pytest.raises(wiretale.UsageError, match=re.escape(named)):
        parse_condition(condition)


def test_exit_codes_and_members_of_json(wiretale_run: Run, tmp_path: Path) -> None:
    done = wiretale_run(LOSSES, "--fail-if", "lost>1", "--fail-if", "cause=policer", "--json", "--tables", "relations")
    result = json.loads(done.stdout)
    assert (done.returncode, result["failed"]) == (1, True)
    assert [(entry["value"], entry["holds"]) for entry in result["conditions"]] == [(2, True), ("tail-loss", False)]
    screen = wiretale_run(LOSSES, "--fail-if", "lost>1", "--fail-if", "jitter>1ms")
    assert screen.returncode == 1 and screen.stdout.endswith(
        "FAILED (2)\n  jitter>1ms: undetermined, jitter is unknown\n"
    )
    assert "--fail-if jitter>1ms: undetermined" in screen.stderr
    (tmp_path / "cut.pcap").write_bytes(LOSSES.read_bytes()[:-7])
    for condition, code in (("lost>1", 1), ("lost>9", 3), ("jitter>1ms", 1)):
        quiet = wiretale_run(tmp_path / "cut.pcap", "--fail-if", condition, "-q")
        assert (quiet.returncode, quiet.stdout) == (code, "")


@pytest.mark.parametrize("condition", ["lost>0", "failed>0", "flow.rtt_p99>20ms", "cause.waited>1s", "cause=policer"])
def test_nothing_passes_without_a_packet(condition: str, tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(LOSSES.read_bytes()[:24])
    checks = wiretale.check(tmp_path / "empty.pcap", condition)
    assert not checks.passed and str(checks) == f"{condition}: undetermined, there is no packet"


def test_flows_that_are_not_listed_are_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = wiretale.analyze(SAMPLES / "tail_loss_probes.pcapng")
    assert wiretale.check(trace, "flow.rtt_p99>1h").passed
    monkeypatch.setattr("wiretale.analyzer.diff.run.FLOWS_MAX", 1)
    assert wiretale.check(trace, "flow.rtt_p99>1h").undetermined
    assert wiretale.check(trace, "flow.rtt_p99>0").failed


def test_a_conversation_at_two_places_counts_once() -> None:
    trace = wiretale.analyze(SAMPLES / "findings" / "several-places.pcap.gz")
    assert trace.transfers.legs
    flows = len(trace.flows) - len(trace.transfers.legs)
    assert wiretale.check(trace, f"flows={flows}").failed


CAPTURING = needs.first(needs.root(), needs.programs("ip"), needs.network_namespaces())


@pytest.mark.skipif(CAPTURING is not None, reason=str(CAPTURING))
@pytest.mark.skipif(not PAGE.exists(), reason="no docs beside the tests")
def test_the_plugin_records_a_test(tmp_path: Path) -> None:
    """The test of the page passes; one that nobody answers fails, and its report has the answer."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    refused = """
def test_refused(capture):
    traffic = capture("lo", filter="tcp port 9")
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", 9))
    traffic.fail_if("failed>0")

def test_idle(capture):
    capture("lo", filter="tcp port 9").assert_no_loss()

def test_misspelt(capture):
    capture("lo", filter="tcp prot 9")
"""
    (tmp_path / "test_page.py").write_text(code + refused)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", "made", "test_page.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "3 failed, 1 passed" in done.stdout, done.stdout
    assert "AssertionError: failed>0: FAILED (1)" in done.stdout and "no packet was captured" in done.stdout
    assert "UsageError: wiretale-capture: lo: the filter: can't parse" in done.stdout
    section = done.stdout.partition("- wiretale -")[2]
    assert "127.0.0.1:9" in section and "\nframe 2\n" in section and "capture-0.pcapng" in section
