"""Reads which glibc symbols a binary needs, and for which machine it is: no readelf, no package."""

import struct
from pathlib import Path

MACHINES = {62: "x86-64", 183: "arm64"}
GNU_VERNEED = 0x6FFFFFFE


class NotElf(ValueError):
    """Not a 64-bit little-endian ELF file."""


def _sections(data):
    """(type, offset, size, link) of each section."""
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    for index in range(count):
        at = table + index * size
        kind, = struct.unpack_from("<I", data, at + 4)
        offset, length = struct.unpack_from("<QQ", data, at + 0x18)
        link, = struct.unpack_from("<I", data, at + 0x28)
        yield kind, offset, length, link


def _text(data, at):
    return data[at:data.index(b"\0", at)].decode()


def _needed_versions(data, offset, strings):
    """The version names of a .gnu.version_r section."""
    while True:
        _, count, _, first, following = struct.unpack_from("<HHIII", data, offset)
        entry = offset + first
        for _ in range(count):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, entry)
            yield _text(data, strings + name)
            entry += step
        if not following:
            return
        offset += following


def inspect(path):
    """(machine, highest GLIBC version as a tuple or None) of a binary."""
    data = Path(path).read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise NotElf(f"{path} is not a 64-bit little-endian ELF file")
    machine, = struct.unpack_from("<H", data, 0x12)
    sections = list(_sections(data))
    versions = [
        tuple(int(part) for part in name.removeprefix("GLIBC_").split("."))
        for kind, offset, _, link in sections if kind == GNU_VERNEED
        for name in _needed_versions(data, offset, sections[link][1])
        if name.startswith("GLIBC_") and name[6:7].isdigit()
    ]
    return MACHINES.get(machine, f"machine {machine}"), max(versions, default=None)
