# SPDX-License-Identifier: Apache-2.0
"""Carries out a scenario: captures at sender, tracer and receiver, and samples of the sender's socket.

A capture at a veth holds packets as they leave the queueing discipline, so a shaper of the sender is before its capture."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from score.limits.scenarios import LimitScenario
from score.runs.host_talk import PORT
from score.runs.testbed import POINTS, RECEIVER, TALK, Testbed
from shared import namespaces
from shared.namespaces import listens, run, wait_until

SEND = Path(__file__).with_name("talk.py")
SAMPLES = "samples.jsonl"


class LimitTestbed(Testbed):
    def shape(self, scenario: LimitScenario) -> None:
        device, segments = f"tc -n {self.names['sender']} qdisc", 64 if scenario.super_segments else 1
        if "tbf" in run(*f"{device} show dev path".split()):
            run(*f"{device} del dev path root".split())
        if scenario.shaper:
            run(*f"{device} add dev path root tbf {scenario.shaper}".split())
        run(*self.inside("sender", *f"ethtool -K path gso {'on' if scenario.super_segments else 'off'}".split()))
        run(*f"ip -n {self.names['sender']} link set path gso_max_segs {segments}".split())

    def transfer(self, scenario: LimitScenario) -> str:
        """Returns the samples of the sender."""
        order = json.dumps({**asdict(scenario.talk), "control": scenario.control})
        server = [sys.executable, "-u", str(TALK), "receive", "-", order]
        receiving = subprocess.Popen(self.inside("receiver", *server), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: listens(self.names["receiver"], PORT), "the receiver listens")
            samples = run(*self.inside("sender", sys.executable, str(SEND), RECEIVER, order))
            receiving.wait(timeout=20)
            wait_until(self.is_quiet, "the connection is closed", 15)
        finally:
            receiving.kill()
            receiving.communicate(timeout=10)
        return samples

    def measure(self, scenario: LimitScenario, folder: Path) -> None:
        """Writes captures and samples into a folder; the samples are last."""
        folder.mkdir(parents=True, exist_ok=True)
        self.set_up(scenario)
        self.shape(scenario)
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.linked(scenario, folder))
            for name in self.captures:
                stack.enter_context(self.captured(name, folder))
            samples = self.transfer(scenario)
        (folder / SAMPLES).write_text(samples)


@contextlib.contextmanager
def new_limit_testbed() -> Iterator[LimitTestbed]:
    with namespaces.namespaces("wtlim", *POINTS) as names:
        made = LimitTestbed(names)
        made.make()
        yield made
