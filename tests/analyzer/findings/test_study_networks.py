# SPDX-License-Identifier: Apache-2.0
"""Networks that S3's and S4's published figures fit, and figures that contradict each other."""

from __future__ import annotations

import pytest

import needs

needs.benchmarks()

from studies import block_rates, same_switch
from studies.file_transfer import (
    Figure,
    Network,
    contradiction,
    distance,
    figures,
    network_of,
    rate_bounds,
    reason,
    tcp_rate,
    udp_rate,
)
from studies.runs import WINDOWS

# 1,000 packets of 1,500 bytes a second, a round trip of 0.1 s, no bound of the window.
SLOW = Network(rate=1.5e6, round_trip=0.1, window=1e9, queue=61_000, pause=0.01)


def test_tcp_doubles_its_window_until_it_fills_the_link_or_its_window() -> None:
    # 2, 4, 8, 16, 32, 64 segments in six round trips, then 74 at 1 ms each.
    assert tcp_rate(SLOW, 200 * 1448) == pytest.approx(200 * 1448 / 0.674)
    # 2, 4, 8, then 10 in each of three round trips, and one of 1 ms each.
    assert tcp_rate(SLOW._replace(window=10 * 1448), 45 * 1448) == pytest.approx(45 * 1448 / 0.601)


def test_datagrams_that_the_queue_has_no_room_for_are_lost() -> None:
    # A datagram of 20,000 bytes has 14 fragments, 20,288 bytes, of which 15,000 pass before the next one: each of the first eight
    # leaves 5,288 more in the queue, and the others have room for ten fragments. The eighth ends 57,304 bytes after 70 ms.
    assert udp_rate(SLOW, 20_000) == (pytest.approx(160_000 / (0.07 + 57_304 / 1.5e6), rel=1e-3), 8)
    assert udp_rate(SLOW._replace(pause=0.02), 20_000) == (pytest.approx(2e6 / (99 * 0.02 + 0.013525), rel=1e-3), 100)
    assert udp_rate(SLOW._replace(queue=1e9), 20_000)[1] == 100


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure("LAN", "tcp", 60_000, 15.5, 387, 100), ""),
        (Figure("LAN", "udp", 60_000, 27.52, 207, 95), ""),
        (Figure("LAN", "udp", 60_000, 27.52, 64, 95), "27.5 MB/s for 64 ms are 29 of 100 blocks, not 95"),
        (Figure("WLAN", "udp", 60_000, 4.11, 341, 20), ""),  # 23 are "around 20"
        (Figure("WLAN", "udp", 4096, 2.47, 166, None), ""),
    ],
)
def test_rate_time_and_share_of_a_transfer_contradict_each_other_or_not(figure: Figure, text: str) -> None:
    assert contradiction(figure) == text


def test_the_networks_have_all_figures_that_nothing_contradicts() -> None:
    by_medium = {medium: [f for f in figures() if f.network == medium] for medium in ("LAN", "WLAN", "WAN")}
    apart = {medium: distance(network_of(medium), published) for medium, published in by_medium.items()}
    assert apart["LAN"] < 0.05  # all of rates and shares within 5% together
    assert apart["WLAN"] < 0.43 and apart["WAN"] < 0.46  # each has one pair that no link has
    least, most = rate_bounds("LAN")
    assert least < most
    for medium in ("WLAN", "WAN"):
        least, most = rate_bounds(medium)
        assert least > 1.3 * most
    contradicted = {(f.network, f.protocol, f.size) for f in figures() if contradiction(f)}
    assert contradicted == {("LAN", "udp", 60_000), ("LAN", "udp", 4096), ("WAN", "tcp", 60_000)}
    assert all(reason(f) for f in by_medium["WLAN"]) and not reason(by_medium["LAN"][0])
    # Its rate and time are 6% apart, which is no reason for a rate that a link is 39% away from.
    (wan,) = [f for f in by_medium["WAN"] if (f.protocol, f.size) == ("tcp", 60_000)]
    assert reason(wan) == "cannot fit: TCP brought 0.58 MB/s through this link, UDP beside its full queue 0.395"


def test_hosts_and_window_of_s4_follow_from_its_rates() -> None:
    udp, tcp = block_rates.wire_rates("udp"), block_rates.wire_rates("tcp")
    assert block_rates.microseconds_per_block(udp) == pytest.approx(8.74, abs=0.01)
    assert all(block_rates.udp_reason(udp, size).startswith("fits") for size in udp)
    # 9 us more for each datagram, and what it gives: the line is found again.
    made = {size: 1 / (9 / wire + 1 / 125) for size, wire in ((1000, 1066), (2000, 2124), (10_000, 10_382))}
    assert block_rates.microseconds_per_block(made) == pytest.approx(9, abs=0.5)
    assert block_rates.s4_round_trip() == pytest.approx(2.37, abs=0.01)
    assert WINDOWS[-1][2] == "1185us"  # each way
    assert block_rates.tcp_contradiction(tcp).endswith("blocks of 10,000 had 36.4 MB/s, those of 1,000 25.7")


def test_the_row_of_a_mechanism_has_both_ratios_and_the_best_sizes() -> None:
    tcp, udp = [94.0] * 9, [2.5, 5, 10, 20, 41, 82, 94, 94, 94.5]
    tcp[1] = 94.1
    name, by_median, by_mean, *sizes = same_switch.figures(same_switch.MECHANISMS[-1], tcp, udp)
    assert name == "hosts that send 10,000 packets a second"
    assert by_median == pytest.approx(94 / 41) and by_mean == pytest.approx(846.1 / 443)
    assert sizes == [64, 94.1, 94.1, pytest.approx(0.1063, abs=1e-3), 8192]
    assert same_switch.udp_options(same_switch.MECHANISMS[-1], 8192) == ("--rate", str(8 * 8192 * 10_000 // 6))
