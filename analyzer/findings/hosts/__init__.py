# SPDX-License-Identifier: Apache-2.0
"""Rules about hosts and their network beside TCP: ARP and neighbor discovery, DHCP, pings, multicast, Wi-Fi."""
