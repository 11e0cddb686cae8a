# SPDX-License-Identifier: Apache-2.0
"""Servers of object storage on free ports of the loopback interface, each in a process of its own: moto's S3, and an emulator of
Google Cloud Storage."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

from processes import wait_until

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
# gcsfs would look for the type of a bucket by gRPC, which the emulator lacks, for a minute.
WITHOUT_GRPC = {"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
S3 = "import sys, boto3\ns3 = boto3.client('s3')\n"
GOOGLE = (
    "import sys, os, gcsfs\ngcs = gcsfs.GCSFileSystem(endpoint_url=os.environ['STORAGE_EMULATOR_HOST'], token='anon')\n"
)


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


@contextlib.contextmanager
def serving(module: str, *words: str) -> Iterator[str]:
    """The URL of the server of a Python module; {} in its arguments is the port."""
    port = free_port()
    command = [sys.executable, "-m", module, *(word.format(port) for word in words)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: accepts(port), f"{module} listens")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def s3() -> Iterator[dict[str, str]]:
    """The environment of clients of an S3 server."""
    with serving("moto.server", "-H", "127.0.0.1", "-p", "{}") as url:
        yield {**KEYS, "AWS_ENDPOINT_URL": url}


@contextlib.contextmanager
def google() -> Iterator[dict[str, str]]:
    """The environment of clients of a server of Google's storage."""
    with serving("gcp_storage_emulator", "start", "--host=127.0.0.1", "--port={}", "--in-memory") as url:
        yield {**WITHOUT_GRPC, "STORAGE_EMULATOR_HOST": url}


def script(environment: dict[str, str], client: str, text: str, *words: object) -> str:
    """The output of a Python script that begins with a client, S3 (`s3`) or GOOGLE (`gcs`)."""
    done = subprocess.run(
        [sys.executable, "-c", client + text, *map(str, words)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout
