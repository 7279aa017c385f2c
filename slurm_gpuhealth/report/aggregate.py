"""Events -> the numbers of a report. Pure: one pass over an iterator, no clock, no files.

The order of the events does not matter across nodes: a job is requeued in one node's file and resumes in
another's. Memory grows with incidents and restarts, not with events. The result is one plain dict, the JSON
of `gpuhealth report --format json`, described in docs/events.md ("The report").
"""
from __future__ import annotations

from array import array
from collections import Counter

from slurm_gpuhealth.catalogue import known, lookup

VERSION = 1
MAX_LISTED = 200            # restarts, held jobs and nodes that are listed one by one
_MAX_PASSED = 5             # checkpoints passed over that are named for one restart
HOUR = 3600.0


def aggregate(events, since=None, until=None, now=None):
    """The report over `events` (dicts). since, until: the time it covers, for its heading; None: all there is."""
    tally = Tally()
    tally.see(events, until)
    return tally.report(since, until if until is not None else now)


def _text(value):
    return value if type(value) is str else "" if value is None else str(value)


def _number(value):
    return value if type(value) in (int, float) else None


class _Restart:
    """One run of one job that ended in a requeue, and what its next run found. The two are often seen by different
    nodes, in any order, so each has fields of its own."""

    __slots__ = ("time", "node", "code", "why", "fault", "gpus", "started",     # the requeue
                 "hint",                                                        # found beforehand, at the requeue
                 "again", "where", "resume", "passed", "over")                  # the restart

    def __init__(self):
        self.time = self.fault = self.gpus = self.started = self.hint = self.again = self.resume = None
        self.node = self.code = self.why = self.where = ""
        self.passed, self.over = (), False

    def take_requeue(self, other):
        """The first node that said so names it; each may know of its own GPUs only."""
        gpus = max(self.gpus or 0, other.gpus or 0)
        if self.time is None or (other.time is not None and other.time < self.time):
            for name in self.__slots__[:7]:
                setattr(self, name, getattr(other, name))
        self.gpus = gpus
        self.hint = other.hint if other.hint is not None else self.hint

    def take_restart(self, other):
        if other.again is not None and (self.again is None or other.again < self.again):
            for name in self.__slots__[8:]:
                setattr(self, name, getattr(other, name))

    def took(self):
        """{path, step, level, mtime} of the checkpoint: what the restart took, else what was found beforehand."""
        if self.over:
            return None
        hint = self.hint if type(self.hint) is dict else {}
        if self.resume is None:
            return hint or None
        if self.resume.get("mtime") is None and hint.get("path") == self.resume.get("path"):
            return dict(self.resume, mtime=hint.get("mtime"))
        return self.resume


