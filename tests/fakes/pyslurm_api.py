"""A stand-in for the pyslurm module over the cluster of tests/fakes: the names and signatures that our backend uses.

They mirror pyslurm 25.11.2 (pyslurm_names.txt says which of its files each stands in; a test compares). Answers
follow its source: zero ids read as None, unset times as None, a text "(null)" never appears, an empty text or one
that is None changes nothing. `cluster` is set by the test to a FakeSlurm.
"""
import types

__version__ = "25.11.2"
cluster = None


class RPCError(Exception):
    """As pyslurm/core/error.pyx."""

    def __init__(self, errno=-1, msg=None):
        self.errno = errno
        self.msg = msg or "Unspecified error"
        super().__init__(self.msg)


def _state():
    state = cluster._read()
    if state["hang"]:
        import time
        time.sleep(state["hang"])
    if state["away"]:
        state["away"] -= state["away"] > 0
        cluster._write(state)
        raise RPCError(msg="Unable to contact slurm controller (connect failure)")
    return state


class Node:
    """As pyslurm/core/node.pyx."""

    def __init__(self, name=None, **kwargs):
        self.name = name
        self._plain = {}
        for key, value in kwargs.items():
            if key not in ("state", "reason", "comment", "extra"):
                raise KeyError(key)     # pyslurm: Node.__dict__[name]
            self._plain[key] = value

    @staticmethod
    def load(name):
        state = _state()
        if name not in state["nodes"]:
            raise RPCError(msg="Node '%s' does not exist" % name)
        return _node(name, state["nodes"][name])

    def modify(self, changes):
        state = _state()
        if self.name not in state["nodes"]:
            raise RPCError(msg="Invalid node name specified")
        if state["deny"]:
            raise RPCError(msg="Invalid user id")
        node = state["nodes"][self.name]
        if changes._plain.get("reason"):
            node.update(reason=changes._plain["reason"], reason_user="root", reason_time=1796000500)
        wanted = changes._plain.get("state")
        if wanted not in (None, "DRAIN", "RESUME"):
            raise ValueError("Invalid Node state: %s" % wanted)
        if wanted:
            node["state"] = [flag for flag in node["state"] if flag != "DRAIN"]
        if wanted == "DRAIN":
            node["state"].append("DRAIN")
        if wanted == "RESUME":
            node.update(reason="", reason_user="", reason_time=None)
        cluster._write(state)

    @property
    def state(self):
        return "+".join(self._plain["state"])

    @property
    def reason(self):
        return self._plain["reason"] or None

    @property
    def reason_user(self):
        return self._plain["reason_user"] or None

    @property
    def reason_time(self):
        return self._plain["reason_time"]

    @property
    def partitions(self):
        return list(self._plain["partitions"])

    @property
    def boot_time(self):
        return self._plain["boot_time"]


def _node(name, plain):
    node = Node(name)
    node._plain = plain
    return node


class Nodes(dict):
    """As pyslurm/core/node.pyx: a mapping of names to Node."""

    @staticmethod
    def load(preload_passwd_info=False):
        return Nodes((name, _node(name, plain)) for name, plain in _state()["nodes"].items())


