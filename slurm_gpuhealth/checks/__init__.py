"""The checks: one file each, found through this table. Pure: facts in, findings out.

A check is a module with `check(facts, limits) -> list of Finding`. What it could not look at it says with a finding
of severity "unknown"; an empty list means that it looked and all is well. Its docstring is its documentation
(docs/checks.md is made from it). No check imports another one.
"""
from __future__ import annotations

from collections import namedtuple

from slurm_gpuhealth import catalogue
from slurm_gpuhealth.model import (
    ALL_GPUS,
    BAD,
    EPILOG,
    FATAL,
    HEALTHCHECK,
    MANUAL,
    NODE,
    NOTE,
    OK,
    PROLOG,
    REQUEUE_NOW,
    SEVERITIES,
    SKIPPED,
    UNKNOWN,
    UNREAD,
    Finding,
)

_HOOKS = (PROLOG, EPILOG, HEALTHCHECK, MANUAL)

# The rounds that have time for more than a job's start may cost.
_ROUNDS = (HEALTHCHECK, MANUAL)

Check = namedtuple("Check", "module phases needs default", defaults=((), True))
Check.__doc__ = """One row of CHECKS. module: here. phases: in which it runs. needs: sources (probes.SOURCES) that are
read for it besides NVML, kernel log and mounts. default: it runs unless the site says otherwise."""

# In the order in which people read the results.
CHECKS = {
    "gpu_usable": Check("gpu_usable", _HOOKS),
    "gpu_count": Check("gpu_count", _HOOKS),
    "gpu_identity": Check("gpu_identity", _HOOKS),
    "xid": Check("xid", _HOOKS),
    "sxid": Check("sxid", _HOOKS),
    "aer": Check("aer", _ROUNDS, ("sysfs",)),
    "ecc": Check("ecc", _HOOKS),
    "row_remap": Check("row_remap", _HOOKS),
    "sram": Check("sram", _HOOKS),
    "inforom": Check("inforom", _ROUNDS),
    "pcie_width": Check("pcie_width", _HOOKS),
    "pcie_gen": Check("pcie_gen", _HOOKS),
    "pcie_replay": Check("pcie_replay", (EPILOG,) + _ROUNDS),
    "gpu_expected": Check("gpu_expected", _ROUNDS),
    "driver_fit": Check("driver_fit", _ROUNDS),
    "nvlink": Check("nvlink", _HOOKS),
    "fabric": Check("fabric", _HOOKS),
    "thermal": Check("thermal", _ROUNDS),
    "slowdown": Check("slowdown", _ROUNDS),
    "gpu_modes": Check("gpu_modes", _HOOKS),
    "mig": Check("mig", _ROUNDS),
    "pcie_bus": Check("pcie_bus", _HOOKS, ("sysfs",)),
    "devices": Check("devices", _ROUNDS, ("sysfs",)),
    "mounts": Check("mounts", _HOOKS),
    "mount_space": Check("mount_space", _ROUNDS),
    "fs_errors": Check("fs_errors", _HOOKS, ("sysfs",)),
    "storage_log": Check("storage_log", _HOOKS),
    "links": Check("links", _HOOKS, ("sysfs",)),
    "host_memory": Check("host_memory", _HOOKS, ("sysfs",)),
    "nvme": Check("nvme", _HOOKS, ("sysfs",)),
    "clock": Check("clock", _ROUNDS, ("sysfs",)),
    "leftover": Check("leftover", _HOOKS, ("processes",)),
    "services": Check("services", _ROUNDS, ("services", "sysfs")),
    "plugins": Check("plugins", _HOOKS, ("plugins",)),
    "kernel_log": Check("kernel_log", _HOOKS),
}

Result = namedtuple("Result", "name outcome findings", defaults=((),))
Result.__doc__ = """How one check went. outcome: ok, bad, unknown (could not look) or skipped (not asked; never ok)."""


def run_checks(facts, policy, phase=MANUAL, disabled=()):
    """Run all checks of `phase`: list of Result, in the order of CHECKS.

    policy: the configuration (a dict); `checks.disabled` names checks that are not to run, as does `disabled`.
    """
    active = names(policy, phase)
    results = []
    for name, row in CHECKS.items():
        if name not in active or name in disabled:
            results.append(Result(name, SKIPPED))
            continue
        module = _module(row)
        try:
            found = module.check(facts, limits_of(module, name, policy))
        except Exception as exc:    # a mistake of one check: said, never healthy, and the others still look
            found = [Finding("GH-SELF", UNREAD, NODE, "check %s: %s: %s" % (name, type(exc).__name__, exc))]
        found = tuple(_dated(finding, facts) for finding in found)
        results.append(Result(name, outcome_of(found), found))
    return results


