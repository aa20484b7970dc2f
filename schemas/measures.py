"""What metrics of nodes, GPUs and ports mean: one kind over all exporters, base units, sentinels, what counts up.

Metrics keep the names that their source gives them. Producers bring values into base units before they send them, since
only they know the unit that was printed; what is no value is left out by both ends, and whoever contrasts metrics asks
here which of them are the same. Sources: dcgm-exporter's default counters and dcgm_structs.h, nvidia-smi
--help-query-gpu, the kernel's sysfs-class-infiniband, node_exporter's infiniband collector.
"""

from __future__ import annotations

import re

import msgspec

MIB = 2.0**20
_GIGABIT = 1e9 / 8
_PORT_WORDS = 4.0
"""``port_xmit_data`` and ``port_rcv_data`` count words of four bytes in the kernel's files."""
_WIDTHS = (2.0**32, 2.0**64)


class Measure(msgspec.Struct, frozen=True):
    """What a name measures. ``kind`` is one word over all sources, empty where no rule asks for it.

    ``unit`` is that of values on their way, ``factor`` how many of it one printed unit is. A ``counter`` counts up
    from some beginning, by its source's definition; it wraps at 32 or 64 bits of printed units.
    """

    kind: str = ""
    unit: str = "count"
    factor: float = 1.0
    counter: bool = False

    @property
    def moduli(self) -> tuple[float, ...]:
        """At which values it may wrap, in ``unit``."""
        return tuple(width * self.factor for width in _WIDTHS)


def _counter(kind: str = "", unit: str = "count", factor: float = 1.0) -> Measure:
    return Measure(kind, unit, factor, counter=True)


