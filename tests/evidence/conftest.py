"""Evidence of a made-up incident, in a folder of its own."""
import os

import builders
import pytest

from slurm_gpuhealth import decide, model
from slurm_gpuhealth.config_defaults import DEFAULTS, fresh
from slurm_gpuhealth.evidence import replay, store

LINE = "NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, name=python3, GPU has fallen off the bus."


class Case:
    """Facts with a Xid 79 of gpu3, their situation and configuration, and an incident made of them."""

    def __init__(self, root):
        self.root = str(root)
        self.cfg = fresh(DEFAULTS)
        self.cfg["mode"] = "full"
        self.facts = builders.healthy_node(klog=builders.log(LINE))
        self.situation = model.Situation(
            phase="healthcheck", node="n1", now=builders.NOW, boot_id=builders.BOOT_ID, mode="full", jobs=(),
            node_record=model.NodeRecord("n1", ("IDLE",)))
        self.mountinfo = os.path.join(self.root, "mountinfo")
        self.mounts("rw")

    def mounts(self, options, source="/dev/sda1"):
        os.makedirs(self.root, exist_ok=True)
        with open(self.mountinfo, "w") as handle:
            handle.write("21 1 8:1 / / %s - ext4 %s rw\n" % (options, source))

    def findings(self):
        return replay.findings_of(self.facts, self.cfg, self.situation.phase)

    def incident(self, ident="3fa9c1", **changes):
        return model.Incident(ident, "key", builders.BOOT_ID, "GH-XID79", model.Subject("gpu", 3),
                              builders.NOW)._replace(**changes)

    def open(self, incident=None, lines=(LINE,)):
        return store.open_incident(self.root, self.cfg, incident or self.incident(), self.facts, self.situation,
                                   self.cfg, self.findings(), lines, self.mountinfo)

    def whole(self, incident=None):
        """A finished folder with the decision that these facts lead to."""
        folder = self.open(incident)
        folder.decide(self.situation, decide.decide(self.findings(), self.situation, self.cfg), self.findings())
        folder.finish()
        return folder


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path)
