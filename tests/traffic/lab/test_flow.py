# SPDX-License-Identifier: Apache-2.0
"""Figures of a flow from two captures, against captures whose every time is computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ideal_link import INTERVAL_NS, MS, START_NS, ideal_link, lab_row, measured, write_capture
from wiretale.analyzer.errors import WiretaleError
from wiretale.reports.html.experiment.lab import render
from wiretale.traffic.lab.flow import measure_flow
from wiretale.traffic.lab.study import disturbances


def test_the_narrow_link_is_measured_as_it_was_published(tmp_path: Path) -> None:
    totals = measured(tmp_path, 2352, INTERVAL_NS, 8 * MS, 10 * MS, 20).totals
    assert (totals["packets_sent"], totals["packets_received"], totals["packets_lost"]) == (2352, 1257, 1095)
    assert totals["queue_packets"] == 19
    assert totals["jitter_ms"] == pytest.approx(3.789, abs=0.001)
    assert totals["latency_ms"] == pytest.approx(162, abs=8)
    assert totals["throughput_bps"] == pytest.approx(1e6)


def test_a_link_that_is_not_full_adds_nothing_but_its_time(tmp_path: Path) -> None:
    totals = measured(tmp_path, 500, INTERVAL_NS, 4 * MS, 10 * MS, 20).totals
    assert totals["latency_ms"] == pytest.approx(14)
    assert totals["queue_packets"] == 1  # the packet itself, as it comes
    assert totals["jitter_ms"] == pytest.approx(0, abs=1e-6)
    assert totals["throughput_bps"] == pytest.approx(1.9e6, rel=1e-6)


def test_a_run_that_the_machine_disturbed_says_so(tmp_path: Path) -> None:
    sent, received = ideal_link(300, INTERVAL_NS, 4 * MS, 10 * MS, 20)
    late = [(time + (40 * MS if sequence == 100 else 0), sequence) for time, sequence in sent]
    places = write_capture(tmp_path, "before", late, 1000), write_capture(tmp_path, "after", received, 1000)
    totals = measure_flow(*places, 1000, INTERVAL_NS).totals
    assert totals["sender_late_ms"] == pytest.approx(40, abs=0.01)
    links = {"isp": {"directions": [{"from": "right", "overruns": 2}, {"from": "left", "overruns": 0}]}}
    link = [{"from": "left", "overruns": 1}]
    row = {"capture_drops": {"before": None, "after": 2}, "link": link, "links": links, **totals}
    assert disturbances(row) == [
        "The capture after the link dropped 2 packets: the figures are doubtful.",
        "The link itself lost 1 packet from left: this machine was too slow.",
        "The link isp itself lost 2 packets from right: this machine was too slow.",
        "The sender was up to 40 ms late and sent a burst: this machine was too busy.",
    ]
    quiet = measured(tmp_path, 300, INTERVAL_NS, 4 * MS, 10 * MS, 20).totals
    assert disturbances({"capture_drops": {}, "link": [], "links": {}, **quiet}) == []


def test_bins_add_up_to_the_totals(tmp_path: Path) -> None:
    flow = measured(tmp_path, 2352, INTERVAL_NS, 8 * MS, 10 * MS, 20)
    assert sum(flow.bins["sent"]) == 2352
    assert sum(flow.bins["received"]) == 1257
    assert flow.bins["lost_so_far"][-1] == 1095
    assert flow.bins["bytes"][-1] == 1_257_000
    # 20 when one comes in the nanosecond in which another begins
    assert max(value for value in flow.bins["waiting"] if value is not None) in (19, 20)
    assert flow.bins["seconds"] == sorted(flow.bins["seconds"])
    rates = [value for value in flow.bins["throughput_bps"] if value is not None]  # the last bin is cut short
    assert len(rates) >= len(flow.bins["throughput_bps"]) - 1
    assert rates[-1] == pytest.approx(1e6, rel=0.1) and flow.bins["cumulative_throughput_bps"][-1] == pytest.approx(
        1e6, rel=0.01
    )


def test_captures_without_a_common_block_are_an_error(tmp_path: Path) -> None:
    before = write_capture(tmp_path, "before", [(START_NS, 1)], 1000)
    after = write_capture(tmp_path, "after", [(START_NS + 1, 2)], 1000)
    with pytest.raises(WiretaleError, match="nothing to measure"):
        measure_flow(before, after, 1000)


def test_the_report_shows_measured_beside_published_offline(tmp_path: Path) -> None:
    flow = measured(tmp_path, 300, INTERVAL_NS, 8 * MS, 10 * MS, 20)
    published, drops = {"latency_ms": 162, "packets_sent": 2352}, {"before": 3, "after": 0}
    row = lab_row(flow, case="</script><b>narrow", published=published, capture_drops=drops)
    row["disturbances"] = disturbances(row)
    page = render("a title", [row], [flow.bins])
    head = page.split('id="plotly"')[0]
    assert "162.00" in head and "2,352" in head
    assert '<td data-label="differs">latency</td>' in head and "latency is not as published" in head
    assert "The capture before the link dropped 3 packets" in head
    assert "<b>narrow" not in page
    assert "http" not in head.replace("http-equiv", "")
    assert "showSendToCloud: false" in page
    assert "default-src 'none'" in head