class Tally:
    """Counters over events, filled by one see_KIND method for each kind; two of them can be added."""

    def __init__(self):
        self.first = self.last = None
        self.nodes: set = set()
        self.kinds: Counter = Counter()
        self.unreadable = self.resumed_nodes = self.notify_failed = self.brakes = 0
        self.codes: Counter = Counter()
        self.code_nodes: dict = {}              # code -> nodes
        self.incident_nodes: Counter = Counter()
        self.incident_since: dict = {}          # incident id -> time of the first sign
        self.findings: Counter = Counter()
        self.drains: Counter = Counter()
        self.drain_nodes: Counter = Counter()
        self.drain_times: list = []             # (incident id, time)
        self.standing: dict = {}                # node -> (time, code, subject, reason), or (time,) once resumed
        self.runs: dict = {}                    # (job, restart) -> _Restart
        self.held: list = []
        self.hold_codes: Counter = Counter()
        self.sent_back: Counter = Counter()
        self.spool: Counter = Counter()
        self.errors: Counter = Counter()
        self.unacted: Counter = Counter()

    def see(self, events, until=None):
        """Count `events` (dicts); those after `until` are left out."""
        handlers = {name[4:].replace("_", "-"): getattr(self, name) for name in dir(self) if name[:4] == "see_"}
        nodes, kinds, first, last = self.nodes, self.kinds, self.first, self.last
        for event in events:
            when, kind, node, detail = event.get("time"), event.get("kind"), event.get("node"), event.get("detail")
            if type(when) not in (int, float):
                when = None
            elif until is not None and when > until:
                continue
            elif first is None:
                first = last = when
            elif when < first:
                first = when
            elif when > last:
                last = when
            if type(kind) is not str or type(node) is not str:
                self.unreadable += 1
                continue
            nodes.add(node)
            kinds[kind] += 1
            handler = handlers.get(kind)
            if handler is not None:
                handler(event, node, when, detail if type(detail) is dict else {})
        self.first, self.last = first, last

    def add(self, other):
        """Take over what another Tally saw, of other nodes."""
        times = [when for when in (self.first, other.first, self.last, other.last) if when is not None]
        self.first, self.last = (min(times), max(times)) if times else (None, None)
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(value, (Counter, set)):
                mine.update(value)
            elif isinstance(value, int) and not isinstance(value, bool) and name not in ("first", "last"):
                setattr(self, name, mine + value)
            elif isinstance(value, list):
                mine.extend(value)
        for code, nodes in other.code_nodes.items():
            self.code_nodes.setdefault(code, set()).update(nodes)
        self.incident_since.update(other.incident_since)
        self.standing.update(other.standing)
        for key, run in other.runs.items():
            if key in self.runs:
                self.runs[key].take_requeue(run)
                self.runs[key].take_restart(run)
            else:
                self.runs[key] = run

    def report(self, since, until):
        """The finished report: one plain dict."""
        plain = {"v": VERSION, "since": since, "until": until, "first": self.first, "last": self.last,
                 "events": sum(self.kinds.values()) + self.unreadable, "nodes": len(self.nodes),
                 "kinds": dict(sorted(self.kinds.items()))}
        plain.update(self._result())
        return plain

    # -- the node

    def see_finding(self, event, node, when, detail):
        code = _text(event.get("code"))
        if event.get("action") == "closed":
            self._back(node, when)      # by an administrator: Slurm tells nobody
        else:
            self.findings[code] += 1

    def _back(self, node, when):
        """The node is in service again."""
        if when is not None and self.standing.get(node, (0,))[0] <= when:
            self.standing[node] = (when,)

    def see_incident(self, event, node, when, detail):
        code = _text(event.get("code"))
        self.codes[code] += 1
        self.code_nodes.setdefault(code, set()).add(node)
        self.incident_nodes[node] += 1
        since = _number(detail.get("since"))
        self.incident_since[_text(event.get("incident"))] = when if since is None else since

    def see_drain(self, event, node, when, detail):
        self.drains[_text(event.get("code"))] += 1
        self.drain_nodes[node] += 1
        if when is not None:
            self.drain_times.append((_text(event.get("incident")), when))
            if self.standing.get(node, (0,))[0] <= when:
                self.standing[node] = (when, _text(event.get("code")), _text(event.get("subject")),
                                       _text(detail.get("reason")))

    def see_resume_node(self, event, node, when, detail):
        self.resumed_nodes += 1
        self._back(node, when)

    def see_brake(self, event, node, when, detail):
        self.brakes += 1
        if detail.get("taken_back") is True:
            self._back(node, when)

    def see_unacted(self, event, node, when, detail):
        self.unacted[_text(detail.get("why"))[:100]] += 1

    def see_notify(self, event, node, when, detail):
        if not _text(detail.get("outcome")).startswith("ok"):
            self.notify_failed += 1

    def see_spool(self, event, node, when, detail):
        self.spool[_text(detail.get("what"))[:60] or _text(event.get("action"))[:60]] += 1

    def see_internal_error(self, event, node, when, detail):
        self.errors[(_text(detail.get("error")) or _text(detail.get("where")))[:100]] += 1

    # -- jobs

    def _run(self, event, step=0):
        restart = event.get("restart")
        key = (_text(event.get("job")), (restart if type(restart) is int else 0) - step)
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = _Restart()
        return run

    def see_requeue(self, event, node, when, detail):
        run = _Restart()
        run.time, run.node, run.code, run.why = when or 0.0, node, _text(event.get("code")), _text(detail.get("why"))
        fault = _number(detail.get("fault_time"))
        run.fault = run.time if fault is None else fault
        run.gpus, run.started = _number(detail.get("gpus")), _number(detail.get("started"))
        run.hint = detail.get("resume")
        self._run(event).take_requeue(run)

    def see_resume_point(self, event, node, when, detail, over=False):
        run = _Restart()
        found = None if over else {key: detail.get(key) for key in ("path", "step", "level", "mtime")}
        if event.get("action") == "beforehand":
            # A hint that the requeue left, by the run that ended: the start itself looks again.
            self._run(event).hint = found
            return
        run.again, run.where, run.over, run.resume = when or 0.0, node, over, found
        run.passed = detail["passed"] if type(detail.get("passed")) is list else ()
        self._run(event, step=1).take_restart(run)

    def see_job_started_over(self, event, node, when, detail):
        self.see_resume_point(event, node, when, detail, over=True)

    def see_hold(self, event, node, when, detail):
        self.hold_codes[_text(event.get("code"))] += 1
        self.held.append({"job": _text(event.get("job")), "time": when, "node": node,
                          "code": _text(event.get("code")), "message": _text(detail.get("message"))})

    def see_send_back(self, event, node, when, detail):
        self.sent_back[_text(event.get("code"))] += 1

    # -- the result

    def _result(self):
        """All of it as plain data."""
        to_drain = array("d")
        for incident, when in self.drain_times:
            since = self.incident_since.get(incident)
            if incident and since is not None and when >= since:
                to_drain.append(when - since)
        layers: Counter = Counter()
        titles = {}
        for code, count in self.codes.items():
            entry = lookup(code)
            layers[entry.layer if known(code) else "unknown"] += count
            titles[code] = entry.title
        out = sorted((entry + (node,) for node, entry in self.standing.items() if len(entry) > 1),
                     key=lambda entry: entry[0])
        by_code = [{"code": code, "count": count, "title": titles[code], "nodes": len(self.code_nodes[code])}
                   for code, count in _most(self.codes)]
        return {
            "unreadable": self.unreadable,
            "incidents": {"total": sum(self.codes.values()), "by_code": by_code, "by_layer": dict(_most(layers)),
                          "by_node": dict(_most(self.incident_nodes)[:MAX_LISTED])},
            "findings": dict(_most(self.findings)),
            "drains": {"total": sum(self.drains.values()), "by_code": dict(_most(self.drains)),
                       "by_node": dict(_most(self.drain_nodes)[:MAX_LISTED]), "seconds_from_fault": _spread(to_drain),
                       "resumed": self.resumed_nodes},
            "out_total": len(out),
            "out": [{"node": node, "since": when, "code": code, "subject": subject, "reason": reason}
                    for when, code, subject, reason, node in out[-MAX_LISTED:]],
            "requeues": self._requeues(),
            "holds": {"total": sum(self.hold_codes.values()), "by_code": dict(_most(self.hold_codes)),
                      "jobs": sorted(self.held, key=lambda held: held["time"] or 0)[-MAX_LISTED:]},
            "send_backs": {"total": sum(self.sent_back.values()), "by_code": dict(_most(self.sent_back))},
            **self._restarts(),
            "brake": self.brakes, "notify_failed": self.notify_failed,
            "unacted": {"total": sum(self.unacted.values()), "by_why": dict(_most(self.unacted)[:20])},
            "spool": {"total": sum(self.spool.values()), "by_what": dict(_most(self.spool)[:20])},
            "internal_errors": {"total": sum(self.errors.values()), "by_error": dict(_most(self.errors)[:20])},
        }

    def _requeues(self):
        done = [(key[0], run.code) for key, run in self.runs.items() if run.time is not None]
        return {"total": len(done), "by_code": dict(_most(Counter(code for _, code in done))),
                "jobs": len({job for job, _ in done})}

    def _restarts(self):
        levels: Counter = Counter()
        resumed = over = unknown = passed_over = 0
        lost, to_restart = array("d"), array("d")
        rows = []
        for (job, restart), run in self.runs.items():
            hours = _gpu_hours(run)
            if run.time is not None:
                if hours is None:
                    unknown += 1
                else:
                    lost.append(hours)
                if run.again is not None and run.again >= run.fault:
                    to_restart.append(run.again - run.fault)
            if run.again is not None:
                passed_over += len(run.passed)
                if run.over:
                    over += 1
                else:
                    resumed += 1
                    levels[_text((run.took() or {}).get("level")) or "unknown"] += 1
            rows.append((run.time if run.time is not None else run.again or 0, job, restart, run, hours))
        rows.sort(key=lambda row: row[0])
        return {
            "restarts": {"total": len(rows), "resumed": resumed, "started_over": over, "by_level": dict(_most(levels)),
                         "passed_over": passed_over, "seconds_from_fault": _spread(to_restart),
                         "jobs": [_row(*row[1:]) for row in rows[-MAX_LISTED:]]},
            "gpu_hours_lost": {"total": round(sum(lost), 3), "known": len(lost), "unknown": unknown,
                               "worst": round(max(lost), 3) if lost else 0.0},
        }


