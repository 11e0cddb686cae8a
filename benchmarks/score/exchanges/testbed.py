# SPDX-License-Identifier: Apache-2.0
"""Carries out a plan between the two hosts, again if the machine delayed packets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from score.exchanges.drawn import Plan
from score.runs.testbed import RECEIVER, Testbed
from shared.namespaces import PathError
from wiretale.traffic.lab.process import real_time

TALK, LOGS = Path(__file__).with_name("talk.py"), "talk.json"
#: real-time priorities: what delivers packets comes before what logs them
PRIORITIES = {"tcpdump": 6, sys.executable: 7}
LINK = 10


class ExchangeTestbed(Testbed):
    def inside(self, end: str, *command: str) -> list[str]:
        return super().inside(end, *real_time(PRIORITIES.get(command[0], LINK)), *command)

    @contextmanager
    def talking(self, end: str, role: str, order: str) -> Iterator[subprocess.Popen[str]]:
        command = self.inside(end, sys.executable, str(TALK), role, RECEIVER, order)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as talking:
            try:
                yield talking
                talking.communicate(timeout=20)
            finally:
                talking.kill()

    def measure(self, plan: Plan, folder: Path) -> None:
        """Writes captures and the logs of both ends into a folder; the logs are last."""
        folder.mkdir(parents=True, exist_ok=True)
        self.set_up(plan.scenario)
        order = json.dumps(plan.order())
        with (
            self.talking("receiver", "serve", order) as server,
            self.linked(plan.scenario, folder),
            ExitStack() as talks,
        ):
            if line_of(server) != "ready\n":
                raise PathError("the server does not listen")
            with ExitStack() as captures:
                for name in self.captures:
                    captures.enter_context(self.captured(name, folder))
                client = talks.enter_context(self.talking("sender", "ask", order))
                client_log, served = json.loads(line_of(client)), json.loads(line_of(server))
            # both ends close what is left after the captures
        (folder / LOGS).write_text(json.dumps({**client_log, "served": served}))


def line_of(talking: subprocess.Popen[str]) -> str:
    if talking.stdout is None:
        raise PathError("no output")
    return talking.stdout.readline()
