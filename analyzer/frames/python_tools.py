# SPDX-License-Identifier: Apache-2.0
"""Packets to and from Scapy and pyshark, which are imported only here, and only if they are used."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.display_filter import flow_filter, frame_filter
from wiretale.analyzer.errors import InputError, MissingToolError, UsageError
from wiretale.analyzer.frames.cited import Choice, Place, of_code, place_of, places_of
from wiretale.analyzer.frames.raw_frames import ROOM, RawFrame, pcapng, raw_frames
from wiretale.system_packages import install_command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wiretale.analyzer.trace import Trace

NS = 1_000_000_000
FAILS_FROM = (3, 14)  # pyshark 0.6 asks asyncio for an event loop that Python 3.14 does not make
SECONDS_MAX = 600  # of tshark, which writes what a FileCapture shows


def tool(name: str, module: str) -> Any:
    """Imports a module of a library. MissingToolError if it is not installed, or fails on this Python."""
    if name == "pyshark" and sys.version_info >= FAILS_FROM:
        version = ".".join(map(str, FAILS_FROM))
        raise MissingToolError(f"pyshark fails on Python {version} and newer: use an older Python, or trace.scapy()")
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingToolError(f"{name} is missing ({error}): pip install {name}") from None


def to_scapy(trace: Trace, frames: Choice) -> Any:
    """Returns frames as a PacketList of Scapy, with their times, lengths on the wire and numbers. UsageError if a frame does not
    exist, or if all together are too large."""
    config, packets, lists = tool("scapy", "scapy.config"), tool("scapy", "scapy.packet"), tool("scapy", "scapy.plist")
    tool("scapy", "scapy.layers.all")
    layers, decimal = config.conf.l2types.num2layer, tool("scapy", "scapy.utils").EDecimal
    listed = []
    for frame in every_frame(trace, places_of(trace, frames)):
        packet = layers.get(frame.link_type, packets.Raw)(frame.data)
        packet.time = decimal(frame.time_ns or 0) / NS
        packet.wirelen = frame.length
        packet.comment = f"frame {frame.number}".encode()
        listed.append(packet)
    return lists.PacketList(listed, name="wiretale")


def every_frame(trace: Trace, places: Sequence[Place]) -> list[RawFrame]:
    """Returns the bytes of all these frames. UsageError if one has none."""
    files = trace.interfaces.column("file")
    if outside := [capture for capture, _ in places if not 0 <= capture < len(files)]:
        raise UsageError(f"there is no capture {outside[0]}: this analysis has {len(files)}")
    raw = raw_frames(trace, places)
    read = {(files[frame.capture], frame.number) for frame in raw}
    for capture, number in places:
        if (files[capture], number) not in read:
            raise UsageError(
                f"frame {number}: is not in {files[capture]}, or {ROOM >> 20} MiB of others came before it"
            )
    return raw


def filter_of(trace: Trace, choice: str | int) -> tuple[str, str]:
    """Returns the file and display filter of a flow (its number), of a cause or finding (its code), or the filter itself."""
    files = trace.interfaces.column("file")
    if isinstance(choice, int):
        row = trace.flow(choice).row
        return files[row["first_capture"]], flow_filter(row)
    codes = [row for row in (*trace.causes, *trace.findings) if row["code"] == choice]
    if not codes:
        return only_file(trace), choice
    places = of_code(trace, choice)
    captures = {files[capture] for capture, _ in places}
    if len(captures) > 1:
        raise UsageError(f"{choice}: {len(captures)} files show it: expected a flow, or one file")
    return captures.pop() if captures else only_file(trace), codes[0]["filter"] or frame_filter(n for _, n in places)


def only_file(trace: Trace) -> str:
    """Returns the file of a trace. UsageError if there are several."""
    if len(trace.inputs) > 1:
        raise UsageError(f"{len(trace.inputs)} files: expected the number of a flow, or an analysis of one file")
    return trace.inputs[0]


def is_in_loop() -> bool:
    """Returns whether an event loop runs in this thread, as in a notebook."""
    with suppress(RuntimeError):
        return asyncio.get_running_loop().is_running()
    return False


class ToolLoop(asyncio.SelectorEventLoop):
    """An event loop that signals a process without asking for its exit code first, as Python 3.13 does (gh-87744).

    Before, the question could take the code of a process that had just ended from the loop, which then told 255.
    """

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        """Starts a process and returns its transport and protocol."""
        transport, protocol = await super().subprocess_exec(*args, **options)
        process = transport.get_extra_info("subprocess")
        process.send_signal = partial(os.kill, process.pid)
        return transport, protocol


def end_tshark(processes: set[Any], loop: ToolLoop) -> None:
    """Ends the processes of a FileCapture and its event loop: in a cycle of garbage this comes before its own end, which would
    ask the closed loop."""
    for process in processes:
        process._transport.close()
    processes.clear()
    loop.close()


def to_pyshark(trace: Trace, choice: str | int) -> Any:
    """Returns a FileCapture of the packets of a flow, a cause, a finding or a display filter.

    Its event loop is its own: in one that it chooses, pyshark would handle SIGCHLD for the whole process.
    """
    trace.check_readable()
    pyshark = tool("pyshark", "pyshark")
    if is_in_loop():
        raise UsageError(
            "pyshark cannot read a file while an event loop runs, as in a notebook: use frame() or scapy()"
        )
    path, display_filter = filter_of(trace, choice)
    loop = ToolLoop()
    try:
        capture = pyshark.FileCapture(path, display_filter=display_filter, eventloop=loop)
    except Exception as error:  # pyshark has no tree of errors
        loop.close()
        raise MissingToolError(f"pyshark cannot run tshark: {error}: {install_command('tshark')}") from None
    # A capture that is still open at the exit ends tshark after it.
    weakref.finalize(capture, end_tshark, capture._running_processes, loop).atexit = False
    return capture


def run_tshark(path: str, *options: str) -> bytes:
    """Returns what tshark prints of a file. InputError with its last line if it fails."""
    from wiretale.analyzer.verify.tshark import Dissector

    done = subprocess.run([Dissector().program, "-r", path, *options], capture_output=True, timeout=SECONDS_MAX)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InputError(f"{path}: tshark: {said[-1] if said else done.returncode}")
    return done.stdout


def pyshark_frame(trace: Trace, frame: int | Mapping[str, Any]) -> Any:
    """Returns one frame as a packet of pyshark: its decoded tree, by tshark that knows all packets before it.

    pyshark only parses, so that this also works while an event loop runs.
    """
    trace.check_readable()
    parse = tool("pyshark", "pyshark.tshark.output_parser.tshark_xml").packet_from_xml_packet
    capture, number = place_of(trace, frame)
    path = trace.interfaces.column("file")[capture]
    pdml = run_tshark(path, "-Y", f"frame.number == {number}", "-c", str(number), "-T", "pdml")
    start, end = pdml.find(b"<packet>"), pdml.rfind(b"</packet>")
    if start < 0 or end < start:
        raise UsageError(f"there is no frame {number} in {path}")
    return parse(pdml[start:end] + b"</packet>")


def is_foreign(path: object) -> bool:
    """Returns whether an input of analyze() is a list of packets of Scapy, or a FileCapture of pyshark."""
    if isinstance(path, (str, bytes, os.PathLike)):
        return False
    module = type(path).__module__
    if isinstance(path, (list, tuple)) and path:
        module = type(path[0]).__module__
    return module.startswith(("scapy.", "pyshark."))


def raw_of_scapy(packets: Iterable[Any]) -> Iterator[RawFrame]:
    """Yields the frames of packets of Scapy."""
    links = tool("scapy", "scapy.config").conf.l2types.layer2num
    for number, packet in enumerate(packets, 1):
        content = bytes(packet)
        if (link := links.get(type(packet))) is None:
            raise UsageError(
                f"packet {number}: {type(packet).__name__} is no link layer: expected Ether, IP or the like"
            )
        length = getattr(packet, "wirelen", None) or len(content)
        yield RawFrame(0, number, link, int(packet.time * NS), length, content)


def write_foreign(source: Any, path: Path) -> str:
    """Writes packets of Scapy or of a FileCapture into a file and returns its path; that of a FileCapture without a filter."""
    if not type(source).__module__.startswith("pyshark."):
        path.write_bytes(pcapng(list(raw_of_scapy(source))))
        return str(path)
    original, display_filter = str(source.input_filepath), source._display_filter
    if not display_filter:
        return original
    run_tshark(original, "-Y", display_filter, "-w", str(path))
    return str(path)


def analyze_packets(inputs: Sequence[Any], analysis: Callable[[list[Any]], Trace]) -> Trace:
    """Returns an analysis of inputs with files in place of packets. The files are there as long as the trace."""
    if not any(map(is_foreign, inputs)):  # lists of paths
        return analysis(list(inputs))
    folder = mkdtemp(prefix="wiretale-")
    try:
        trace = analysis(
            [
                write_foreign(source, Path(folder, f"packets-{number}.pcapng")) if is_foreign(source) else source
                for number, source in enumerate(inputs)
            ]
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(trace, shutil.rmtree, folder, ignore_errors=True)
    return trace