class Job:
    """As pyslurm/core/job/job.pyx."""

    def __init__(self, job_id):
        self.id = job_id
        self._plain = {}

    @staticmethod
    def load(job_id):
        # slurm_load_job sends all records of an array, and Job.load takes the first.
        for key, plain in _state()["jobs"].items():
            if job_id in (int(key), plain["array_job"]):
                return _job(key, plain)
        raise RPCError(msg="Invalid job id specified")

    def _change(self, action):
        state = _state()
        plain = state["jobs"].get(str(self.id))
        if plain is None:
            raise RPCError(msg="Invalid job id specified")
        if state["deny"]:
            raise RPCError(msg="Access/permission denied")
        action(plain)
        cluster._write(state)

    def requeue(self, hold=False):
        def action(plain):
            if not plain["requeue"]:
                raise RPCError(msg="Requested operation is presently disabled")
            if not plain["batch"]:
                raise RPCError(msg="Only batch jobs are accepted or processed")
            if "PENDING" in plain["states"]:
                raise RPCError(msg="Job is pending execution")
            plain.update(states=["PENDING", "COMPLETING"], end=None, restarts=plain["restarts"] + 1, held=hold)
        self._change(action)

    def hold(self, mode=None):
        self._change(lambda plain: plain.update(held=True))

    def modify(self, changes):
        import time

        def action(plain):
            if changes.begin_time:
                if "PENDING" not in plain["states"]:
                    raise RPCError(msg="Job is no longer pending execution")
                plain["begin"] = changes.begin_time - int(time.time())
            if changes.comment:
                if plain["states"][0] not in ("RUNNING", "PENDING"):
                    raise RPCError(msg="Job has already finished")
                if len(changes.comment.encode()) > 1024:
                    raise RPCError(msg="Pathname of a file, directory or other parameter too long")
                plain["comment"] = changes.comment
            if changes.admin_comment:
                plain["admin_comment"] = changes.admin_comment
        self._change(action)

    def get_resource_layout_per_node(self):
        return {node: {"cpu_ids": "0", "memory": 0, "gres": {"gpu:h100": {
            "count": len(held), "indexes": ",".join(map(str, held))}}}
            for node, held in self._plain["gpus"].items()}


def _value(name, empty=None):
    return property(lambda self: self._plain[name] if self._plain[name] not in ("", 0, None) else empty)


for _name, _key in (
        ("name", "name"), ("user_name", "user"), ("state_reason", "reason"), ("array_id", "array_job"),
        ("array_task_id", "array_task"), ("array_tasks_waiting", "waiting"), ("heterogeneous_id", "het_leader"),
        ("start_time", "start"), ("end_time", "end"), ("partition", "partition"), ("comment", "comment"),
        ("admin_comment", "admin_comment"), ("working_directory", "work_dir")):
    setattr(Job, _name, _value(_key))
Job.user_id = property(lambda self: self._plain["uid"])
Job.is_requeueable = property(lambda self: self._plain["requeue"])
Job.is_batch_job = property(lambda self: self._plain["batch"])
Job.requeue_count = property(lambda self: self._plain["restarts"])
Job.exit_code = property(lambda self: int(self._plain["exit_code"].split(":")[0]))
Job.exit_code_signal = property(lambda self: int(self._plain["exit_code"].split(":")[1]))
Job.time_limit = property(lambda self: self._plain["time_limit"] and self._plain["time_limit"] // 60)
Job.allocated_nodes = property(lambda self: ",".join(self._plain["nodes"]) or None)
Job.batch_host = property(lambda self: self._plain["nodes"][0] if self._plain["nodes"] else None)
Job.standard_output = property(lambda self: self._plain["stdout"] if self._plain["batch"] else None)
Job.state = property(lambda self: next(
    (flag for flag in ("COMPLETING", "SPECIAL_EXIT") if flag in self._plain["states"]), self._plain["states"][0]))


def _job(key, plain):
    job = Job(int(key))
    job._plain = plain
    return job


class Jobs(dict):
    """As pyslurm/core/job/job.pyx: a mapping of ids to Job."""

    @staticmethod
    def load(preload_passwd_info=False, frozen=False):
        return Jobs((int(key), _job(key, plain)) for key, plain in _state()["jobs"].items())


class JobSubmitDescription:
    """As pyslurm/core/job/submission.pyx."""

    def __init__(self, **kwargs):
        self.begin_time = self.comment = self.admin_comment = None
        for key, value in kwargs.items():
            if not hasattr(self, key):
                raise AttributeError(key)
            setattr(self, key, value)


def _ping_primary():
    _state()
    return types.SimpleNamespace(is_responding=True)


slurmctld = types.SimpleNamespace(ping_primary=_ping_primary)
