# SPDX-License-Identifier: Apache-2.0
"""Every program accepts the same spellings of rates, sizes, times and counts: unit_spellings.toml, at the surface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkout import UNIT_SPELLINGS
from wiretale.analyzer.diff.fail_condition import parse_condition
from wiretale.traffic.experiment.plan import read_plan
from wiretale.traffic.lab.profile import load_profile

REFUSED: dict[str, list[str]] = UNIT_SPELLINGS["refused"]
SPELLINGS = {kind: values for kind, values in UNIT_SPELLINGS.items() if kind != "refused"}  # the table is shared
CASES = [(kind, text, value) for kind, values in SPELLINGS.items() for text, value in values.items()]
WRONG = [(kind, text) for kind, texts in REFUSED.items() for text in texts]
PLAN_KEYS = {
    "count": ("count", "count"),
    "rate": ("rates", "rate_bps"),
    "size": ("sizes", "block_bytes"),
    "time": ("seconds", "seconds"),
}


def plan_of(kind: str, text: str) -> str:
    """A plan that has the spelling, in TOML."""
    session = {"name": "t", "protocol": "tcp", "sizes": 1000, "seconds": 1} | {PLAN_KEYS[kind][0]: text}
    if kind == "count":
        del session["seconds"]
    return "[[test]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in session.items())


@pytest.mark.parametrize("kind, text, value", [case for case in CASES if case[0] == "rate"])
def test_theory_takes_a_rate(wiretale_run: Any, kind: str, text: str, value: int) -> None:
    done = wiretale_run("theory", f"--link={text}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["link_bps"] == value


@pytest.mark.parametrize("kind, text, value", [case for case in CASES if case[0] == "size" and case[2] <= 65_536])
def test_theory_takes_a_size(wiretale_run: Any, kind: str, text: str, value: int) -> None:
    done = wiretale_run("theory", "--link", "1G", "--protocol", "tcp", f"--block={text}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["block_bytes"] == value


@pytest.mark.parametrize("kind, text, value", [case for case in CASES if case[0] == "count"])
def test_an_option_takes_a_count(wiretale_run: Any, samples: Path, kind: str, text: str, value: int) -> None:
    done = wiretale_run(samples / "vlan_ipv6.pcap", f"--max-flows={text}", "--json")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind, text, value", [case for case in CASES if case[0] in PLAN_KEYS])
def test_a_plan_takes_them(kind: str, text: str, value: int) -> None:
    if kind == "size" and value > 2**20:
        pytest.skip("a block has at most 1 MiB")
    session = read_plan(plan_of(kind, text), "plan.toml", "plan").tests[0].sessions[0]
    setting = getattr(session, PLAN_KEYS[kind][1])
    assert setting == (value / 1e9 if kind == "time" else value)


def test_a_profile_takes_a_rate_with_a_blank(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text('card = "1.5 gbit/s"\n[both]\nrate = "10 Mbit/s"\ndelay = "20 ms"\n')
    profile = load_profile(str(file))
    assert (profile.card, profile.forward) == ("1500000000bit", "rate=10Mbit/s delay=20ms")


@pytest.mark.parametrize("kind, text, value", [case for case in CASES if case[0] in ("rate", "size", "count")])
def test_a_condition_takes_them(kind: str, text: str, value: int) -> None:
    measure = {"rate": "goodput", "size": "bytes", "count": "fragments"}[kind]
    assert parse_condition(f"{measure}<{text}").bound == pytest.approx(value)


@pytest.mark.parametrize(
    "text, value", [(text, value) for text, value in SPELLINGS["time"].items() if text.strip()[-1] > "9"]
)
def test_a_condition_takes_a_time_with_a_unit(text: str, value: int) -> None:
    assert parse_condition(f"rtt_p99<{text}").bound == pytest.approx(value)


@pytest.mark.parametrize("kind, text", [case for case in WRONG if case[0] in ("rate", "size", "count")])
def test_the_others_are_refused(wiretale_run: Any, samples: Path, kind: str, text: str) -> None:
    command = {
        "rate": ("theory", f"--link={text}"),
        "size": ("theory", "--link=1G", f"--block={text}"),
        "count": ("analyze", samples / "vlan_ipv6.pcap", f"--max-flows={text}"),
    }[kind]
    done = wiretale_run(*command)
    assert done.returncode == 2 and "expected" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("text, value", SPELLINGS["size"].items())
def test_a_block_size_takes_them(wiretale_run: Any, samples: Path, text: str, value: int) -> None:
    file = samples / "vlan_ipv6.pcap"
    done = wiretale_run("analyze", file, f"--block-size={text}", "--none-such")
    assert done.returncode == 2 and "there is no option --none-such" in done.stderr, (value, done.stderr)


@pytest.mark.parametrize("text", ["31", "2GiB", "1.5", "8KiBit", "8kbit", "-1", ""])
def test_a_block_size_is_a_size(wiretale_run: Any, samples: Path, text: str) -> None:
    done = wiretale_run("analyze", samples / "vlan_ipv6.pcap", f"--block-size={text}")
    assert done.returncode == 2 and "expected 32 to 1,073,741,824 bytes" in done.stderr and "64KiB" in done.stderr
    assert wiretale_run("analyze", samples / "vlan_ipv6.pcap", "--block-size", "8KiB").returncode == 0


@pytest.mark.parametrize("text", [text for kind, text in WRONG if kind == "rate" and "B" in text])
def test_a_condition_refuses_bytes_for_a_rate(wiretale_run: Any, samples: Path, text: str) -> None:
    done = wiretale_run("diff", *[samples / "vlan_ipv6.pcap"] * 2, "--fail-if", f"goodput<{text}")
    assert done.returncode == 2 and done.stderr.endswith("(in bit/s, not bytes)\n") and not done.stdout


@pytest.mark.parametrize("kind, text", [case for case in WRONG if case[0] in PLAN_KEYS])
def test_a_plan_refuses_the_others(wiretale_run: Any, tmp_path: Path, kind: str, text: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(plan_of(kind, text), "utf-8")
    done = wiretale_run("experiment", "run", plan, "-o", tmp_path / "out", "--dry-run")
    assert done.returncode == 2 and "expected" in done.stderr and done.stderr.count("\n") == 1