def names(policy, phase):
    """The checks that run in `phase` under `policy`, in order."""
    about = policy.get("checks", {})
    off, on = about.get("disabled", ()), about.get("enabled", ())
    return [name for name, row in CHECKS.items()
            if phase in row.phases and name not in off and (row.default or name in on)]


def sources(policy, phase):
    """Names of the sources (probes.SOURCES) that the checks of this phase need."""
    return {source for name in names(policy, phase) for source in CHECKS[name].needs}


def _module(row):
    # Imported when it runs, so that a check that is switched off costs nothing.
    return __import__(__name__ + "." + row.module, fromlist=("check",))


def limits_of(module, name, policy):
    """What the configuration gives a check: its LIMITS with the site's `limits:` entry over them, and those parts of
    the configuration that are its business (POLICY).

    LIMITS of a check's module: {limit: (default, what it is)}. POLICY: {name in `limits`: key of the configuration}.
    """
    limits = {key: default for key, (default, _) in getattr(module, "LIMITS", {}).items()}
    limits.update(policy.get("limits", {}).get(name, {}))
    for key, part in getattr(module, "POLICY", {}).items():
        limits[key] = policy.get(part)
    return limits


def known_limits(name):
    """{limit: default} of the check `name`."""
    return {key: default for key, (default, _) in getattr(_module(CHECKS[name]), "LIMITS", {}).items()}


def first_seen_key(finding):
    """Under what the node remembers since when it sees this: code and subject."""
    subject = finding.subject
    return "%s|%s" % (finding.code, subject.uuid or subject.bdf or subject.name or subject.kind)


def _dated(finding, facts):
    """The finding with the time since when it stands: of the first round that saw it; this round, where the last one
    looked and did not see it. None where nobody looked before."""
    if finding.since is not None or finding.severity == UNREAD or facts.baseline is None:
        return finding
    seen = (facts.baseline.first_seen or {}).get(first_seen_key(finding))
    if seen is None and facts.baseline.time is not None:
        seen = facts.time
    return finding._replace(since=seen)


def outcome_of(findings):
    """ok, bad or unknown. A note is no fault; one thing that could not be read makes the check unknown."""
    severities = {finding.severity for finding in findings}
    if severities - {NOTE, UNREAD}:
        return BAD
    return UNKNOWN if UNREAD in severities else OK


# Codes that are faces of one fault when they are about one GPU: the strongest takes in the others.
_FACES = (
    ("GH-XID79", "GH-XID119", "GH-XID120", "GH-XID154", "GH-BUS-OFF", "GH-GPU-LOST", "GH-GPU-BAD", "GH-GPU-RESET",
     "GH-RM-INIT", "GH-LEFT-STUCK", "GH-GPU-UNREAD",
     "GH-PCI-GONE", "GH-PCI-DRV", "GH-XID143", "GH-XID167", "GH-GPU-STUCK",
     "GH-PCI-POWER", "GH-PCIE-AER"),
    ("GH-XID48", "GH-XID63", "GH-XID64", "GH-XID94", "GH-XID95", "GH-XID140", "GH-XID154", "GH-XID171", "GH-XID172",
     "GH-ECC-UNC", "GH-REMAP-FAIL", "GH-SRAM-LIMIT", "GH-MEM-BAD", "GH-PAGE-LIMIT", "GH-REMAP-LOW", "GH-REMAP-PEND",
     "GH-PAGE-PEND", "GH-REPAIR-PEND", "GH-GPU-RESET"),
    ("GH-XID74", "GH-XID144", "GH-XID145", "GH-XID146", "GH-XID147", "GH-XID148", "GH-XID149", "GH-XID150",
     "GH-NVLINK-DN", "GH-NVLINK-ERR", "GH-FABRIC-BAD", "GH-FABRIC-LIM"),
    ("GH-OVERHEAT", "GH-SLOWDOWN", "GH-THERMAL"),
)
# What GPUs show of a fault of the switch at the other end of their links (an SXid beside Xid 74 means the switch).
_BEHIND_SWITCH = ("GH-XID74", "GH-NVLINK-DN", "GH-NVLINK-ERR", "GH-FABRIC-BAD", "GH-FABRIC-LIM")
_MOMENT = 180.0     # seconds within which the two are one event
# What NVML says of a GPU about which the kernel log has a number already: the same fault, whatever the number.
_NVML_FACES = ("GH-GPU-RESET", "GH-GPU-LOST", "GH-GPU-BAD", "GH-GPU-UNREAD")
# Faults of the node that come of one GPU: NVML waits for one that does not answer, the memory driver stops for one that
# is gone. The GPU is what must be named; that all are hit stays in data["node_wide"].
_OF_ONE_GPU = {
    "GH-NVML-HANG": ("GH-XID79", "GH-XID119", "GH-XID120", "GH-XID143", "GH-XID167", "GH-BUS-OFF", "GH-GPU-STUCK"),
    "GH-UVM-FATAL": ("GH-XID79", "GH-XID119", "GH-XID120", "GH-XID143", "GH-XID167", "GH-BUS-OFF", "GH-GPU-LOST",
                     "GH-PCI-GONE"),
}
_GONE = ("GH-XID79", "GH-BUS-OFF", "GH-GPU-LOST", "GH-PCI-GONE")
# The same for one mount: what the kernel log says, and what looking at it gave.
_MOUNT_FACES = ("GH-MNT-ERR", "GH-MNT-RO", "GH-MNT-OPT", "GH-FS-RO", "GH-FS-ERROR")


