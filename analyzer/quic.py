# SPDX-License-Identifier: Apache-2.0
"""Server name and ALPN of QUIC's ClientHello, decrypted from the client's Initials (RFC 9001 section 5, RFC 9369).

The keys of Initials come from a salt of the version and the connection ID that the client chose, so that anyone on the path
can read them. AES comes from the library cryptography (extra `quic`). The core keeps at most 4 kB of Initials a
flow; its parts of the ClientHello are put in order by their offsets. All of it is hostile: a packet that does not decrypt,
or whose frames end early, is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from wiretale.analyzer import _core

V1_SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
V2_SALT = bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9")
DRAFT_29_SALT = bytes.fromhex("afbfec289993d24c9e9786f19c6111e04390a899")
DRAFT_23_SALT = bytes.fromhex("c3eef712c72ebb5a11a7d2432bb46365bef9f502")
V1, V2 = 1, 0x6B3343CF
DRAFTS = (0xFF0000, 0x454747)  # families of versions that are numbered by their draft: the IETF's, quant's

PADDING, PING, ACK, ACK_ECN, CRYPTO = 0, 1, 2, 3, 6
NAME_MAX, ALPN_MOST = 255, 16  # bytes of a name, offers
CRYPTO_MAX = 16_384  # bytes of the ClientHello
CLIENT_HELLO, SERVER_NAME, ALPN = 1, 0, 16


class Hello(NamedTuple):
    """The part of a ClientHello that is shown; a name is None if there is none or if it was not captured."""

    server_name: bytes | None
    alpn: list[bytes]


class Keys(NamedTuple):
    """The client's keys of one connection ID and version."""

    key: bytes
    iv: bytes
    header: bytes


class Packet(NamedTuple):
    """An Initial before decryption."""

    version: int
    destination: bytes
    bytes: bytes
    number_at: int  # offset of the packet number


class Reader:
    """Bytes that are read from the front; raises ValueError at their end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise ValueError("the bytes end early")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def varint(self) -> int:
        """RFC 9000 section 16."""
        first = self.number(1)
        tail = (1 << (first >> 6)) - 1
        return (first & 0x3F) << 8 * tail | self.number(tail)

    def sized(self, size: int) -> Reader:
        """The bytes behind their length, which is a number of `size` bytes."""
        return Reader(self.take(self.number(size)))

    def skip_zeros(self) -> None:
        """Most Initials are padded to 1200 bytes, and a frame per byte would cost most of the time."""
        self.at = len(self.data) - len(self.data[self.at :].lstrip(b"\0"))

    @property
    def left(self) -> int:
        return len(self.data) - self.at


def salt_of(version: int) -> bytes | None:
    """The salt of a version; None if it is not known."""
    if version in (V1, V2):
        return V1_SALT if version == V1 else V2_SALT
    draft = version & 0xFF if version >> 8 in DRAFTS else 0
    if 23 <= draft <= 28:
        return DRAFT_23_SALT
    if 29 <= draft <= 34:
        return DRAFT_29_SALT if draft <= 32 else V1_SALT
    return None


def hmac_sha256(key: bytes, data: bytes) -> bytes:
    """Imports only if it is used, because the import loads OpenSSL: 3 MB that most captures do not need."""
    import hmac

    return hmac.digest(key, data, "sha256")


def expand(secret: bytes, label: str, size: int) -> bytes:
    """HKDF-Expand-Label of SHA-256 (RFC 8446 section 7.1), for one block."""
    name = b"tls13 " + label.encode()
    info = size.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0\1"
    return hmac_sha256(secret, info)[:size]


def client_keys(version: int, destination: bytes) -> Keys | None:
    """The keys of RFC 9001 section 5.2; None if the version is not known."""
    salt = salt_of(version)
    if salt is None:
        return None
    initial = hmac_sha256(salt, destination)
    secret = expand(initial, "client in", 32)
    prefix = "quicv2" if version == V2 else "quic"
    return Keys(
        expand(secret, f"{prefix} key", 16), expand(secret, f"{prefix} iv", 12), expand(secret, f"{prefix} hp", 16)
    )


def read_packet(data: bytes) -> Packet:
    """Reads the header of an Initial, which the core has checked."""
    reader = Reader(data)
    reader.take(1)
    version = reader.number(4)
    destination = reader.take(reader.number(1))
    reader.take(reader.number(1))
    reader.take(reader.varint())
    length = reader.varint()
    number_at = reader.at
    return Packet(version, destination, data[:number_at] + reader.take(length), number_at)


def decrypt(packet: Packet, keys: Keys) -> bytes | None:
    """Removes header protection and decrypts (RFC 9001 sections 5.3 and 5.4); None if the keys do not fit."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    data, at = packet.bytes, packet.number_at
    sample = data[at + 4 : at + 20]
    if len(sample) < 16:
        return None
    mask = Cipher(AES(keys.header), ECB()).encryptor().update(sample)
    first = data[0] ^ mask[0] & 0x0F
    size = (first & 3) + 1
    number = bytes(a ^ b for a, b in zip(data[at : at + size], mask[1:], strict=False))
    header = bytes([first]) + data[1:at] + number
    nonce = (int.from_bytes(keys.iv, "big") ^ int.from_bytes(number, "big")).to_bytes(12, "big")
    try:
        return AESGCM(keys.key).decrypt(nonce, data[at + size :], header)
    except InvalidTag:
        return None


