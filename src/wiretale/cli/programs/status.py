# SPDX-License-Identifier: Apache-2.0
"""The options of `wiretale status`."""

from __future__ import annotations

from wiretale.cli.programs.declaration import Program, flag, text, time

PROGRAM = Program(
    name="status",
    header="capture/monitor/option_table.h",
    struct="struct request",
    description="Ask a running capture for its counts, metrics for Prometheus, or a health check; or tell it to keep "
    "a span of time.",
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
                "write the metrics to FILE.prom, for the textfile collector of node_exporter",
            ),
            flag("--check", "check", "one line and an exit code, as a plugin of Nagios or Icinga"),
        ),
        "limits of --check": (
            time(
                "--loss-window",
                "TIME",
                "limits.loss_ns",
                "critical if packets were lost in the last TIME (default: 5min)",
                1,
            ),
            time(
                "--max-lag",
                "TIME",
                "limits.lag_ns",
                "warning if packets wait longer than TIME to be written (default: 5s)",
                1,
            ),
            time(
                "--min-disk",
                "TIME",
                "limits.disk_ns",
                "warning if the disk will be full within TIME, critical within a tenth of it (default: 24h)",
                1,
            ),
            time(
                "--max-silence", "TIME", "limits.silence_ns", "critical if an interface has had no packet for TIME", 1
            ),
        ),
        "commands": (
            text(
                "--keep",
                "REASON",
                "keep",
                "keep a span, as SIGUSR2 does; REASON, of letters a to z, becomes part of its name",
            ),
        ),
    },
    examples="""# is it healthy?
@ status --check --max-silence 1min
# metrics for node_exporter
@ status --textfile /var/lib/prometheus/node-exporter/wiretale.prom
# an intrusion detection system saw something
@ status --keep intrusion
""",
    exit_codes={
        0: "done; with --check: healthy",
        1: "with --check, a warning: packets wait, the disk fills up, an on-close command fails, or an interface or "
        "its carrier is missing",
        2: "wrong usage; with --check, critical: packets were lost, or nobody captures",
        3: "with --check, unknown: wrong usage, or no permission",
        4: "the capture does not answer, or the output cannot be written",
        5: "no permission, or the capture cannot keep a span",
    },
)
