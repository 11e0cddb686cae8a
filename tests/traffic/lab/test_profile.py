# SPDX-License-Identifier: Apache-2.0
"""Profiles in TOML: their values, and errors with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.traffic.lab.profile import (
    link_bps,
    load_profile,
    make_profile,
    profile_names,
    study_profiles,
)
from wiretale.traffic.lab.scenario import block_bytes, packet_count
from wiretale.traffic.lab.state import check_name
from wiretale.traffic.lab.topology.setting import shipped_traces, trace_path
from wiretale.traffic.lab.traces import TRACES, lines_of, trace_text

EXPECTED = {
    *(
        "same-host",
        "same-switch",
        "same-lan",
        "lan-to-lan",
        "lan-to-home",
        "wlan-b",
        "wlan-g",
        "wan",
        "satellite",
        "lte",
    ),
    *(
        "dumbbell",
        "bufferbloat",
        "s6-base",
        "s6-small-packets",
        "s6-large-packets",
        "s6-narrow-link",
        "s6-narrow-link-over-tcp",
    ),
    *("s6-queue-50", "s6-queue-5", "s6-long-link"),
}


def test_the_promised_profiles_are_there() -> None:
    assert set(profile_names()) >= EXPECTED


def test_a_direction_has_the_settings_of_both_and_its_own() -> None:
    text = '[both]\ndelay = "10ms"\nrate = "1Mbit"\n[reverse]\nrate = "2Mbit"\njitter_reorders = true\ndrop = [17, "90-95"]'
    profile = make_profile("p", text, "p.toml")
    assert profile.forward == "delay=10ms rate=1Mbit"
    assert profile.reverse == "delay=10ms rate=2Mbit jitter-reorders=yes drop=17,90-95"


def test_a_trace_is_found_beside_its_profile(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('[both]\ntrace = "up.trace"\n')
    with pytest.raises(InputError, match=r"trace: .*up\.trace: No such file"):
        load_profile(str(tmp_path / "p.toml"))
    (tmp_path / "up.trace").write_text("1\n2\n")
    assert load_profile(str(tmp_path / "p.toml")).forward == f"trace={tmp_path}/up.trace"


def test_a_schedule_is_a_list_of_steps() -> None:
    text = (
        '[both]\nrate = "9Mbit"\nschedule = [{at = "5 s", rate = "2 Mbit"}, {at = 10, delay = "60ms", loss = "1%"}]\n'
    )
    profile = make_profile("p", text, "p.toml")
    assert profile.forward == "rate=9Mbit schedule=5s:rate=2Mbit,10:delay=60ms:loss=1%"
    assert link_bps(profile) is None


@pytest.mark.parametrize(
    "steps", ["[]", "[5]", '[{at = "1s"}]', '[{rate = "1M"}]', '[{at = "1s", mtu = 5}]', '[{at = ["1s"], rate = "1M"}]']
)
def test_a_wrong_step_is_named(steps: str) -> None:
    with pytest.raises(UsageError, match=r"p\.toml: .*schedule.*expected"):
        make_profile("p", f"[both]\nschedule = {steps}\n", "p.toml")


def test_the_number_of_a_wrong_step_is_shown() -> None:
    for wrong in ('{at = "2s"}', '{at = "2s", loss = ["1%"]}'):
        with pytest.raises(UsageError, match=r"schedule: .*step 2: .*expected"):
            make_profile("p", f'[both]\nschedule = [{{at = "1s", rate = "1M"}}, {wrong}]\n', "p.toml")


def test_a_trace_may_be_one_of_wiretale() -> None:
    setting = make_profile("p", '[both]\ntrace = "saw"\n', "p.toml").forward
    assert setting.startswith("trace=/") and setting.endswith("/traces/saw.trace")


@pytest.mark.parametrize("name", sorted(TRACES))
def test_the_traces_of_wiretale_are_those_of_their_formulas(name: str) -> None:
    assert sorted(TRACES) == shipped_traces()
    assert trace_path(name, None).read_text() == trace_text(name)


def count(name: str, start: int, end: int) -> int:
    """Opportunities of a trace after one time until another."""
    rate, duration = TRACES[name]
    return sum(start < time <= end for time in lines_of(rate, duration))


def test_the_traces_have_their_rates() -> None:
    assert (count("step", 0, 5000), count("step", 5000, 10_000)) == (5000, 1250)
    assert (count("outage", 0, 8000), count("outage", 8000, 9999)) == (4000, 0)
    assert abs(count("saw", 0, 1000) * 12 - 1550) < 13  # 1 to 2.1 Mbit/s
    assert count("satellite-handover", 14_880, 14_999) == 0
    assert 4e6 < count("lte-drive", 0, 20_000) * 12_000 / 20 < 14e6


@pytest.mark.parametrize(
    "text",
    [
        "rate = ",
        'color = "blue"',
        "both = 5",
        '[both]\nrate = "1Mbit delay=5ms"',
        '[both]\nrate = ""',
        '[both]\n"rate=5 x" = 1',
        "[both]\nrate = 2026-01-01",
        "mtu = 67",
        "mtu = 65536",
        "mtu = true",
        'mtu = "1500"',
        "seed = -1",
        "card = 100",
        'card = "1Mbit; reboot"',
        '[sysctl]\n"kernel.core_pattern" = "|/bin/sh"',
        '[sysctl]\n"net.ipv4.tcp_sack" = "0; reboot"',
        '[sysctl]\n"net.ipv4/../../kernel" = 1',
        '[sysctl]\n"net..ipv4" = 1',
        '[scenario]\nstudy = "S6"',
        '[scenario]\nprotocol = "sctp"',
        "[scenario]\npacket_bytes = 83",
        "[scenario]\nrate_bps = nan",
        "[scenario]\nseconds = inf",
        "[scenario]\ncount = true",
        "[published]\nlatency_ms = nan",
        '[published]\nlatency_ms = "14"',
    ],
)
def test_wrong_profiles_are_refused_with_the_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"^bad\.toml: ") as caught:
        make_profile("bad", text, "bad.toml")
    assert "\n" not in str(caught.value)


def test_an_unknown_profile_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="expected bufferbloat"):
        load_profile("moon")
    with pytest.raises(InputError, match="No such file"):
        load_profile("/nowhere/moon.toml")


def test_the_study_sends_its_published_load() -> None:
    rows = study_profiles("S6")
    assert [profile.scenario.row for profile in rows if profile.scenario] == list(range(1, 9))
    for profile in rows:
        assert profile.scenario
        assert packet_count(profile.scenario) == profile.published["packets_sent"], profile.name
        headers = {"udp": 28, "tcp": 52}[profile.scenario.protocol]
        assert block_bytes(profile.scenario) + headers == profile.scenario.packet_bytes


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "../x", "x" * 41])
def test_a_name_that_no_namespace_should_have_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        check_name(name)
