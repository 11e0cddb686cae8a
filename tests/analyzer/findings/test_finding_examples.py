# SPDX-License-Identifier: Apache-2.0
"""Every finding has an example of a named capture; the captures are made by their script and are small."""

from __future__ import annotations

import gzip
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import finding_captures
import wiretale
from checkout import ROOT, SAMPLES
from wiretale.analyzer.findings.cost import NOTE_SHARE
from wiretale.analyzer.findings.model import Finding, fill
from wiretale.analyzer.findings.registry import RULES, concern_of, example_of, judged
from wiretale.reports.phrases import cost_text

FILES = sorted((SAMPLES / "findings").iterdir())
ROWS_FULL = set(finding_captures.HUGE)  # tables of 4 million rows
#: a quantity of bytes or bit/s, and the words that name its layer within the reach of an eye
QUANTITY = re.compile(r"(?<![\w.])\d[\d,.]* (?:[kKMGT]i?B|B|[kMGT]?bit/s|bytes?)\b")
LAYER = re.compile(r"\b(?:captured|frames?|wire|IP|payload|goodput|Ethernet|a port of 1 Gbit/s)\b")
REACH = 70
UNLAYERED = {"loss-limited-window"}  # the formula of Mathis has no layer
#: a place in a file, the MTU, an RFC's bound of the MSS
NO_TRAFFIC = re.compile(r"at byte|MTU|snap length|MSS|\(Ethernet allows|-s 128|at least 128 bytes per packet")


@pytest.fixture(scope="module")
def maker() -> Any:
    """.ci/finding_examples.py."""
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        return importlib.import_module("finding_examples")
    finally:
        sys.path.remove(str(ROOT / ".ci"))


def unlayered(text: str) -> Iterator[str]:
    """Quantities of traffic without a layer."""
    for quantity in QUANTITY.finditer(text):
        around = text[max(quantity.start() - REACH, 0) : quantity.end() + REACH]
        if not LAYER.search(around) and not NO_TRAFFIC.search(around):
            yield around


def texts(finding: Finding) -> Iterator[str]:
    row = finding._asdict()
    yield from (row[name] for name in ("sentence", "headline", "advice", "figures") if row[name])
    yield cost_text(row)


def test_every_finding_has_an_example() -> None:
    assert {code for code in RULES if example_of(code) is None} == set()


@pytest.mark.parametrize(("code", "table"), [("blocks-dropped", "blocks")])
def test_a_huge_capture_fills_the_table_that_its_recorded_sentence_names(code: str, table: str, tmp_path: Path) -> None:
    trace = wiretale.analyze(finding_captures.write_huge(tmp_path / "huge.pcap", code, 2000))
    assert len(trace.table(table)) == 2000 and code not in trace.findings.column("code")
    example = example_of(code)
    assert example and example["sentence"] == fill(RULES[code].sentence, {"count": 1000})


def test_examples_name_files_that_exist() -> None:
    named = {
        path
        for code in RULES
        if (example := example_of(code))
        for path in re.findall(r"`(\w+/[^`]*)`", example["capture"])
    }
    assert len(named) > 50 and all((ROOT / path).is_file() for path in named)
    assert {f"sample_pcaps/findings/{file.name}" for file in FILES} <= named


@pytest.mark.parametrize("code", finding_captures.CAPTURES)
def test_the_capture_of_an_example_is_made_byte_for_byte(code: str) -> None:
    file = SAMPLES / "findings" / f"{code}.pcap.gz"
    assert gzip.decompress(file.read_bytes()) == gzip.decompress(finding_captures.packed(code))


def test_captures_of_examples_are_small() -> None:
    assert max(file.stat().st_size for file in FILES) <= 200_000
    assert sum(file.stat().st_size for file in FILES) <= 1_000_000
    assert {file.name.removesuffix(".pcap.gz") for file in FILES} == set(finding_captures.CAPTURES)


@pytest.mark.parametrize("code", sorted(set(RULES) - ROWS_FULL))
def test_an_example_follows_from_its_capture(maker: Any, code: str) -> None:
    findings = maker.findings_of(code)
    assert example_of(code) == maker.example_of(code)
    lines = [text for item in findings if item.code not in UNLAYERED for text in texts(item)]
    assert [text for item in lines for text in unlayered(item)] == []


@pytest.mark.parametrize("code", sorted(set(RULES) - ROWS_FULL - {"interrupted", *finding_captures.LARGE}))
def test_little_costs_are_no_warnings(maker: Any, code: str, tmp_path: Path) -> None:
    transfers = maker.trace_of(code, tmp_path).transfers
    for finding in maker.findings_of(code):
        page = RULES[finding.code]
        if finding.flow is None or finding.cost is None or page.weakens or page.delays:
            continue
        concern = concern_of(transfers, finding.flow)
        share = concern.share(finding.cost, finding.cost_unit)
        assert share is None or share >= NOTE_SHARE or finding.severity == "info"
        if finding.cost_unit == "seconds" and concern.duration_ns:
            assert finding.cost <= 1.001 * concern.duration_ns / 1e9  # no advice saves more than all the time


@pytest.mark.parametrize(("share", "severity"), [(0.009, "info"), (0.011, "warning")])
def test_bytes_of_several_flows_are_compared_with_the_trace(share: float, severity: str) -> None:
    transfers = wiretale.analyze(SAMPLES / "udp_fragments.pcap").transfers
    fields = ("loss-amplified", "warning", "datagrams", None, None, "", "", "")
    costly = Finding(*fields, cost=share * transfers.wire_bytes, cost_unit="bytes")
    assert judged(transfers, RULES["loss-amplified"], costly).finding.severity == severity


def test_a_quantity_without_its_layer_is_found() -> None:
    assert [*unlayered("it carried 5.79 kB in 3 s")] and [*unlayered("at 3 Mbit/s")]
    assert not [*unlayered("it carried 5.79 kB of payload at a goodput of 3 Mbit/s")]
