"""Predefined templates of file systems: Lustre, Storage Scale (GPFS), NFS. What commonly passes is a confirmation.

Sources: Lustre's client, IBM Storage Scale's messages.
"""

from __future__ import annotations

import re

from streams.lines.vocabulary.template import Predefined

STORAGE: tuple[Predefined, ...] = (
    Predefined(
        id="lustre.evicted",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        lines=(re.compile(r"This client was evicted by (?P<target>[^\s;,]{1,100})"),),
    ),
    Predefined(
        id="lustre.connection_lost",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lustre: [^\n]{0,300}Connection to (?P<target>\S{1,100}) \(at [^\n]{1,100}\) was lost"),),
    ),
    Predefined(
        id="lustre.connection_restored",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lustre: [^\n]{0,300}Connection restored to (?P<target>\S{1,100})"),),
    ),
    Predefined(
        id="lustre.slow_reply",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lustre: [^\n]{0,300}Request sent has (?:timed out|failed)"),),
    ),
    Predefined(
        id="lustre.operation_failed",
        name="storage",
        role="confirmation",
        area="data",
        layer="platform",
        lines=(
            re.compile(
                r"LustreError: [^\n]{0,300} operation (?P<operation>\S{1,40}) to node [^\n]{1,200}failed: rc = "
            ),
        ),
    ),
    Predefined(
        id="lustre.network",
        name="storage",
        role="confirmation",
        area="network",
        layer="platform",
        lines=(re.compile(r"LNetError: "),),
        each=True,
    ),
    Predefined(
        id="gpfs.shutdown",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        lines=(re.compile(r"The mmfs daemon is shutting down abnormally"),),
    ),
    Predefined(
        id="gpfs.membership_lost",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        lines=(re.compile(r"Lost membership in cluster (?P<target>\S{1,200})\. Unmounting file systems"),),
    ),
    Predefined(
        id="gpfs.reconnecting",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"Close connection to [^\n]{1,200}\. Attempting reconnect"),),
    ),
    Predefined(
        id="nfs.not_responding",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"nfs: server (?P<target>\S{1,200}) not responding"),),
    ),
    Predefined(
        id="nfs.responding",
        name="storage",
        role="confirmation",
        symptom="hang",
        area="data",
        layer="platform",
        lines=(re.compile(r"nfs: server (?P<target>\S{1,200}) OK\b"),),
    ),
    Predefined(
        id="storage.stale_handle",
        name="storage",
        role="candidate",
        area="data",
        layer="platform",
        error=re.compile(r"Stale file handle"),
    ),
)