_MOST_FINDINGS = 300        # of one round, the strongest


def merge(results):
    """The findings of all checks with each fault once, worst first.

    results: list of Result (or of Finding). The kernel log's 79, NVML's "lost" and the count of 7/8 are one fault
    of one GPU: the finding of the strongest code stays, what the others saw is in its `seen` and its
    data["merged"].
    """
    findings: list = []
    for item in results:
        findings += item.findings if isinstance(item, Result) else (item,)
    kept: list = []
    ordered = sorted(_without_doubles(findings), key=_strength)
    if len(ordered) > _MOST_FINDINGS:
        # A log full of different lines: comparing each with each would take longer than the hook has.
        ordered[_MOST_FINDINGS - 1] = ordered[_MOST_FINDINGS - 1]._replace(
            data=dict(ordered[_MOST_FINDINGS - 1].data or {}, more_findings=len(ordered) - _MOST_FINDINGS))
        del ordered[_MOST_FINDINGS:]
    for finding in ordered:
        lead = next((number for number, other in enumerate(kept) if _same_fault(finding, other, kept)), None)
        if lead is None:
            kept.append(finding)
        else:
            kept[lead] = _taken_in(kept[lead], finding)
    return kept


def _strength(finding):
    about, action = catalogue.lookup(finding.code), _job_action(finding)
    # A switch goes before the GPUs at its links, and a subject that is one GPU before "all GPUs": the later may be the
    # former's other face.
    # Of what log and NVML say of one GPU the number leads, as it tells why.
    number = catalogue.xid_number(finding.code) not in (None, 154)
    return (-SEVERITIES.index(finding.severity), finding.code != "GH-SXID", finding.subject.kind != "gpu", not number,
            action != REQUEUE_NOW, about.rank,
            finding.subject.index if finding.subject.index is not None else 999, finding.subject.name, finding.code)


def _job_action(finding):
    return (finding.data or {}).get("job_action", catalogue.lookup(finding.code).job_action)


def _without_doubles(findings):
    """Same code and subject: one finding. What several checks could not read of a GPU is listed together."""
    found = {}
    for finding in findings:
        key = (finding.code, finding.subject)
        if key not in found:
            found[key] = finding
        elif finding.code == "GH-GPU-UNREAD":
            first = found[key]
            fields = sorted(set((first.data or {}).get("fields", ())) | set((finding.data or {}).get("fields", ())))
            if fields:
                why = (first.data or {}).get("why", "")
                found[key] = first._replace(seen="%s: %s" % (", ".join(fields), first.seen.rpartition(": ")[2] or why),
                                            data=dict(first.data, fields=fields))
        elif SEVERITIES.index(finding.severity) > SEVERITIES.index(found[key].severity):
            found[key] = finding
    return list(found.values())


