# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale find`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, flag, read_by, text

PROGRAM = Program(
    name="find",
    header="capture/find/option_table.h",
    struct="struct query",
    description="Find packets in folders of captures, such as the ring of a running capture: an index beside each "
    "file says which 64 KiB of it have packets of a host or port, so that one flow out of 1,000 files "
    "takes less than a second.",
    usage="@ find FOLDER... [options]",
    arguments={
        "FOLDER": "folders with captures, or single files",
    },
    groups={
        "packets": (
            read_by(
                "--host",
                "ADDRESS",
                "add_host",
                "packets of this host, or of a net such as 192.0.2.0/24; a second one: between both",
            ),
            read_by("--port", "PORT", "add_port", "packets of this port of TCP, UDP, SCTP or DCCP"),
            read_by(
                "--start",
                "TIME",
                "set_time",
                "skip packets before TIME: ISO 8601 (UTC) or epoch seconds",
                member="start_ns",
            ),
            read_by("--end", "TIME", "set_time", "skip packets at or after TIME", member="end_ns"),
            text("-f --filter", "FILTER", "filter", "only packets that also match a pcap-filter(7) expression"),
        ),
        "kept spans": (
            flag("--spans", "spans", "list the spans that captures keep (--keep-before, --keep-after)"),
            text("--kept", "SPAN", "kept", "the packets of a span"),
            text("--release", "SPAN", "release", "let a span go: its files may be removed"),
        ),
        "output": (
            text(
                "-o --output", "OUT.pcapng", "output", "write the packets, in the order of time; - for standard output"
            ),
            flag("--overwrite", "overwrite", "replace an existing file"),
            flag("--json", "json", "the list of files with such packets as one JSON object"),
            flag("-q --quiet", "quiet", "print nothing but errors"),
        ),
    },
    notes="""
`wiretale capture` writes the index .NAME.index of each file that it finishes. One that is missing is made,
and kept if the folder can be written. The open file of a capture is read, too, up to its last whole packet.

Hosts and ports are also found inside VLANs, MPLS, PPPoE and tunnels, in ARP, and in the packet that an ICMP
error quotes. Only the first fragment of a packet has ports. A net or --filter alone is looked for in every
packet of the time.
""",
    examples="""# one conversation of yesterday's ring
@ find /captures --host 192.0.2.7 --host 198.51.100.1 --port 443 -o flow.pcapng
# two minutes around an alert
@ find /captures --start 2026-11-30T11:59 --end 2026-11-30T12:01 --host 192.0.2.7 -o alert.pcapng
# the files that have a host
@ find /captures --host 2001:db8::7 --json
""",
    exit_codes={
        0: "done, also if there is no such packet",
        2: "wrong usage",
        3: "done, but files could not be read, or were removed meanwhile",
        4: "no captures there, output not writable, or memory missing",
        5: "a folder is missing",
    },
)