_DCGM = {
    "DEV_XID_ERRORS": Measure("xid", "code"),
    "DEV_GPU_TEMP": Measure("gpu_temperature", "C"),
    "DEV_MEMORY_TEMP": Measure("memory_temperature", "C"),
    "DEV_POWER_USAGE": Measure("", "W"),
    "DEV_TOTAL_ENERGY_CONSUMPTION": _counter("", "J", 1e-3),
    "DEV_SM_CLOCK": Measure("", "MHz"),
    "DEV_MEM_CLOCK": Measure("", "MHz"),
    "DEV_GPU_UTIL": Measure("", "percent"),
    "DEV_MEM_COPY_UTIL": Measure("", "percent"),
    "DEV_ENC_UTIL": Measure("", "percent"),
    "DEV_DEC_UTIL": Measure("", "percent"),
    "DEV_FB_FREE": Measure("", "bytes", MIB),
    "DEV_FB_USED": Measure("", "bytes", MIB),
    "DEV_FB_RESERVED": Measure("", "bytes", MIB),
    "DEV_FB_TOTAL": Measure("", "bytes", MIB),
    "DEV_PCIE_REPLAY_COUNTER": _counter("pcie_replays"),
    # Its unit differs between versions.
    "DEV_NVLINK_BANDWIDTH_TOTAL": _counter("", ""),
    "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": _counter("nvlink_errors"),
    "DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": _counter("nvlink_errors"),
    "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": _counter("nvlink_errors"),
    "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": _counter("nvlink_errors"),
    "DEV_ECC_SBE_VOL_TOTAL": _counter(),
    "DEV_ECC_SBE_AGG_TOTAL": _counter(),
    "DEV_ECC_DBE_VOL_TOTAL": _counter("ecc_uncorrected"),
    "DEV_ECC_DBE_AGG_TOTAL": _counter("ecc_uncorrected"),
    "DEV_UNCORRECTABLE_REMAPPED_ROWS": _counter("rows_remapped_uncorrectable"),
    "DEV_CORRECTABLE_REMAPPED_ROWS": _counter("rows_remapped_correctable"),
    "DEV_ROW_REMAP_FAILURE": Measure("row_remap_failure", "flag"),
    "DEV_ROW_REMAP_PENDING": Measure("", "flag"),
    "DEV_CLOCK_THROTTLE_REASONS": Measure("throttle_reasons", "bits"),
    "DEV_CLOCKS_EVENT_REASONS": Measure("throttle_reasons", "bits"),
    # Nanoseconds by its description; microseconds in some versions.
    "DEV_THERMAL_VIOLATION": _counter("thermal_violation", ""),
    "DEV_POWER_VIOLATION": _counter("", ""),
    "PROF_GR_ENGINE_ACTIVE": Measure("", "ratio"),
    "PROF_SM_ACTIVE": Measure("", "ratio"),
    "PROF_SM_OCCUPANCY": Measure("", "ratio"),
    "PROF_PIPE_TENSOR_ACTIVE": Measure("", "ratio"),
    "PROF_DRAM_ACTIVE": Measure("", "ratio"),
    # Bytes a second; bytes in versions that declare a counter.
    "PROF_PCIE_TX_BYTES": Measure("", "bytes/s"),
    "PROF_PCIE_RX_BYTES": Measure("", "bytes/s"),
    "PROF_NVLINK_TX_BYTES": Measure("", "bytes/s"),
    "PROF_NVLINK_RX_BYTES": Measure("", "bytes/s"),
}
LOST = "nvidia_smi.gpu_lost"
"""Whether nvidia-smi says that a GPU is lost or requires a reset, or cannot read anything of it, twice in a row."""
_NVIDIA_SMI = {
    LOST: Measure("gpu_lost", "flag"),
    "temperature.gpu": Measure("gpu_temperature", "C"),
    "temperature.memory": Measure("memory_temperature", "C"),
    "utilization.gpu": Measure("", "percent"),
    "utilization.memory": Measure("", "percent"),
    "memory.used": Measure("", "bytes", MIB),
    "memory.free": Measure("", "bytes", MIB),
    "memory.total": Measure("", "bytes", MIB),
    "memory.reserved": Measure("", "bytes", MIB),
    "power.draw": Measure("", "W"),
    "power.limit": Measure("", "W"),
    "fan.speed": Measure("", "percent"),
    "pstate": Measure("", ""),
    "clocks.sm": Measure("", "MHz"),
    "clocks.gr": Measure("", "MHz"),
    "clocks.mem": Measure("", "MHz"),
    "pcie.link.width.current": Measure("pcie_width", "lanes"),
    "pcie.link.gen.current": Measure("", ""),
    "ecc.errors.corrected.volatile.total": _counter(),
    "ecc.errors.corrected.aggregate.total": _counter(),
    "ecc.errors.uncorrected.volatile.total": _counter("ecc_uncorrected"),
    "ecc.errors.uncorrected.aggregate.total": _counter("ecc_uncorrected"),
    "remapped_rows.correctable": _counter("rows_remapped_correctable"),
    "remapped_rows.uncorrectable": _counter("rows_remapped_uncorrectable"),
    "remapped_rows.pending": Measure("", "flag"),
    "remapped_rows.failure": Measure("row_remap_failure", "flag"),
    "clocks_event_reasons.active": Measure("throttle_reasons", "bits"),
    "clocks_event_reasons.sw_power_cap": Measure("", "flag"),
    "clocks_event_reasons.hw_slowdown": Measure("throttle_hw_slowdown", "flag"),
    "clocks_event_reasons.hw_thermal_slowdown": Measure("throttle_hw_thermal", "flag"),
    "clocks_event_reasons.hw_power_brake_slowdown": Measure("throttle_power_brake", "flag"),
    "clocks_event_reasons.sw_thermal_slowdown": Measure("throttle_sw_thermal", "flag"),
}
_PORT_COUNTERS = {
    "link_downed": "link_downed",
    "link_error_recovery": "link_errors",
    "local_link_integrity_errors": "link_errors",
    "symbol_error": "symbol_errors",
    "port_rcv_errors": "receive_errors",
    "port_errors_received": "receive_errors",
}
_PORT_DATA = {"port_rcv_data", "port_xmit_data"}
_PORT = {
    "state": Measure("port_state", "state"),
    "phys_state": Measure("port_physical_state", "state"),
    "rate": Measure("port_rate", "bytes/s", _GIGABIT),
}
"""What a port says of itself in files of the kernel; everything else there is a counter."""
_NODE = {
    "state_id": Measure("port_state", "state"),
    "physical_state_id": Measure("port_physical_state", "state"),
    "rate_bytes_per_second": Measure("port_rate", "bytes/s"),
}
_HOST = {
    "node_load1": Measure("", ""),
    "node_memory_MemAvailable_bytes": Measure("", "bytes"),
    "node_memory_MemTotal_bytes": Measure("", "bytes"),
    "node_vmstat_oom_kill": _counter("oom_kills"),
    "node_pressure_cpu_waiting_seconds_total": _counter("", "s"),
    "node_pressure_io_waiting_seconds_total": _counter("", "s"),
    "node_pressure_memory_waiting_seconds_total": _counter("", "s"),
    "node_network_up": Measure("", "flag"),
    "node_network_carrier_changes_total": _counter(),
    "node_network_receive_bytes_total": _counter("", "bytes"),
    "node_network_transmit_bytes_total": _counter("", "bytes"),
    "node_network_receive_errs_total": _counter(),
    "node_network_transmit_errs_total": _counter(),
    "node_network_receive_drop_total": _counter(),
    "node_network_transmit_drop_total": _counter(),
    "node_edac_uncorrectable_errors_total": _counter("host_memory_errors"),
}
KERNELS_PORT = "infiniband_"
"""How a file of a port is called as a metric: ``infiniband_link_downed``."""
_NODES_PORT = "node_infiniband_"
_OLD_REASONS = "clocks_throttle_reasons."


