"""Xid codes as the vendor's catalog describes them, with its immediate action, and PCI ids in one form.

Source: NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors), column *immediate action*. A code whose action is to
ignore it supports a finding and accuses nobody; a *follower* speaks of the error before it on the same GPU.
"""

from __future__ import annotations

import re

import msgspec

from schemas.results import Area, CausalRole


class Code(msgspec.Struct, frozen=True):
    """What a code means, what the vendor says to do at once, and on which side the trouble likely is."""

    description: str
    action: str
    area: Area = "hardware"

    @property
    def role(self) -> CausalRole:
        """Whether the code can be a cause."""
        return "confirmation" if self.action in ("IGNORE", *FOLLOWED) else "candidate"


FOLLOWED = ("WORKFLOW_XID_45", "XID_154")
"""Actions of the followers: what is to be done hangs on the code before."""

_NVLINK = "WORKFLOW_NVLINK5_ERR"

CODES: dict[int, Code] = {
    13: Code("Graphics Engine Exception", "RESTART_APP", "code"),
    31: Code("GPU memory page fault", "RESTART_APP", "code"),
    43: Code("GPU stopped processing", "IGNORE", "code"),
    45: Code("Preemptive cleanup, due to previous errors", "WORKFLOW_XID_45"),
    48: Code("Double Bit ECC Error", "WORKFLOW_XID_48"),
    62: Code("Internal micro-controller halt", "RESET_GPU"),
    63: Code("Memory remapping event", "IGNORE"),
    64: Code("Memory remapping failure", "RESET_GPU"),
    74: Code("NVLINK Error", "WORKFLOW_NVLINK_ERR"),
    79: Code("GPU has fallen off the bus", "RESTART_BM"),
    92: Code("High single-bit ECC error rate", "IGNORE"),
    94: Code("Contained memory error", "RESTART_APP"),
    95: Code("Uncontained memory error", "RESET_GPU"),
    109: Code("Context Switch Timeout Error", "RESET_GPU"),
    119: Code("GSP RPC Timeout", "RESET_GPU"),
    120: Code("GSP Error", "RESET_GPU"),
    137: Code("NVLink Privilege Error", "IGNORE"),
    140: Code("ECC Unrecovered Error", "RESET_GPU"),
    144: Code("NVLINK: SAW Error", _NVLINK),
    145: Code("NVLINK: RLW Error", _NVLINK),
    146: Code("NVLINK: TLW Error", _NVLINK),
    147: Code("NVLINK: TREX Error", _NVLINK),
    148: Code("NVLINK: NVLPW_CTRL Error", _NVLINK),
    149: Code("NVLINK: NETIR Error", _NVLINK),
    150: Code("NVLINK: MSE Error", _NVLINK),
    154: Code("GPU Recovery Action Changed", "XID_154"),
    156: Code("Resource Retirement Event", "RESET_GPU"),
    157: Code("Resource Retirement Failure", "IGNORE"),
}

FOLLOWERS = frozenset(code for code, known in CODES.items() if known.action in FOLLOWED)

UNKNOWN = Code("", "")
"""A code that is not in the table: a GPU says that something is wrong, nobody here knows what."""

_PCI = re.compile(
    r"(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})(?:\.(?P<function>[0-7]))?", re.I
)


def code_of(number: str) -> Code:
    """What is known of a printed number."""
    return CODES.get(int(number), UNKNOWN)


def pci_id(printed: str) -> str:
    """A PCI id as the kernel's file system has it, ``0000:0f:00.0``; as it was printed where it is none.

    The driver leaves out the function, nvidia-smi and DCGM print eight digits of domain and capitals.
    """
    found = _PCI.fullmatch(printed.removeprefix("PCI:").rstrip(":."))
    if found is None:
        return printed
    domain, bus, device = (int(found.group(name) or "0", 16) for name in ("domain", "bus", "device"))
    return f"{domain:04x}:{bus:02x}:{device:02x}.{found.group('function') or '0'}"
