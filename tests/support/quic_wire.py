# SPDX-License-Identifier: Apache-2.0
"""Initials of QUIC, sealed as a client does (RFC 9001 section 5), and the ClientHello in them."""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

V1, V2 = 1, 0x6B3343CF
SALTS = {
    V1: "38762cf7f55934b34d179ae6a4c80cadccbb7f0a",
    V2: "0dede3def700a6db819381be6e269dcbf9bd2ed9",
    0xFF00001D: "afbfec289993d24c9e9786f19c6111e04390a899",
    0xFF000017: "c3eef712c72ebb5a11a7d2432bb46365bef9f502",
}


def varint(value: int) -> bytes:
    """In two bytes or four."""
    return (value | 0x4000).to_bytes(2, "big") if value < 0x4000 else (value | 0x8000_0000).to_bytes(4, "big")


def sized(body: bytes, size: int = 2) -> bytes:
    return len(body).to_bytes(size, "big") + body


def hello(server_name: bytes | None, alpn: tuple[bytes, ...] = (), filler: int = 0) -> bytes:
    """A ClientHello; the filler comes before the names."""
    extensions = b"\x00\x15" + sized(bytes(filler))
    if server_name is not None:
        extensions += b"\x00\x00" + sized(sized(b"\0" + sized(server_name)))
    if alpn:
        extensions += b"\x00\x10" + sized(sized(b"".join(sized(name, 1) for name in alpn)))
    body = b"\x03\x03" + bytes(32) + b"\0" + sized(b"\x13\x01") + b"\x01\x00" + sized(extensions)
    return b"\x01" + sized(body, 3)


def crypto(offset: int, data: bytes) -> bytes:
    return b"\x06" + varint(offset) + varint(len(data)) + data


def expand(secret: bytes, label: str, size: int) -> bytes:
    name = f"tls13 {label}".encode()
    return HKDFExpand(hashes.SHA256(), size, size.to_bytes(2, "big") + sized(name, 1) + b"\0").derive(secret)


def keys(version: int, destination: bytes, end: str = "client in") -> tuple[bytes, bytes, bytes]:
    extract = HMAC(bytes.fromhex(SALTS[version]), hashes.SHA256())
    extract.update(destination)
    secret = expand(extract.finalize(), end, 32)
    prefix = "quicv2" if version == V2 else "quic"
    return expand(secret, f"{prefix} key", 16), expand(secret, f"{prefix} iv", 12), expand(secret, f"{prefix} hp", 16)


def initial(
    frames: bytes,
    number: int = 0,
    version: int = V1,
    destination: bytes = b"original",
    source: bytes = b"client",
    key_id: bytes | None = None,
    size: int = 1200,
    end: str = "client in",
) -> bytes:
    """A client's Initial of that many bytes, padded inside; `key_id` is the connection ID of its keys; `end`: or a server's."""
    key, iv, protection = keys(version, key_id or destination, end)
    first = 0xC3 | (0x10 if version == V2 else 0)
    ids = sized(destination, 1) + sized(source, 1)
    length = size - (1 + 4 + len(ids) + 1 + 2)
    header = bytes([first]) + version.to_bytes(4, "big") + ids + b"\0" + varint(length) + number.to_bytes(4, "big")
    plain = frames + bytes(length - 4 - 16 - len(frames))
    nonce = (int.from_bytes(iv, "big") ^ number).to_bytes(12, "big")
    sealed = AESGCM(key).encrypt(nonce, plain, header)
    mask = Cipher(AES(protection), ECB()).encryptor().update(sealed[:16])
    masked = bytes([first ^ mask[0] & 0x0F]) + header[1:-4]
    return masked + bytes(a ^ b for a, b in zip(header[-4:], mask[1:5], strict=True)) + sealed
