# SPDX-License-Identifier: Apache-2.0
"""An emulator of Google Cloud Storage on a free port of the loopback interface, in a process of its own."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from processes import wait_until
from s3_server import accepts, free_port

# gcsfs would look for the type of a bucket by gRPC, which the emulator lacks, for a minute.
OPTIONS = {"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}


@contextlib.contextmanager
def serving() -> Iterator[dict[str, str]]:
    """The environment of its clients."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "gcp_storage_emulator",
        "start",
        "--host=127.0.0.1",
        f"--port={port}",
        "--in-memory",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: accepts(port), "the server of Google's storage listens")
        yield {**OPTIONS, "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}
    finally:
        server.kill()
        server.wait()


def script(environment: dict[str, str], text: str, *words: object) -> Any:
    """The output of a Python script that has the file system `gcs`."""
    begin = "import os, sys, gcsfs\ngcs = gcsfs.GCSFileSystem(endpoint_url=os.environ['STORAGE_EMULATOR_HOST'], token='anon')\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + text, *map(str, words)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout
