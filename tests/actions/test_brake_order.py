"""Which of the nodes that drained at one moment takes its drain back."""
from slurm_gpuhealth.actions import node
from slurm_gpuhealth.model import NodeRecord

REASON = "GH-MNT-GONE /data [ev=abc123]"


def drained(name, when, reason=REASON):
    return NodeRecord(name, ("IDLE", "DRAIN"), reason, "root", when)


def order(*nodes):
    return [one.name for one in node.drained_for_external(nodes, lambda code: "external", 100.0, 3600)]


def test_the_earliest_stays_the_earliest_when_the_alert_marks_it():
    """Setting the mark renews the reason's time: judged by that, two nodes would each think that the other is later,
    and both stay drained above the limit."""
    assert order(drained("n1", 10), drained("n2", 10)) == ["n1", "n2"]
    assert order(drained("n1", 12, REASON + " brake=n2"), drained("n2", 10)) == ["n1", "n2"]


def test_other_drains_do_not_count():
    """Somebody else's reason, a node in service, an old drain."""
    back = drained("n3", 10)._replace(state=("IDLE",))
    assert order(drained("n1", 10, "PSU swap"), drained("n2", -9999), back, drained("n4", 11)) == ["n4"]
