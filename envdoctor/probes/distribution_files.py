"""Whether two nodes have the same files of a release: a digest of each distribution's RECORD. To
read and sort all of them takes longer than a check may; no file that RECORD lists is opened.
"""

from __future__ import annotations

from hashlib import sha256

from ..model.evidence import Evidence, Fact, Known, Unknown
from ..model.versions import canonicalize_name
from .distributions import RECORD_LIMIT, split_name
from .interpreter import listing
from .machine import Probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

    from .machine import Machine

__all__ = ["PROBES_HERE", "digest_of_record", "probe_distribution_files"]

_LENGTH = 12  # digits of a digest: nodes that differ are told, nobody is kept from deceiving


def probe_distribution_files(machine: Machine) -> Dict[str, Fact[Any]]:
    """Read RECORD of each distribution that was found and is no editable install."""
    distributions = machine.value("distributions")
    if distributions is None:
        return {"distributions.files": Unknown("no distribution is known")}
    digests = {}
    for folder in dict.fromkeys([entry.location for entry in distributions.values()]):
        for entry in listing(machine, folder) or ():
            stem, _, suffix = entry.rpartition(".")
            name, version = split_name(stem)
            held = distributions.get(canonicalize_name(name)) if suffix == "dist-info" else None
            if held is None or (held.version, held.location) != (version, folder) or held.editable:
                continue
            record = machine.read_bytes(f"{folder}/{entry}/RECORD", RECORD_LIMIT)
            digest = digest_of_record(record or b"")
            if digest is not None:
                digests[held.name] = digest
    return {"distributions.files": Known(digests, Evidence("RECORD of each distribution"))}


def digest_of_record(content: bytes) -> Optional[str]:
    """Return a digest of the files of a release, as RECORD (PEP 376) lists them with their hashes;
    None where it lists none.

    What an installer adds is left out: its own rows in .dist-info, scripts, which name the
    interpreter and lie outside, and compiled files, which have no hash.
    """
    rows = [
        row.rstrip(b"\r")
        for row in content.split(b"\n")
        if b",sha256=" in row
        and not row.startswith((b"../", b'"../', b"/"))
        and b".dist-info/" not in row.partition(b",")[0]
    ]
    return sha256(b"\n".join(sorted(rows))).hexdigest()[:_LENGTH] if rows else None


PROBES_HERE: Tuple[Probe, ...] = (
    Probe(
        "distribution_files",
        probe_distribution_files,
        ("distributions.files",),
        isolated=False,
        deadline=2.0,
    ),
)
