"""Which device a worker says that it uses: NCCL prints the PCI id of each rank's GPU when it starts.

``… ncclCommInitRank comm 0x55… rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x… - Init COMPLETE``: the id is
one hexadecimal number, function in the last digit, then two digits each of device and bus, then the domain.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.xid import pci_id

_BUS = re.compile(r"NCCL INFO [^\n]{0,400}? busId ([0-9a-fA-F]{3,16})\b")
_PCI = re.compile(r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?")


def tells_device(text: str) -> bool:
    """Whether a line may tell a device; folded lines as well."""
    return "NCCL INFO" in text and " busId " in text


def device_of(text: str) -> str:
    """The PCI id that a line tells, ``0000:1b:00.0``, or nothing."""
    found = _BUS.search(text[:1_000])
    if found is None:
        return ""
    number = int(found.group(1), 16)
    domain, bus, device, function = number >> 20, number >> 12 & 0xFF, number >> 4 & 0xFF, number & 0xF
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


def pci_of(device: str) -> str:
    """A metric's device as a PCI id in one form, or nothing where it is called otherwise."""
    return pci_id(device) if _PCI.fullmatch(device) else ""
