# SPDX-License-Identifier: Apache-2.0
"""The objects that the C programs and the lab print with --json, in the form of json_shapes.py. Their members are named in the
files that are given, which have no declarations to read them from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

Shape = Any
VERSION = {"wiretale": "string"}


class Nullable(NamedTuple):
    """A list or an object that may be null."""

    shape: Shape


def each(names: Iterable[str] | str, shape: Shape) -> dict[str, Shape]:
    """Returns members of one shape."""
    return dict.fromkeys(names.split() if isinstance(names, str) else names, shape)


def maybe(members: dict[str, Shape]) -> dict[str, Shape]:
    """Returns members that may be missing."""
    return {name if name == "*" else f"{name.removesuffix('~')}~": shape for name, shape in members.items()}


# --- traffic/generator/report/report_json.c, report_interval.c, losses.c

RATES = {
    **each("first_ns last_ns", "integer?"),
    **each("elapsed_s rate_kb_s rate_mbit_s", "number?"),
    **each("cpu_user_s cpu_system_s", "number"),
}
SENDER = {
    **each("blocks_sent bytes_sent", "integer"),
    **RATES,
    **each("late_p50_ns late_p99_ns late_max_ns largest_burst moved_ns", "integer?"),
    **each("real_time constant_rate", "boolean?"),
    **each("paused_ns blocks_offloaded responses response_bytes turn_p50_ns turn_p99_ns turn_max_ns", "integer?"),
    "send_errors": {"*": "integer"},
}
RECEIVER = {
    "blocks_received": "integer",
    "blocks_lost": "integer?",
    **each("blocks_out_of_order blocks_duplicate blocks_corrupt blocks_late blocks_missing", "integer"),
    "blocks_missing_in_catch_up": "integer?",
    **each("foreign_datagrams bytes_received", "integer"),
    **RATES,
    **each("jitter_ns delay_p50_ns delay_p99_ns delay_max_ns host_dropped", "integer?"),
}
TCP_INFO = each(
    "time_ns stream rtt_us rttvar_us min_rtt_us cwnd ssthresh mss path_mtu unacked lost retransmitted_now retransmissions "
    "reordering delivery_rate_bps pacing_rate_bps data_segments_sent bytes_acked bytes_retransmitted not_sent_bytes busy_us "
    "receive_window_limited_us send_buffer_limited_us",
    "integer",
)
SENDER_END = {**SENDER, "tcp_info~": [TCP_INFO], "streams": [{"stream": "integer", **maybe(SENDER)}]}
RECEIVER_END = {
    **RECEIVER,
    "host_dropped_source": "string?",
    "host_udp_buffer_errors~": "integer?",
    "streams": [{"stream": "integer", **maybe(RECEIVER)}],
}
LOSSES = {
    "blocks_lost": "integer",
    **each("sender_host path receiver_host receiver_program undetermined", "integer?"),
    **each("sender_queue_drops sender_interface_drops receiver_interface_drops", "integer?"),
}
PLAN = {
    "run": "integer",
    **each("protocol direction pacing", "string"),
    "streams": "integer",
    "sizes": ["integer"],
    **each("count bytes burst burst_cap", "integer?"),
    **each("seconds rate_bps rate_pps", "number?"),
    **each("kernel_pacing write_each stop_receiver no_delay authenticate check", "boolean"),
    "host": "string?",
    "address": "string",
    "port": "integer?",
    **each("start_offset_s stagger_s idle_s", "number"),
    **each("bind device df congestion file", "string?"),
    **each("dscp ttl buffer_bytes mss", "integer?"),
    "fq_rate_bps": "number?",
    "offload": "boolean?",
}
CONTENT = {
    "name": "string",
    "bytes": "integer",
    **each("checksum checksum_there", "string?"),
    "checksum_kind": "string",
    "same": "boolean?",
    "written~": "boolean",
    "error": "string?",
}
REPORT = {
    **VERSION,
    "role": "string",
    "test": PLAN,
    "complete": "boolean",
    **each("stopped_by stopped_at error", "string?"),
    "start_ns": "integer",
    **each(
        "blocks_sent blocks_received blocks_lost blocks_out_of_order blocks_duplicate blocks_corrupt bytes_sent bytes_received",
        "integer?",
    ),
    **each("link_bps rtt_us", "integer?"),
    **each("throughput_exceeds_link sending_exceeds_link", "boolean?"),
    "clock": Nullable({"model": "string", "offset_ns": "number", "error_ns": "integer?"}),
    "file~": CONTENT,
    "sender": Nullable(SENDER_END),
    "receiver": Nullable(RECEIVER_END),
    "losses": Nullable(LOSSES),
    "reverse_sender~": Nullable(SENDER_END),
    "reverse_receiver~": Nullable(RECEIVER_END),
    "reverse_losses~": Nullable(LOSSES),
}
INTERVAL = {
    "role": "string",
    "run": "integer",
    **each("way end", "string"),
    **each("from_s to_s rate_kb_s rate_mbit_s", "number"),
    **maybe(each("blocks_sent bytes_sent blocks_received bytes_received", "integer")),
    "blocks_missing~": "number",
    **maybe(each("blocks_out_of_order blocks_duplicate blocks_corrupt", "integer")),
}
# traffic/generator/ttcp/ttcp_transfer.c
TTCP = {
    **each("role protocol peer", "string"),
    **each("peer_port port length align offset bytes io_calls cut_datagrams send_retries sends_refused", "integer"),
    **each("sink_mode complete", "boolean"),
    "ended_by": "string?",
    **RATES,
}

# --- traffic/link/io/link_summary.c, and traffic/lab/

FIDELITY = {
    "valid": "boolean?",
    **each("error_ns_p50 error_ns_p99 error_ns_max", "integer?"),
    **each("overruns restamped bound_ns_p99 bound_ns_max", "integer"),
    "real_time": "boolean",
}
LINK_DIRECTION = {
    **each("from to", "string"),
    **each("packets marked answers passed overruns restamped", "integer"),
    "*": "integer",
}
LINK = {**VERSION, "real_time": "boolean", "directions": [LINK_DIRECTION], "fidelity": FIDELITY}
LAB_LINK = {
    "link": [LINK_DIRECTION],
    "links": {"*": {"*": "any"}},
    "fidelity": FIDELITY,
    "cross": "any",
    "capture_drops": {"*": "any"},
    "disturbances~": ["any"],
}
LAB_ROW = {
    "schema": "string",
    **VERSION,
    **each("profile study case protocol", "string"),
    **each("packet_bytes block_bytes", "integer"),
    **LAB_LINK,
    "published": {"*": "number"},
    "as_published": {"*": "boolean"},
    "*": "number?",
}

# --- capture/status/metrics.c

PACKETS = each(
    "received written queued dropped_kernel dropped_interface dropped_queue dropped_disk received_bytes kernel_received",
    "integer?",
)
CAPTURE_INTERFACE = {
    **each("name state", "string"),
    **PACKETS,
    **each("last_packet_ns carrier_losses mtu speed_bps", "integer?"),
    **each("carrier promiscuous", "boolean?"),
}
CAPTURE = {
    **VERSION,
    "state": "string",
    "time_ns": "integer",
    **PACKETS,
    "file": "string?",
    **each("started_ns last_loss_ns lag_ns bytes files unreadable_leftovers removed_files", "integer?"),
    **each("kept_spans", "integer?"),
    "buffer": each("bytes used_bytes", "integer?"),
    "disk~": each("bytes free_bytes full_ns", "integer?"),
    "ring~": each("files bytes oldest_ns full_ns", "integer?"),
    "finishing~": each("done waiting failed given_up", "integer?"),
    "commands~": each("done waiting failed failing given_up removed_early", "integer?"),
    "clock": {
        "synchronized": "boolean?",
        **each("error_ns steps", "integer?"),
        **each("offset_ns last_step_ns", "number?"),
    },
    "tcp~": each("segments repeated", "integer?"),
    "mirror~": {
        "fault": "string?",
        "good": "boolean?",
        **each("packets foreign_packets segments copies connections one_sided split_tags", "integer?"),
    },
    "interfaces": [CAPTURE_INTERFACE],
}

#: By schema: commands that print it, and its members.
PROGRAM_SHAPES: dict[str, tuple[str, dict[str, Shape]]] = {
    "wiretale.send/1": ("traffic send", REPORT),
    "wiretale.receive/1": ("traffic receive", REPORT),
    "wiretale.interval/1": ("traffic send --interval, and traffic receive --interval", INTERVAL),
    "wiretale.ttcp/1": ("traffic ttcp", TTCP),
    "wiretale.link/1": ("traffic link", LINK),
    "wiretale.capture/1": ("capture --status, and status", CAPTURE),
    "wiretale.lab/1": (
        "lab run of a scenario, or of a study, which has rows",
        {**maybe(LAB_ROW), **VERSION, "rows~": [LAB_ROW]},
    ),
    "wiretale.lab-plan/1": (
        "lab run of a plan",
        {
            **VERSION,
            **each("profile plan experiment before after truth", "string"),
            "complete": "boolean",
            **LAB_LINK,
        },
    ),
    "wiretale.lab-check/1": (
        "lab check",
        {
            **VERSION,
            "cores": "integer?",
            "within_limits": "boolean",
            "trials": [
                {
                    "asked_bps": "number",
                    "carried_bps": "integer?",
                    **each("packets overruns not_delivered", "integer"),
                    **each("error_us_median error_us_p99 error_us_max", "number"),
                    "within_limits": "boolean",
                }
            ],
            "verdict": "string",
        },
    ),
}
