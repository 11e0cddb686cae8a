# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms are Crypto-PAn's: those of the sample trace in its distribution, but for the bits that stay (docs/cut.md).

The addresses of IPv6, which the distribution lacks, are those on which other implementations agree.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.utils import rdpcap

from crafted import ether, write_timed

KEY = bytes.fromhex("1522178d33a4cf80130a5b1649907d10d8988f83797965276257 4c2d2a842202")
PSEUDONYMS = """
128.11.68.132 135.242.180.132   129.118.74.4 134.136.186.123    130.132.252.244 133.68.164.234  141.223.7.43 141.167.8.160
141.233.145.108 141.129.237.235 152.163.225.39 151.140.114.167  156.29.3.236 147.225.12.42      165.247.96.84 162.9.99.234
166.107.77.190 160.132.178.185  192.102.249.13 252.138.62.131   192.215.32.125 252.43.47.189    192.233.80.103 252.25.108.8
192.41.57.43 252.222.221.184    193.150.244.223 253.169.52.216  195.205.63.100 255.186.223.5    198.200.171.101 249.199.68.213
202.49.198.20 245.206.7.234     207.105.49.5 241.118.205.138    208.147.89.59 227.237.98.191    216.254.18.172 235.7.16.162
24.0.250.221 100.15.198.226     38.15.67.68 64.3.66.187         4.3.88.225 124.60.155.63        63.14.55.111 95.9.215.7
64.14.118.196 0.255.183.58      64.39.15.238 0.219.7.41         10.185.25.118 117.161.29.118
::2 78ff:f001:9fc0:20df:8380:b1f1:704:ef            ::ffff 78ff:f001:9fc0:20df:8380:b1f1:704:f838
2001:db8::1 4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e   2001:db8::2 4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c
"""


def kept_bits(first: int) -> int:
    """The mask of the bits of the first byte of an IPv4 address that stay: up to the first 0, at most four."""
    leading = f"{first:08b}".index("0") if first != 0xFF else 8
    return 0xF0 if leading >= 4 else (0xFF << (7 - leading)) & 0xFF


def expected(original: str, pseudonym: str) -> str:
    """The pseudonym with the bits that stay."""
    before, after = ip_address(original), bytearray(ip_address(pseudonym).packed)
    mask = kept_bits(before.packed[0]) if before.version == 4 else 0x80
    after[0] = (after[0] & ~mask) | (before.packed[0] & mask)
    return str(ip_address(bytes(after)))


def test_addresses_get_the_pseudonyms_of_the_sample_trace(wiretale_run: Any, tmp_path: Path) -> None:
    words = PSEUDONYMS.split()
    pairs = list(zip(words[::2], words[1::2], strict=True))
    timed = [
        (
            number / 10,
            ether(
                (IPv6 if ":" in address else IP)(src=address, dst="ff02::1" if ":" in address else "0.0.0.0") / UDP()
            ),
        )
        for number, (address, _) in enumerate(pairs)
    ]
    key, public = tmp_path / "key", tmp_path / "public.pcapng"
    key.write_bytes(KEY)
    done = wiretale_run("cut", write_timed(tmp_path / "private.pcap", timed), "--anonymize", "--key", key, "-o", public)
    assert done.returncode == 0, done.stderr
    pseudonyms = [packet.payload.src for packet in rdpcap(str(public))]
    assert pseudonyms == [expected(*pair) for pair in pairs]
