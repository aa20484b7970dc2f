"""Versions of libraries, drivers and frameworks in the lines in which they introduce themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator

_VERSIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("nccl", re.compile(r"(?<![A-Za-z])NCCL version (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)")),
    ("cuda", re.compile(r"NCCL version [\d.]{3,12}\+cuda(\d{1,3}\.\d{1,3})")),
    ("rccl", re.compile(r"RCCL version : ?(\d[\w.]{1,40})")),
    (
        "torch",
        re.compile(r"(?:(?<!\w)(?:PyTorch|Torch|torch) version ?(?:\.{2,60} |[:=] ?|is )|torch==)(\d[\w.+]{1,60})"),
    ),
    (
        "cuda",
        re.compile(
            r"(?:CUDA used to build PyTorch: |torch cuda version \.{2,60} |CUDA runtime version: |[Cc]uda version[:=] )"
            r"(\d{1,3}\.\d{1,3})"
        ),
    ),
    (
        "driver",
        re.compile(r"(?:Nvidia driver version: |Driver Version: {1,8}|NCCL INFO cudaDriverVersion )(\d[\w.]{1,30})"),
    ),
    ("python", re.compile(r"(?<![\w.])Python version: (\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)")),
    ("transformers", re.compile(r"(?:(?<!\w)[Tt]ransformers version:? |\"transformers_version\": \")(\d[\w.+]{1,40})")),
    (
        "deepspeed",
        re.compile(r"(?:DeepSpeed info: version=|deepspeed info \.{2,60} |deepspeed version[:=] ?)(\d[\w.+]{1,40})"),
    ),
    ("megatron-core", re.compile(r"[Mm]egatron[- ][Cc]ore version[:=]? ?(\d[\w.+]{1,40})")),
    ("torchtitan", re.compile(r"torchtitan version: ?(\d[\w.+]{1,40})")),
    ("vllm", re.compile(r"vLLM (?:API server )?version v?(\d[\w.+]{1,40})")),
    ("ray", re.compile(r"\bray version[:=] ?(\d[\w.+]{1,40})")),
)


def versions_in(line: str) -> Iterator[tuple[str, str]]:
    """Names and versions that a line tells."""
    if "ersion" in line or "torch==" in line:
        for name, pattern in _VERSIONS:
            if (found := pattern.search(line)) is not None:
                yield name, found[1].rstrip(".+")
