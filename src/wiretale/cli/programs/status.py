# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale status`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, flag, text, time

PROGRAM = Program(
    name="status",
    header="capture/monitor/option_table.h",
    struct="struct request",
    description="Ask a running capture: counts, metrics for Prometheus, a health check. Or let it keep a span of "
    "time from removal.",
    usage="@ status [SOCKET] [options]",
    arguments={
        "SOCKET": "--status of the capture (default: /run/wiretale-capture/status)",
    },
    groups={
        "output": (
            flag("--json", "json", "the counts as one JSON object"),
            flag("--prometheus", "prometheus", "metrics as text for Prometheus"),
            text(
                "--textfile",
                "FILE.prom",
                "textfile",
                "replace FILE.prom by them, for the textfile collector of node_exporter",
            ),
            flag("--check", "check", "one line and an exit code, as plugins of Nagios and Icinga"),
        ),
        "limits of --check": (
            time(
                "--loss-window",
                "TIME",
                "limits.loss_ns",
                "critical if packets were lost in the last TIME (default: 5min)",
                1,
            ),
            time("--max-lag", "TIME", "limits.lag_ns", "warning if packets wait longer to be written (default: 5s)", 1),
            time(
                "--min-disk",
                "TIME",
                "limits.disk_ns",
                "warning if the disk will be full before, critical at a tenth of it (default: 24h)",
                1,
            ),
            time("--max-silence", "TIME", "limits.silence_ns", "critical if an interface had no packet for TIME", 1),
        ),
        "commands": (
            text(
                "--keep",
                "REASON",
                "keep",
                "keep a span, as SIGUSR2 does; its name gets the REASON, of letters a to z",
            ),
        ),
    },
    examples="""# is it fine?
@ status --check --max-silence 1min
# metrics for node_exporter
@ status --textfile /var/lib/prometheus/node-exporter/wiretale.prom
# an intrusion detection system saw something
@ status --keep intrusion
""",
    exit_codes={
        0: "done; with --check: fine",
        1: "with --check, a warning: packets wait, the disk fills up, an on-close command fails, or an interface is "
        "not there",
        2: "wrong usage; with --check, critical: packets were lost, or nobody captures",
        3: "with --check, unknown: wrong usage, or no permission",
        4: "the capture does not answer, or the output cannot be written",
        5: "no permission, or the capture cannot keep a span",
    },
)
