"""What several checks need: who a GPU is, how a source went, and findings with the catalogue's severity. Pure."""
from __future__ import annotations

from slurm_gpuhealth import catalogue, model
from slurm_gpuhealth import facts as F

LATE, HUNG, FAILED = "late", "hung", "failed"


def finding(code, subject, seen="", expected="", severity=None, since=None, confidence=1.0, **data):
    """A Finding; severity is the catalogue's unless given."""
    return model.Finding(code, severity or catalogue.lookup(code).severity, subject, seen, expected, since,
                         confidence, data or None)


def source(facts, name):
    """SourceStatus of the source `name`, or None when it was not started."""
    for status in facts.sources:
        if status.name == name:
            return status
    return None


def subject_of(gpu):
    """Subject of a facts.Gpu or KnownGpu, with what of its identity is known."""
    return model.Subject("gpu", *(value if F.is_known(value) else empty for value, empty in
                                  ((gpu.index, None), (gpu.uuid, ""), (gpu.bdf, ""))))


def subject_at(facts, bdf):
    """Subject of the GPU at a PCI address, also of one that NVML no longer lists. No index where nobody knows."""
    for gpu in facts.gpus:
        if F.is_known(gpu.bdf) and gpu.bdf == bdf:
            return _completed(subject_of(gpu), facts)
    for known in facts.known_gpus:
        if known.bdf == bdf:
            return subject_of(known)
    silent = [gpu for gpu in facts.gpus if not F.is_known(gpu.bdf)]
    if len(silent) == 1 and not facts.known_gpus:
        # A lost GPU does not tell its address. The address is nobody else's, so it is the lost one's.
        return subject_of(silent[0])._replace(bdf=bdf)
    return model.Subject("gpu", _left_over(facts), "", bdf)


def _left_over(facts):
    """The one index that no GPU has that NVML lists, where exactly one is missing; else None."""
    expected = facts.expected.gpus
    if facts.known_gpus or not F.is_known(expected) or len(facts.gpus) != expected - 1:
        return None
    free = set(range(expected)) - {gpu.index for gpu in facts.gpus if F.is_known(gpu.index)}
    return free.pop() if len(free) == 1 else None


def _completed(subject, facts):
    """A lost GPU may have told its address only: the rest from healthy rounds."""
    if subject.index is not None and subject.uuid:
        return subject
    for known in facts.known_gpus:
        if known.bdf == subject.bdf:
            return model.Subject("gpu", known.index if subject.index is None else subject.index,
                                 subject.uuid or known.uuid, subject.bdf)
    return subject


def counted_before(facts, key, counter):
    """What the baseline holds of one counter, or None. key: UUID, "UUID/nvlinkN", or the name of a part."""
    if facts.baseline is None:
        return None
    return ((facts.baseline.counters or {}).get(key) or {}).get(counter)


def growth(facts, key, counter, now):
    """How far a counter has grown since the baseline. None without a baseline, or where it went back (the driver was
    loaded again, the part was replaced): then nobody can tell."""
    before = counted_before(facts, key, counter)
    if before is None or not isinstance(now, int) or now < before:
        return None
    return now - before


def streak(facts, key):
    """(rounds in a row before this one, time of the first) that a finding with data["streak"] == key was seen.

    Rounds are health checks. A check that believes a thing only when it stands gives a note with the streak first,
    and its real finding once the rounds before and this one make the limit.
    """
    count, first = ((facts.baseline.streaks or {}).get(key) if facts.baseline is not None else None) or (0, None)
    return count, first


def log_unread(facts):
    """The findings of a check that needs the kernel log when it was not read; [] when it was."""
    if F.is_known(facts.klog):
        return []
    code = "GH-LOG-LATE" if facts.klog.reason in (F.TIMEOUT, F.HUNG) else "GH-LOG-FAIL"
    return [finding(code, model.NODE, facts.klog.detail or facts.klog.reason, severity=model.UNREAD)]


def usable(facts):
    """The GPUs that answer; the others are check gpu_usable's."""
    return [gpu for gpu in facts.gpus if gpu.error is None]


def missing(gpu, *names):
    """Of the fields `names`, those that should have been readable and were not, as {name: Unknown}.

    "Not supported" is not among them: this GPU or driver does not have the thing.
    """
    found = {}
    for name in names:
        value = getattr(gpu, name)
        if not F.is_known(value) and value.reason != F.UNSUPPORTED:
            found[name] = value
    return found


def known(value, *wanted):
    """True when `value` was read and is one of `wanted`. To be asked in place of `!=` and `not in`, which hold for
    what nobody could read."""
    return F.is_known(value) and value in wanted


def without_mig(gpus, *names):
    """(those of `gpus` that have no MIG, findings about those of which nobody knows)

    MIG takes links and fabric away: where its mode could not be read, they say nothing about the GPU. names: fields
    that are told as unread with it.
    """
    sure, found = [], []
    for gpu in gpus:
        fields = missing(gpu, "mig_mode")
        if fields:
            found.append(unread(gpu, {**fields, **missing(gpu, *names)}))
        elif not known(gpu.mig_mode, 1):
            sure.append(gpu)
    return sure, found


def asked(gpu, *names):
    """Those of the fields `names` that this round asked for: some are read only where there is time or a reason."""
    return [name for name in names if getattr(gpu, name) != F.UNASKED]


def unread(gpu, fields):
    """Finding: fields of one GPU could not be read. fields: as of `missing`, not empty."""
    first = next(iter(fields.values()))
    return finding("GH-GPU-UNREAD", subject_of(gpu), "%s: %s" % (", ".join(fields), first.detail or first.reason),
                   fields=sorted(fields), why=first.reason, nvml_code=first.code)


def gpus_unread(facts):
    """[Finding] when there are GPUs that were not read, so that a check that needs them is not "ok"; else [].

    That NVML is late, hung or missing is said once by gpu_usable, whose finding takes these in (checks.merge).
    """
    expected, count = facts.expected.gpus, facts.gpu_count
    if F.is_known(count):
        rest = count - len(facts.gpus)
        return [finding("GH-GPU-UNREAD", model.ALL_GPUS, "%d of %d GPUs were not read" % (rest, count),
                        why=F.NOT_READ)] if rest > 0 else []
    if F.is_known(expected) and expected == 0:
        return []
    if not_a_gpu_node(facts):
        return []
    return [finding("GH-GPU-UNREAD", model.ALL_GPUS, "no GPU could be read", why=count.reason)]


def not_a_gpu_node(facts):
    """True where nothing speaks for GPUs: neither configuration nor Slurm's files (which could be read) name any,
    none was ever seen, and NVML finds no driver (9) or no library (12)."""
    expected = facts.expected.gpus
    return (not F.is_known(expected) and expected.reason == F.ABSENT and not facts.known_gpus
            and not F.is_known(facts.nvml) and facts.nvml.code in (9, 12))


def early(facts, seconds):
    """Whether the node booted less than `seconds` ago, so that services may still be starting. Never in prolog: what is
    not ready now would fail the job that starts now."""
    return facts.phase != model.PROLOG and F.is_known(facts.uptime) and facts.uptime < seconds


def seconds_since_baseline(facts):
    """Seconds from the round that is the baseline to this one, None where it is not known or not positive."""
    if facts.baseline is None or facts.baseline.time is None or facts.time <= facts.baseline.time:
        return None
    return facts.time - facts.baseline.time