def _gpu_hours(run):
    """GPU-hours between the last checkpoint (else the job's start) and the fault, or None when not known."""
    if run.fault is None or not run.gpus:
        return None
    base = _number((run.took() or {}).get("mtime"))
    if base is None and run.over:
        base = run.started
    if base is None:
        return None
    return max(0.0, run.fault - base) * run.gpus / HOUR


def _row(job, restart, run, hours):
    resume = run.took()
    return {
        "job": job, "restart": restart, "time": run.time, "node": run.node, "code": run.code, "why": run.why,
        "again": run.again, "again_on": run.where, "gpu_hours_lost": None if hours is None else round(hours, 3),
        "from_start": run.over,
        "resume": {key: resume.get(key) for key in ("path", "step", "level")} if resume else None,
        "passed": [named for named in map(_passed, run.passed[:_MAX_PASSED]) if named]}


def _passed(one):
    """A checkpoint that was passed over, {path, reason}; events name it so or as a pair. None: not readable."""
    if type(one) is list and len(one) == 2:
        one = {"path": one[0], "reason": one[1]}
    return {key: _text(one.get(key)) for key in ("path", "reason")} if type(one) is dict else None


def _most(counter):
    """(key, count) pairs, the most first, equal ones by name."""
    return sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))


def _spread(values):
    """{count, median, longest} of seconds, or None for none."""
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {"count": len(ordered), "median": round(median, 3), "longest": round(ordered[-1], 3)}
