"""What the node remembers from one round to the next (node.json), as functions of what was just read."""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks import first_seen_key
from slurm_gpuhealth.model import EPILOG, HEALTHCHECK, UNREAD

# Counters that only grow, kept as the base for "new since".
COUNTERS = ("ecc_uncorrected_volatile", "ecc_uncorrected_aggregate", "ecc_corrected_volatile",
            "ecc_corrected_aggregate", "pcie_replay", "remap_uncorrected", "remap_corrected", "retired_pages")
# Fields of a GPU that hold several counters by name.
_GROUPS = ("sram_counts", "retired_counts", "violations")
_SAMPLES_APART = 3.0    # seconds
_SAID_AGAIN = 86400     # a finding that stands is written down once a day, not once a round


def counters(facts):
    """{uuid: {counter: number}} of all GPUs that could be read."""
    found = {}
    for gpu in facts.gpus:
        if F.is_known(gpu.uuid) and gpu.uuid:
            found[gpu.uuid] = {name: getattr(gpu, name) for name in COUNTERS if F.is_known(getattr(gpu, name))}
            for group in _GROUPS:
                values = getattr(gpu, group)
                if F.is_known(values):
                    found[gpu.uuid].update(("%s.%s" % (group, name), number) for name, number in values.items()
                                           if isinstance(number, int))
            for link in gpu.nvlinks if F.is_known(gpu.nvlinks) else ():
                found["%s/nvlink%s" % (gpu.uuid, link["link"])] = _numbers(link.get("errors"))
    for link in facts.links if F.is_known(facts.links) else ():
        found[link.name] = _numbers(link.counters)
    for one in facts.memory_controllers if F.is_known(facts.memory_controllers) else ():
        found[one.name] = _numbers({"corrected": one.corrected, "uncorrected": one.uncorrected})
    return {key: values for key, values in found.items() if values}


def _numbers(values):
    return {name: number for name, number in (values or {}).items() if isinstance(number, int)} \
        if F.is_known(values) else {}


def streaks(findings, before, now, last):
    """{key: [rounds in a row, time of the first]} of the findings whose data names a "streak", this round counted.

    last: time of the round before, or None. A round that follows it at once (one that the kernel log woke) is no
    further sample: what stood then stands, and is not counted again.
    """
    counts = last is None or not 0 <= now - last < _SAMPLES_APART
    found = {}
    for finding in findings:
        key = (finding.data or {}).get("streak")
        if key:
            count, first = before.get(key, (0, now))
            found[key] = [count + 1 if counts or not count else count, first]
    return found


def later_cursor(one, other):
    """Of two log cursors of one boot and one file the one that is further on; else `one`. Rounds may overlap."""
    if not one or not other or one.get("boot_id") != other.get("boot_id") or one.get("inode") != other.get("inode"):
        return one
    for key in ("seq", "offset"):
        if key in one and key in other:
            return other if other[key] > one[key] else one
    return one


def first_seen(findings, before, now):
    """{key: time} of what this round sees: since when it stands (key: checks.first_seen_key)."""
    keys = {first_seen_key(finding) for finding in findings if finding.severity != UNREAD}
    return {key: before.get(key, now) for key in keys}


def links(facts, before):
    """{port: {"speed", "width"}} of the ports that were ever up in a healthy round, with the most that they had, and
    {"UUID/nvlink": {"up": mask}} of each GPU's NVLinks that were."""
    found = dict(before)
    if F.is_known(facts.links):     # a port that is not there in a healthy round has another name now
        names = {link.name for link in facts.links}
        found = {name: value for name, value in before.items() if name in names or name.endswith("/nvlink")}
    for link in facts.links if F.is_known(facts.links) else ():
        if link.state == "up":
            known = found.get(link.name, {})
            found[link.name] = {name: max(value, known.get(name, 0)) for name, value in
                                (("speed", link.speed), ("width", link.width))
                                if F.is_known(value) and value is not None}
    for gpu in facts.gpus:
        if F.is_known(gpu.uuid) and gpu.uuid and F.is_known(gpu.nvlinks):
            key = gpu.uuid + "/nvlink"
            up = sum(1 << link["link"] for link in gpu.nvlinks if F.is_known(link["state"]) and link["state"])
            if up:
                found[key] = {"up": up | int(found.get(key, {}).get("up", 0))}
    return found


def identities(facts):
    """[KnownGpu as dict] when this round saw every GPU whole, else None: a loss must not overwrite what was."""
    if not facts.gpus or not F.is_known(facts.gpu_count):
        return None
    if F.is_known(facts.expected.gpus) and len(facts.gpus) < facts.expected.gpus:
        return None
    entries = []
    for gpu in facts.gpus:
        if gpu.error is not None or not all(F.is_known(getattr(gpu, name)) for name in ("index", "uuid", "bdf")):
            return None
        entries.append({"index": gpu.index, "uuid": gpu.uuid, "bdf": gpu.bdf,
                        "minor": gpu.minor if F.is_known(gpu.minor) else None,
                        "serial": gpu.serial if F.is_known(gpu.serial) else ""})
    return entries


def learnt_gpus(ctx):
    """True when this round saw all GPUs and they are not the ones that are remembered."""
    known = identities(ctx.facts)
    return known is not None and known != ctx.memory.get("gpus")


def job_baseline(ctx):
    """What a job's prolog saves for its epilog."""
    facts, job = ctx.facts, ctx.job
    return {"v": 1, "id": job.id, "restart": job.restart, "uid": job.uid, "gpus": list(job.gpus),
            "partition": job.partition, "time": facts.time, "boot_id": facts.boot_id,
            "driver": facts.driver if F.is_known(facts.driver) else "",
            "cursor": ctx.gathered.cursor, "counters": counters(facts)}


