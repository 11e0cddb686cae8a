# SPDX-License-Identifier: Apache-2.0
"""Workers of Dask distributed: on this machine, or those of a scheduler at an address.

A cluster runs any code for anyone who can connect to it. On this machine, all connections are therefore on the loopback
interface and encrypted with keys that only these processes have, and no page is served. At an address, the scheduler
decides; its keys are those of Dask's configuration (docs/cluster.md).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import MissingToolError, UsageError

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
LIBRARIES = "distributed cryptography"
CONNECT_SECONDS = 10
SAFE_PATH = "PYTHONSAFEPATH"
IS_THERE = "__import__('importlib.util').util.find_spec('wiretale') is not None"
# The servers of HTTP cannot be switched off, so they get no page.
PAGELESS: dict[str, list[object]] = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker", "nanny")}


def check_library() -> None:
    """Raises MissingToolError if Dask is not installed."""
    try:
        import distributed
    except ImportError as error:
        raise MissingToolError(
            f"--cluster needs {error.name or 'distributed'}: run `{sys.executable} -m pip install {LIBRARIES}`"
        ) from None
    del distributed


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C takes effect after the block. Threads and processes that begin in it never get it: their parent ends them."""
    resource_tracker.ensure_running()  # else the start of the first process would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def closed(part: Any) -> None:
    """Closes a cluster or client, and waits for its processes."""
    with ctrl_c_waits(), suppress(OSError):
        part.close(timeout=CONNECT_SECONDS)


@contextmanager
def safe_imports() -> Iterator[None]:
    """Processes that begin in the block import nothing from the directory of the command, in which hostile captures may be."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[SAFE_PATH]
        if before is not None:
            os.environ[SAFE_PATH] = before


def reason_of_start(error: BaseException) -> str:
    """Returns the first cause of an error in one line."""
    while error.__cause__:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def local_client(workers: int) -> Iterator[Client]:
    """A cluster of worker processes on this machine, which ends with the block."""
    from tempfile import TemporaryDirectory

    import dask.config
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        scratch = stack.enter_context(TemporaryDirectory(prefix="wiretale-cluster-", ignore_cleanup_errors=True))
        stack.enter_context(dask.config.set({**PAGELESS, "temporary-directory": scratch}))
        stack.enter_context(safe_imports())
        with ctrl_c_waits():
            try:
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",  # None would be port 8787
                    worker_dashboard_address=None,
                    scheduler_kwargs={"dashboard": False},
                    security=True,  # temporary keys
                    memory_limit=0,  # a step has limits of its own
                    silence_logs=logging.CRITICAL,
                )
            except (RuntimeError, OSError) as error:  # a worker was killed, or did not answer in time
                raise MissingToolError(
                    f"--cluster {LOCAL}: the workers did not start ({reason_of_start(error)})"
                ) from None
            stack.callback(closed, cluster)
            client = Client(cluster, set_as_default=False)
            stack.callback(closed, client)
        yield client


def no_scheduler(address: str, done: str) -> MissingToolError:
    return MissingToolError(
        f"--cluster {address}: no Dask scheduler {done}: run `dask scheduler` there (docs/cluster.md)"
    )


def url_of(address: str) -> str:
    """Returns the address of a scheduler as Dask has it."""
    return address if "://" in address else f"tcp://{address}"


def check_listens(address: str) -> None:
    """Raises MissingToolError if no scheduler answers at an address: a Client might wait for one without end."""
    import asyncio
    import socket
    from urllib.parse import urlsplit

    if address == LOCAL:
        return
    where = url_of(address)
    parts = urlsplit(where)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_SECONDS).close()
    except OSError as error:
        raise no_scheduler(address, f"listens there ({error.strerror or error})") from None

    async def greet() -> None:
        from distributed.comm import connect
        from distributed.security import Security

        comm = await connect(where, timeout=CONNECT_SECONDS, **Security().get_connection_args("client"))
        comm.abort()

    try:
        asyncio.run(asyncio.wait_for(greet(), CONNECT_SECONDS))
    except (ValueError, TypeError) as error:  # a protocol that Dask does not have, or TLS without certificates
        raise UsageError(f"--cluster {address}: {error}") from None
    except (OSError, TimeoutError):
        raise no_scheduler(address, f"answered within {CONNECT_SECONDS} s") from None


def check_workers(client: Client) -> None:
    """Raises MissingToolError if a worker lacks wiretale: it would end when it gets a task, and Dask would start it again."""
    for worker, is_there in client.run(eval, IS_THERE).items():  # a function that each worker has
        if not is_there:
            raise MissingToolError(f"the worker {worker} has no wiretale: install its wheel there, of the same version")


@contextmanager
def remote_client(address: str) -> Iterator[Client]:
    """A connection to a scheduler. MissingToolError if none answers within CONNECT_SECONDS."""
    from distributed import Client

    try:
        client = Client(url_of(address), timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError:
        raise no_scheduler(address, f"answered within {CONNECT_SECONDS} s") from None
    try:
        check_workers(client)
        yield client
    finally:
        closed(client)


@contextmanager
def connect(address: str, workers: int) -> Iterator[Client]:
    """A client of the cluster at an address, or of as many workers on this machine."""
    check_library()
    disabled = logging.root.manager.disable
    logging.disable()  # messages of Dask, which end up as errors or retries
    with ExitStack() as stack:
        stack.callback(logging.disable, disabled)
        yield stack.enter_context(local_client(workers) if address == LOCAL else remote_client(address))
