"""Predefined templates of network adapters: ports, cables, links, PCIe.

Sources: the mlx5 driver. What is printed at an ordinary start is a confirmation.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.template import Predefined

_ADDRESS = r"[0-9a-fA-F:.\x01]{1,32}"
_MLX5 = re.compile(rf"mlx5_core (?P<pci>{_ADDRESS}):? ")
_MODULE = re.compile(r"\bmodule (?P<port>\d{1,3}),")

NETWORK: tuple[Predefined, ...] = (
    Predefined(
        id="ib.cable_error",
        name="nic_hardware",
        role="candidate",
        area="network",
        layer="hardware",
        lines=(re.compile(r"Port module event\[error\]: module \d{1,3}, "),),
        more=(_MLX5, _MODULE),
    ),
    Predefined(
        # A port that nobody uses says so at every start.
        id="ib.cable_unplugged",
        name="nic_hardware",
        role="confirmation",
        area="network",
        layer="hardware",
        lines=(re.compile(r"Port module event: module \d{1,3}, Cable unplugged"),),
        more=(_MLX5, _MODULE),
    ),
    Predefined(
        id="ib.link_down",
        name="nic_hardware",
        role="candidate",
        area="network",
        layer="hardware",
        lines=(
            re.compile(r"mlx\d{1,2}_core [^\n]{1,100} Link (?:down|DOWN)\b"),
            re.compile(r"ib(?<!\wib)\w{0,12}: Lost carrier"),
        ),
        more=(
            _MLX5,
            re.compile(r"(?P<device>[\w.-]{1,32}): (?:Port: \d{1,3} )?(?:Link|Lost) (?:down|DOWN|carrier)"),
            re.compile(r"\bPort: (?P<port>\d{1,3}) Link"),
        ),
    ),
    Predefined(
        id="ib.link_up",
        name="nic_hardware",
        role="confirmation",
        area="network",
        layer="hardware",
        lines=(
            re.compile(r"mlx\d{1,2}_core [^\n]{1,100} Link (?:up|UP)\b"),
            re.compile(r"ib(?<!\wib)\w{0,12}: Gained carrier"),
        ),
        more=(
            _MLX5,
            re.compile(r"(?P<device>[\w.-]{1,32}): (?:Port: \d{1,3} )?(?:Link|Gained) (?:up|UP|carrier)"),
            re.compile(r"\bPort: (?P<port>\d{1,3}) Link"),
        ),
    ),
    Predefined(
        id="pcie.bandwidth_limited",
        name="pcie",
        role="confirmation",
        symptom="slowdown",
        area="hardware",
        layer="hardware",
        lines=(re.compile(r"Gb/s available PCIe bandwidth, limited by "),),
        more=(_MLX5,),
    ),
    Predefined(
        id="pcie.insufficient_power",
        name="pcie",
        role="confirmation",
        symptom="slowdown",
        area="hardware",
        layer="hardware",
        lines=(re.compile(r"Detected insufficient power on the PCIe slot"),),
        more=(_MLX5, re.compile(r"\((?P<watts>\d{1,5})W\)")),
    ),
)