def rebase_jobs(state, cursor, counted):
    """What was seen on this node up to now is over: no epilog of a job that runs on reports it as new.

    cursor, counted: log cursor and counters as of now, None where they are not known.
    """
    for number, saved in state.jobs().items():
        if cursor is not None:
            saved["cursor"] = cursor
        if counted:
            saved["counters"] = counted
        state.save_job(number, saved)


def user_events(ctx):
    """(uuid, code) of the Xids of this round that a user's own program can cause."""
    if not F.is_known(ctx.facts.klog) or not ctx.facts.klog.events:
        return []
    from slurm_gpuhealth.catalogue.xid_table import XIDS
    by_bdf = {gpu.bdf: gpu.uuid for gpu in ctx.facts.known_gpus}
    by_bdf.update({gpu.bdf: gpu.uuid for gpu in ctx.facts.gpus if F.is_known(gpu.bdf) and F.is_known(gpu.uuid)})
    found = []
    for event in ctx.facts.klog.events:
        entry = XIDS.get(event.code) if event.kind == "xid" else None
        if entry is not None and entry.user_caused != "no" and event.bdf in by_bdf:
            found.append((by_bdf[event.bdf], event.code))
    return found


def with_xid_jobs(ctx):
    """Facts whose baseline also names the jobs that this round's user-caused Xids belong to.

    A Xid that a program can cause says nothing about the GPU until the same GPU shows it under different jobs.
    The job is this hook's in epilog; in healthcheck it is the one whose prolog was given that GPU.
    """
    events = user_events(ctx)
    if not events:
        return ctx.facts
    xids = {key: list(jobs) for key, jobs in ctx.memory.get("xids", {}).items()}
    for uuid, code in events:
        job = _job_on(ctx, uuid)
        entry = xids.setdefault("%s/%d" % (uuid, code), [])
        if job is not None and job not in [item[0] for item in entry]:
            entry.append([job, ctx.facts.time])
    window = ctx.cfg["xid_repeat"]["window"]
    xids = {key: [item for item in jobs if abs(ctx.facts.time - item[1]) < window] for key, jobs in xids.items()}
    ctx.memory["xids"] = {key: jobs for key, jobs in xids.items() if jobs}
    base = ctx.facts.baseline or F.Baseline(None, ctx.facts.boot_id, "", {}, {})
    return ctx.facts._replace(baseline=base._replace(
        xids={key: [item[0] for item in jobs] for key, jobs in ctx.memory["xids"].items()}))


def _job_on(ctx, uuid):
    if ctx.phase == EPILOG and ctx.job is not None:
        return ctx.job.id
    index = next((gpu.index for gpu in ctx.facts.gpus if gpu.uuid == uuid), None)
    if index is None:
        index = next((gpu.index for gpu in ctx.facts.known_gpus if gpu.uuid == uuid), None)
    holders = [number for number, saved in ctx.state.jobs().items() if index in saved.get("gpus", ())]
    return holders[0] if len(holders) == 1 else None


def saw_user_xids(ctx):
    """True when this round read Xids that a program can cause, so that the node must remember whose they were."""
    return bool(user_events(ctx))


def rounds(facts):
    """{source: rounds in a row} of the sources that did not answer in time."""
    return {status.name: status.rounds for status in facts.sources if status.rounds}


def merged(ctx):
    """The new node.json. Only the healthcheck moves the node's log cursor and its counters."""
    facts, new = ctx.facts, dict(ctx.memory)
    on_disk = ctx.state.read("node.json")
    for key in ("said", "sent_back"):       # another hook may have added some since we read
        new[key] = {**on_disk.get(key, {}), **new.get(key, {})}
    new["said"] = {key: when for key, when in new["said"].items()
                   if abs(facts.time - when) < 2 * _SAID_AGAIN}
    new["rounds"], new["rounds_boot"] = rounds(facts), facts.boot_id
    if ctx.phase == HEALTHCHECK:
        if ctx.gathered.cursor is not None:
            new["cursor"] = later_cursor(ctx.gathered.cursor, on_disk.get("cursor"))
        if facts.gpus or not facts.known_gpus:      # a node without GPUs has ports and memory too
            new.update(counters=counters(facts), time=facts.time, boot_id=facts.boot_id,
                       driver=facts.driver if F.is_known(facts.driver) else "")
        before = facts.baseline.streaks or {} if facts.baseline is not None else {}
        last = facts.time if ctx.woken else ctx.memory.get("streaks_time")
        new.update(streaks=streaks(ctx.seen, before, facts.time, last), streaks_time=facts.time,
                   streaks_boot=facts.boot_id)
        new["first_seen"] = first_seen(ctx.seen, ctx.memory.get("first_seen", {}), facts.time)
        if not any(finding.severity == "fatal" for finding in ctx.findings):
            new["links"] = links(facts, ctx.memory.get("links", {}))
    else:
        for key in ("cursor", "counters", "time", "boot_id", "driver", "clean_rounds", "streaks", "streaks_time",
                    "streaks_boot", "first_seen", "links"):
            if key in on_disk:
                new[key] = on_disk[key]
    known = identities(facts)
    if known is not None and not any(finding.severity == "fatal" for finding in ctx.findings):
        new["gpus"] = known
        modes = [gpu.persistence for gpu in facts.gpus if F.is_known(gpu.persistence)]
        new["persistence"] = min(modes) if modes else None
    return new


def is_news(memory, key, now):
    """True when `key` was not said within a day; remembers that it is said now."""
    said = memory.setdefault("said", {})
    if abs(now - said.get(key, 0)) < _SAID_AGAIN:   # a clock that was far ahead must not silence us for years
        return False
    said[key] = now
    return True