def measure_of(name: str) -> Measure | None:
    """What a metric of this name measures, null where nothing is known of it."""
    if name.startswith(_NODES_PORT):
        return _port_of_node(name.removeprefix(_NODES_PORT))
    if name.startswith(KERNELS_PORT):
        return _port_of_kernel(name.removeprefix(KERNELS_PORT))
    if name[:5].upper() == "DCGM_":
        return _DCGM.get(_dcgm(name))
    if name.startswith(_OLD_REASONS):
        name = f"clocks_event_reasons.{name.removeprefix(_OLD_REASONS)}"
    return _HOST.get(name) or _NVIDIA_SMI.get(name)


def _dcgm(name: str) -> str:
    """The name as ``DEV_GPU_TEMP``; before 2.0 the exporter printed ``dcgm_gpu_temp``."""
    short = name[5:].upper()
    return short.removeprefix("FI_") if short.startswith("FI_") else f"DEV_{short}"


def _port_of_node(short: str) -> Measure | None:
    if short in _NODE:
        return _NODE[short]
    if not short.endswith("_total"):
        return None
    unit = "bytes" if short.endswith("_bytes_total") else "count"
    return _counter(_PORT_COUNTERS.get(short.removesuffix("_total"), ""), unit)


def _port_of_kernel(short: str) -> Measure:
    if short in _PORT:
        return _PORT[short]
    if short in _PORT_DATA:
        return _counter("", "bytes", _PORT_WORDS)
    return _counter(_PORT_COUNTERS.get(short, ""))


_BASE = {
    "%": ("percent", 1.0),
    "b": ("bytes", 1.0),
    "kib": ("bytes", 2.0**10),
    "mib": ("bytes", MIB),
    "gib": ("bytes", 2.0**30),
    "ns": ("s", 1e-9),
    "us": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "mw": ("W", 1e-3),
    "w": ("W", 1.0),
    "mj": ("J", 1e-3),
    "mhz": ("MHz", 1.0),
    "ghz": ("MHz", 1e3),
    "c": ("C", 1.0),
}


def based(value: float, printed: str, measure: Measure) -> tuple[float, str]:
    """A printed value in base units, with its unit; ``printed`` is the unit beside it, empty where there was none.

    What is printed counts before what a name is known for. Megahertz, degrees and percent stay, as the field has them.
    """
    known = _BASE.get(printed.strip().lower())
    if known is not None:
        return value * known[1], known[0]
    if printed.strip():
        return value, printed.strip()
    return value * measure.factor, measure.unit


_INT32, _INT64, _FP64 = 0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, float(1 << 47)
_ALL_ONES = (float(2**32 - 1), float(2**64 - 1))
_SHORT_ONES = float(2**16 - 1)
_REGISTERS = re.compile(r"(?i:dcgm_)|(?:node_)?infiniband_")


_NEVER_BELOW_0 = frozenset({"bytes", "MHz", "percent", "ratio", "W"})


def is_blank(name: str, value: float, unit: str = "") -> bool:
    """Whether a value stands for one that is not known, or not supported; ``unit`` is that of a value on its way.

    DCGM has such values in three sizes, sixteen each (``DCGM_INT32_BLANK`` and so on). Registers of a device that does
    not answer read as all ones, and error counters of a port stay there once they are full. Whoever samples may write
    -1 or all ones for what it could not: no amount is negative, and only of bytes there may be as many as 32 bits hold.
    """
    if unit in _NEVER_BELOW_0 and (value < 0 or value == _ALL_ONES[1] or (value == _ALL_ONES[0] and unit != "bytes")):
        return True
    found = _REGISTERS.match(name)
    if found is None:
        return False
    if value in _ALL_ONES:
        return True
    if found.group().lower() == "dcgm_":
        return 0 <= value - _INT32 < 16 or 0 <= value - _FP64 < 16 or abs(value - _INT64) <= 1024
    measure = measure_of(name)
    return value == _SHORT_ONES and measure is not None and measure.counter and measure.kind != ""