def _same_fault(finding, lead, kept):
    """Whether `finding` is another face of the fault that `lead` (as strong or stronger) stands for."""
    if finding.subject == ALL_GPUS:
        if finding.code == "GH-GPU-UNREAD":
            # "Late" is a warning only: that nothing was read must stay to be seen beside it.
            return (lead.subject == ALL_GPUS and lead.code.startswith("GH-NVML-") and lead.code != "GH-NVML-LATE") \
                or any(part["code"] == "GH-NVML-HANG" for part in (lead.data or {}).get("merged", ()))
        if finding.code == "GH-NVLINK-ALL":     # links are trained when the fabric is up
            return lead.code == "GH-FABRIC-DN"
        if finding.code in _OF_ONE_GPU:
            return lead.severity == FATAL and lead.code in _OF_ONE_GPU[finding.code]
        return finding.code == "GH-GPU-COUNT" and lead.code in _GONE and _explained(finding, kept)
    if finding.subject.kind == "mount" and finding.subject == lead.subject:
        # Of a mount that is gone or hangs nobody knows the free space: said once.
        return finding.severity == UNREAD or (finding.code in _MOUNT_FACES and lead.code in _MOUNT_FACES)
    if lead.code == "GH-SXID" and lead.severity == FATAL and finding.subject.kind == "gpu":
        return finding.code in _BEHIND_SWITCH and (finding.code != "GH-XID74" or _at_one_moment(finding, lead))
    if finding.subject.kind != "gpu" or not _one_gpu(finding.subject, lead.subject):
        return False
    if lead.severity == FATAL and finding.code == "GH-GPU-UNREAD":
        return True
    if _number_and_nvml(lead, finding) or _number_and_nvml(finding, lead):
        return True
    return any(finding.code in group and lead.code in group for group in _FACES)


def _number_and_nvml(log, nvml):
    return log.severity == FATAL and catalogue.xid_number(log.code) is not None and nvml.code in _NVML_FACES


def _at_one_moment(one, other):
    return None in (one.since, other.since) or abs(one.since - other.since) <= _MOMENT


def _one_gpu(one, other):
    if other.kind != "gpu":
        return False
    return any(value not in (None, "") and value == getattr(other, name)
               for name, value in (("index", one.index), ("uuid", one.uuid), ("bdf", one.bdf)))


def _explained(count, kept):
    """Whether the GPUs that went off the bus are those that the count misses: not the ones still listed."""
    about = count.data or {}
    unlisted = [finding for finding in kept if finding.code in _GONE and "nvml_code" not in (finding.data or {})
                and not any(part.get("nvml_code") for part in (finding.data or {}).get("merged", ()))]
    return 0 < about.get("expected_count", 0) - about.get("count", 0) <= len(unlisted)


def _taken_in(lead, other):
    """`lead` with what `other` saw."""
    data = dict(lead.data or {})
    part = {"code": other.code, "severity": other.severity, "seen": other.seen}
    if other.data and "nvml_code" in other.data:
        part["nvml_code"] = other.data["nvml_code"]
    data["merged"] = list(data.get("merged", ())) + [part]
    seen = lead.seen or catalogue.lookup(lead.code).short
    if other.subject == ALL_GPUS and other.code in _OF_ONE_GPU:
        part["all_gpus"] = True
        data["node_wide"] = data.get("node_wide") if data.get("node_wide") == REQUEUE_NOW else _job_action(other)
    elif lead.subject.kind == "gpu" and other.severity == FATAL and _job_action(other) == REQUEUE_NOW:
        data["job_action"] = REQUEUE_NOW        # the GPU is gone, whatever the number alone would let go on
    if other.severity == FATAL or other.code == "GH-PCI-DRV":
        text = catalogue.lookup(other.code).short
        if other.code == "GH-GPU-COUNT":
            text = "%s/%s GPUs" % (other.seen, other.expected)
        elif other.code.startswith(("GH-GPU-", "GH-NVML-")):
            text = "NVML: " + (other.seen or text)
        elif other.seen:
            text = other.seen
        seen = "%s; %s" % (seen, text)
    subject = lead.subject
    if other.subject.kind == "gpu" and subject.kind not in ("gpu", "gpus"):
        part["subject"] = {"index": other.subject.index, "uuid": other.subject.uuid, "bdf": other.subject.bdf}
    elif other.subject.kind == "gpu":
        subject = subject._replace(index=other.subject.index if subject.index is None else subject.index,
                                   uuid=subject.uuid or other.subject.uuid, bdf=subject.bdf or other.subject.bdf)
    since = [moment for moment in (lead.since, other.since) if moment is not None]
    return Finding(lead.code, lead.severity, subject, seen, lead.expected, min(since) if since else None,
                   max(lead.confidence, other.confidence), data)
