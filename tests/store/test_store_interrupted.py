# SPDX-License-Identifier: Apache-2.0
"""Signals end `wiretale store query` at once, at whatever moment they come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from processes import wait_until

HASHES = "SELECT hash(a.range, b.range) AS h FROM range(100000) AS a, range(1000000) AS b ORDER BY h"
SUM = "SELECT sum(a.range * b.range) FROM range(1000000) AS a, range(1000000) AS b"
# Sends SIGTERM in the first call of a function in a file after DuckDB was looked for.
SENT_IN = """
import signal, sys
from wiretale.cli import main

function, file, *command = sys.argv[1:]

def trace(frame, event, argument):
    if frame.f_code.co_name == function and frame.f_code.co_filename.endswith(file) and "duckdb" in sys.modules:
        sys.settrace(None)
        signal.raise_signal(signal.SIGTERM)

sys.settrace(trace)
sys.exit(main(command))
"""


@pytest.fixture(scope="module")
def store(wiretale_run: Any, samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a sample."""
    folder = tmp_path_factory.mktemp("stores") / "store"
    assert wiretale_run("store", "add", folder, samples / "vlan_ipv6.pcap").returncode == 0
    return folder


@pytest.mark.parametrize("number, code, sql", [(signal.SIGINT, 130, SUM), (signal.SIGTERM, 143, HASHES)])
def test_a_query_is_interrupted_at_once(store: Path, number: int, code: int, sql: str) -> None:
    """Each query would take hours."""
    command = [sys.executable, "-m", "wiretale", "store", "query", str(store), sql]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 1, "DuckDB has threads")
        time.sleep(0.3)  # the query runs, or will end before it begins
        process.send_signal(number)
        assert process.communicate(timeout=30) == ("", "wiretale: interrupted\n")
    assert process.returncode == code


@pytest.mark.parametrize(
    "function, file",
    [
        ("cb", "<frozen importlib._bootstrap>"),  # a callback, whose exceptions Python drops
        ("__set_name__", "functools.py"),  # becomes a RuntimeError
        ("__call__", "enum.py"),  # by DuckDB, which aborts
        ("interruptible", "analyzer/query.py"),  # which starts the thread of the query
    ],
)
def test_a_signal_is_not_lost_while_a_query_begins(store: Path, function: str, file: str) -> None:
    command = [sys.executable, "-c", SENT_IN, function, file, "store", "query", str(store), HASHES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "wiretale: interrupted\n")
