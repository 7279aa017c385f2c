"""Stand-ins for Slurm: `scontrol` and `squeue` programs over a small JSON cluster, and a pyslurm module.

    slurm = fakes.install(tmp_path, release="24.11")
    slurm.add_node("n1"); slurm.add_job(7, nodes=["n1"], gpus={"n1": [0, 1]})
    cfg["slurm"]["bin_dir"] = slurm.bin_dir
    ...
    slurm.calls()       # argument lists, in order
    slurm.job(7)        # what became of it
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASES = ("22.05", "24.11", "26.05")

NODE = {"state": ["IDLE"], "reason": "", "reason_user": "", "reason_time": None, "partitions": ["main"],
        "boot_time": 1796000000}
JOB = {
    "array_job": None, "array_task": None, "waiting": None, "het_leader": None, "het_offset": None,
    "name": "train", "uid": 1000, "user": "ana", "states": ["RUNNING"], "reason": "None", "requeue": True,
    "restarts": 0, "batch": True, "exit_code": "0:0", "start": 1796000100, "end": None, "begin": None,
    "time_limit": None, "partition": "main", "nodes": [], "gpus": {}, "exclusive": False, "comment": "",
    "admin_comment": "", "work_dir": "/home/ana", "stdout": "/home/ana/out.txt", "held": False,
}


class FakeSlurm:
    """A cluster in one JSON file, which the fake programs (and the fake pyslurm) read and change."""

    def __init__(self, folder, release):
        self.bin_dir = str(folder)
        self.path = os.path.join(self.bin_dir, "cluster.json")
        self._write({"release": release, "nodes": {}, "jobs": {}, "away": 0, "hang": 0, "json": release != "22.05",
                     "deny": False})

    def _read(self):
        with open(self.path) as handle:
            return json.load(handle)

    def _write(self, state):
        with open(self.path, "w") as handle:
            json.dump(state, handle)

    def set(self, **values):
        """away: number of calls (or -1 for all) that do not reach slurmctld; hang: seconds each call takes;
        json: whether --json works; deny: whether changes are refused for lack of rights."""
        state = self._read()
        state.update(values)
        self._write(state)

    def add_node(self, name, **values):
        state = self._read()
        state["nodes"][name] = dict(NODE, **values)
        self._write(state)

    def add_job(self, job_id, **values):
        state = self._read()
        state["jobs"][str(job_id)] = dict(JOB, **values)
        self._write(state)

    def node(self, name):
        return self._read()["nodes"][name]

    def job(self, job_id):
        return self._read()["jobs"][str(job_id)]

    def calls(self):
        """Argument lists of all calls so far, the program's name first."""
        try:
            with open(os.path.join(self.bin_dir, "calls.jsonl")) as handle:
                return [json.loads(line)["argv"] for line in handle]
        except FileNotFoundError:
            return []

    def environments(self):
        """The environment of each call so far."""
        with open(os.path.join(self.bin_dir, "calls.jsonl")) as handle:
            return [json.loads(line)["env"] for line in handle]

    def changes(self):
        """The calls that change something (update, requeue, ...)."""
        return [argv for argv in self.calls() if argv[0] == "scontrol" and "show" not in argv
                and "ping" not in argv]


def install(folder, release="24.11"):
    """Put the fake programs into `folder` and return the FakeSlurm they work on.

    They are copied, with this interpreter in their first line: the real thing is called with an environment of
    its own, so a fake finds its cluster by where it lies.
    """
    os.makedirs(str(folder), exist_ok=True)
    for name in ("scontrol", "squeue"):
        with open(os.path.join(HERE, name)) as handle:
            text = handle.read()
        target = os.path.join(str(folder), name)
        with open(target, "w") as handle:
            handle.write("#!%s -IS\n" % sys.executable + text.split("\n", 1)[1])
        os.chmod(target, 0o755)
    return FakeSlurm(folder, release)
