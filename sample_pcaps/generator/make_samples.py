# SPDX-License-Identifier: Apache-2.0
"""Makes the sample captures in the folder above this one, and their truth; every run must give the same bytes.

python sample_pcaps/generator/make_samples.py [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import block_cases
import capture_cases
import conversation_cases
import fragment_cases
import tcp_cases

SAMPLES: dict[str, Callable[[Path], None]] = {
    "tcp_losses.pcap": tcp_cases.make_tcp_losses,
    "udp_fragments.pcap": fragment_cases.make_udp_fragments,
    "vlan_ipv6.pcap": conversation_cases.make_vlan_ipv6,
    "two_interfaces.pcapng": conversation_cases.make_two_interfaces,
    "damaged.pcap": tcp_cases.make_damaged,
    "fast_retransmissions.pcap": tcp_cases.make_fast_retransmissions,
    "timeouts.pcap": tcp_cases.make_timeouts,
    "lost_tail.pcap": tcp_cases.make_lost_tail,
    "go_back_n.pcap": tcp_cases.make_go_back_n,
    "tail_loss_probes.pcapng": tcp_cases.make_tail_loss_probes,
    "reordering.pcap": tcp_cases.make_reordering,
    "network_duplicate.pcap": tcp_cases.make_network_duplicate,
    "zero_window.pcap": tcp_cases.make_zero_window,
    "window_full.pcap": tcp_cases.make_window_full,
    "keep_alives.pcapng": tcp_cases.make_keep_alives,
    "capture_drops.pcapng": capture_cases.make_capture_drops,
    "super_segments.pcap": capture_cases.make_super_segments,
    "mirror_port.pcap": capture_cases.make_mirror_port,
    "mirror_router.pcap": capture_cases.make_mirror_router,
    "vxlan_loss.pcap": capture_cases.make_vxlan_loss,
    "ip_fragments.pcap": fragment_cases.make_ip_fragments,
    "udp_blocks.pcap": block_cases.make_udp_blocks,
    "tcp_blocks.pcapng": block_cases.make_tcp_blocks,
}


def make_all(folder: Path) -> None:
    for name, make in SAMPLES.items():
        make(folder / name)


if __name__ == "__main__":
    make_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
