# SPDX-License-Identifier: Apache-2.0
"""`wiretale watch` beside the capture daemon, which writes a ring of files while flows cross them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

import wiretale
from capture_link import CaptureLink
from processes import output, wait_until

pytestmark = pytest.mark.xdist_group("capture")

# Connections and datagrams on the loopback interface, for some seconds.
TALK = """
import socket, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        peer, _ = server.accept()
        threading.Thread(target=answer, args=(peer,), daemon=True).start()
def answer(peer):
    with peer:
        while data := peer.recv(65536):
            peer.sendall(data[:100])
threading.Thread(target=serve, daemon=True).start()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
open_ones = []
for step in range(30):
    if step % 3 == 0:
        open_ones.append(socket.create_connection(server.getsockname()))
    for one in open_ones:
        one.sendall(bytes(2000))
        one.recv(65536)
    udp.sendto(bytes(300), udp.getsockname())
    if len(open_ones) > 4:
        open_ones.pop(0).close()
    time.sleep(0.1)
"""
FLOWS = """SELECT protocol, source_port, destination_port, packets, wire_bytes, payload_bytes, state, first_frame, last_frame,
    epoch_ns(first_ns), epoch_ns(last_ns) FROM {} ORDER BY ALL"""


def flows_of(source: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(FLOWS.format(source)).fetchall()


def watching(folder: Path, store: Path) -> subprocess.Popen[bytes]:
    words = ("watch", str(folder), "--store", str(store), "-q")
    return subprocess.Popen([sys.executable, "-m", "wiretale", *words])


def test_flows_across_the_files_of_the_daemon_are_those_of_one_analysis(
    wiretale_run: Any, link: CaptureLink, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    link.make_folder()
    output("ip", "-n", link.tracer, "link", "set", "lo", "up")
    with contextlib.ExitStack() as running:
        first = running.enter_context(watching(link.folder, store))
        running.callback(first.kill)
        with link.daemon("-C", "20kB", "-b", "files:500", interface="lo") as daemon:
            with subprocess.Popen(link.inside(link.tracer, sys.executable, "-S", "-c", TALK)) as talk:
                wait_until(lambda: len(link.files()) > 2, "the first files")
                first.kill()  # another continues
                first.wait(timeout=60)
                second = running.enter_context(watching(link.folder, store))
                running.callback(second.kill)
                assert talk.wait(timeout=120) == 0
            assert daemon.stop() == 0
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=60) == 0
    assert wiretale_run("watch", link.folder, "--store", store, "--once", "-q").returncode == 0
    files = link.files()
    assert len(files) > 5
    wiretale.analyze(files).write(tmp_path / "whole")
    flows = flows_of(f"read_parquet('{store}/day=*/capture_id=*/flows.parquet', union_by_name = true)")
    assert flows == flows_of(f"'{tmp_path}/whole/flows.parquet'") and len(flows) > 10
    folders = f"'{store}/day=*/capture_id=*"
    crossing = flows_of(
        f"""(FROM read_parquet({folders}/flows.parquet', hive_partitioning = true) AS f
        SEMI JOIN read_parquet({folders}/captures.parquet', hive_partitioning = true) AS c
        ON f.capture_id = c.capture_id AND (c.first_ns IS NULL OR f.first_ns < c.first_ns))"""
    )
    assert len(crossing) > 5
    assert wiretale_run("store", "check", store).stdout == "no problems\n"
