"""Actions that only write down: incidents, findings, what was left undone."""
from __future__ import annotations

import os

from slurm_gpuhealth import decide
from slurm_gpuhealth import reason as grammar
from slurm_gpuhealth.errors import StateError
from slurm_gpuhealth.model import FATAL, HEALTHCHECK, Incident


def fatal_findings(ctx):
    """The findings of this run that are fatal under the site's policy, worst first."""
    return [item for item in decide.weigh(ctx.findings, ctx.situation, ctx.cfg) if item.severity == FATAL]


def primary(ctx):
    """The finding that names the incident: the worst of this run, or None when only an old incident stands."""
    found = fatal_findings(ctx)
    return found[0] if found else None


def current(ctx):
    """The incident of this run: the one just opened, else the open one that its worst finding belongs to."""
    if ctx.incident is None:
        finding = primary(ctx)
        if finding is not None:
            ctx.incident = decide.incident_of(finding, ctx.situation)
        else:
            waiting = [item for item in ctx.incidents
                       if not item.closed and not item.drained and item.boot_id == ctx.facts.boot_id]
            ctx.incident = waiting[0] if waiting else None
    return ctx.incident


def incident(ctx, args):
    """Open an incident for what belongs to none yet, and save it at once: a hook that dies after this has left a
    trace."""
    found = decide.not_covered(fatal_findings(ctx), ctx.situation)
    finding = found[0]
    ctx.incident = Incident(os.urandom(3).hex(), decide.incident_key(ctx.facts.boot_id, finding), ctx.facts.boot_id,
                            finding.code, finding.subject, ctx.facts.time,
                            also=tuple(decide.fault_key(other) for other in found[1:]) + decide.taken_in(found))
    ctx.incident = ctx.incident._replace(reason=grammar.write(found, ctx.incident.id))
    ctx.incidents.append(ctx.incident)
    save(ctx)
    ctx.event("incident", code=finding.code, subject=finding.subject, findings=args["findings"], phase=ctx.phase,
              since=finding.since)


def update(ctx, **changes):
    """Change the incident of this run and save it."""
    found = current(ctx)
    if found is None:
        return None
    ctx.incident = found._replace(**changes)
    ctx.incidents = [ctx.incident if item.id == found.id else item for item in ctx.incidents]
    save(ctx)
    return ctx.incident


def save(ctx):
    """Write incidents and acks; a disk that refuses is said and does not stop the hook."""
    try:
        ctx.state.save_incidents(ctx.incidents, ctx.acks)
    except StateError as exc:
        ctx.say_once("state", str(exc), code="GH-SELF")


def finding(ctx, args):
    """A finding that drains nothing, once a day while it stands."""
    ctx.finding_once(args)


def unacted(ctx, args):
    """Said once a day for one fault, as it may stand for weeks in observe mode."""
    from slurm_gpuhealth import memory
    if memory.is_news(ctx.memory, "unacted|%s|%s|%s" % (args["code"], args["subject"], args["why"]), ctx.facts.time):
        ctx.dirty.add("memory")
        ctx.event("unacted", code=args["code"], subject=args["subject"], why=args["why"], would=args["findings"])


def close(ctx, args):
    """End incidents: the node was resumed, by us or by somebody, so what was seen up to now is over."""
    from slurm_gpuhealth import memory
    here = ctx.phase == HEALTHCHECK     # a prolog does not move the node's cursor: it must not move the jobs' either
    cursor = (ctx.gathered.cursor if here else None) or ctx.memory.get("cursor")
    counted = (memory.counters(ctx.facts) if here else None) or ctx.memory.get("counters")
    try:
        memory.rebase_jobs(ctx.state, cursor, counted)
    except StateError as exc:
        ctx.say_once("state", str(exc), code="GH-SELF")
    ended = []
    for item in ctx.incidents:
        if item.id in args["ids"] and not item.closed:
            item = item._replace(closed=ctx.facts.time)
            ctx.event("finding", code=item.code, subject=item.subject, action="closed", severity="note",
                      seen=args["why"], data={"incident": item.id})
        ended.append(item)
    ctx.incidents = ended
    save(ctx)


def job_left(ctx, args):
    """A job that uses what is faulty was left alone; said once for each run of it."""
    from slurm_gpuhealth import memory
    if memory.is_news(ctx.memory, "job-left|%s|%s" % (args["tag"], args["why"]), ctx.facts.time):
        ctx.dirty.add("memory")
        found = current(ctx)
        ctx.event("unacted", code=found.code if found else "", action="job", why=args["why"],
                  would={"job": args["job"], "restart": args["restart"]})