def skip_ack(reader: Reader, ecn: bool) -> None:
    """RFC 9000 section 19.3: ranges are pairs of a gap and a length."""
    reader.varint(), reader.varint()
    ranges = reader.varint()
    reader.varint()
    for _ in range(min(2 * ranges, reader.left) + (3 if ecn else 0)):
        reader.varint()


def crypto_frames(plain: bytes) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each CRYPTO frame, up to the first frame that an Initial cannot have."""
    reader = Reader(plain)
    try:
        while reader.left:
            kind = reader.varint()
            if kind in (ACK, ACK_ECN):
                skip_ack(reader, kind == ACK_ECN)
            elif kind == CRYPTO:
                offset = reader.varint()
                yield offset, reader.take(reader.varint())
            elif kind == PADDING:
                reader.skip_zeros()
            elif kind != PING:
                return
    except ValueError:
        return


def reassemble(parts: list[tuple[int, bytes]]) -> bytes:
    """The bytes from offset 0 to the first that is missing."""
    joined = bytearray()
    for offset, part in sorted(parts):
        end = offset + len(part)
        if offset > len(joined) or end > CRYPTO_MAX:
            break
        if end > len(joined):
            joined += part[len(joined) - offset :]
    return bytes(joined)


def read_extension(kind: int, body: Reader, hello: Hello) -> Hello:
    """RFC 6066 section 3 and RFC 7301 section 3.1."""
    if kind == SERVER_NAME:
        names = body.sized(2)
        if names.number(1) == 0:  # host_name
            return hello._replace(server_name=names.take(names.number(2)))
    elif kind == ALPN:
        offers = body.sized(2)
        while offers.left:
            hello.alpn.append(offers.take(offers.number(1)))
    return hello


def read_hello(message: bytes) -> Hello:
    """Reads a ClientHello (RFC 8446 section 4.1.2) as far as it was captured."""
    hello = Hello(None, [])
    reader = Reader(message)
    try:
        if reader.number(1) != CLIENT_HELLO:
            return hello
        reader.take(3 + 2 + 32)  # length, version, random
        reader.sized(1)  # session id
        reader.sized(2)  # cipher suites
        reader.sized(1)  # compression
        reader.take(2)  # length of the extensions
        while reader.left:
            kind = reader.number(2)
            hello = read_extension(kind, reader.sized(2), hello)
    except ValueError:
        pass
    return hello


def split(initials: bytes) -> Iterator[bytes]:
    """The packets that the core kept, each behind its size."""
    reader = Reader(initials)
    while reader.left:
        yield reader.take(reader.number(2))


def client_hello(initials: bytes) -> Hello | None:
    """The ClientHello of a flow's Initials; None if none could be decrypted.

    Later Initials may have another destination, but the keys stay those of the first.
    """
    keys: Keys | None = None
    parts: list[tuple[int, bytes]] = []
    for data in split(initials):
        try:
            packet = read_packet(data)
        except ValueError:
            continue
        plain = decrypt(packet, keys) if keys else None
        if plain is None and (fresh := client_keys(packet.version, packet.destination)):
            plain = decrypt(packet, fresh)
            keys = fresh if plain is not None else keys
        if plain is not None:
            parts += crypto_frames(plain)
    return read_hello(reassemble(parts)) if parts else None


def printable_name(name: bytes) -> str:
    """A name as the core escapes those of TLS: other bytes than printable ASCII become \\DDD; one that is cut ends in `…`."""
    plain = (chr(byte) if 0x20 < byte < 0x7F and byte != 0x5C else f"\\{byte:03}" for byte in name[:NAME_MAX])
    return "".join(plain) + "…" * (len(name) > NAME_MAX)


def names_of(initials: bytes) -> tuple[str | None, str | None]:
    """Server name and ALPN offers, separated by commas, as the tables hold them."""
    hello = client_hello(initials) or Hello(None, [])
    name = printable_name(hello.server_name) if hello.server_name else None
    offers = [*map(printable_name, hello.alpn[:ALPN_MOST]), *["…"] * (len(hello.alpn) > ALPN_MOST)]
    return name, ",".join(offers) or None


def has_library() -> bool:
    """Whether the library cryptography is installed."""
    from importlib.util import find_spec

    return find_spec("cryptography") is not None


def name_servers(core: _core.Analysis) -> None:
    """Fills server_name and alpn of QUIC flows; without the library they stay null, which the finding quic-names-unread says."""
    is_installed = functools.cache(has_library)  # the search takes a while: only if there are Initials
    core.name_servers(lambda initials: names_of(initials) if is_installed() else (None, None))
