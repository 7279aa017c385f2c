"""The health check's file for node_exporter."""
import os
import stat

import pytest

pytestmark = pytest.mark.allow_subprocess


def test_health_check_writes_the_metrics(node):
    """Each round anew, also on a node with a fault; prolog and epilog do not."""
    os.makedirs(node.path("/metrics"))
    node.config["prometheus"] = "/metrics/gpuhealth.prom"
    node.save()
    node.hook("prolog", 7)
    assert os.listdir(node.path("/metrics")) == []
    assert node.hook("healthcheck")[0] == 0
    path = node.path("/metrics/gpuhealth.prom")
    with open(path) as handle:
        assert "\ngpuhealth_outcome 0\n" in handle.read()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    node.lose(3)
    node.hook("healthcheck")
    with open(path) as handle:
        assert 'gpuhealth_finding{code="GH-GPU-LOST",severity="fatal",subject="gpu3"} 1\n' in handle.read()
    assert os.listdir(node.path("/metrics")) == ["gpuhealth.prom"]


def test_a_folder_that_is_not_there_is_said_once(node):
    """Metrics are never worth a failed hook, nor an event each round."""
    node.config["prometheus"] = "/metrics/gpuhealth.prom"
    node.save()
    for _ in range(3):
        assert node.hook("healthcheck")[0] == 0
    (event,) = node.events()
    assert event["kind"] == "internal-error" and "/metrics/gpuhealth.prom" in event["detail"]["error"]


def test_acknowledged_faults_are_notes_in_the_metrics(node):
    """As everywhere: the site has said that it knows."""
    os.makedirs(node.path("/metrics"))
    node.config.update(prometheus="/metrics/gpuhealth.prom", codes={"GH-GPU-LOST": {"severity": "warning"}})
    node.save()
    node.lose(3)
    node.hook("healthcheck")
    with open(node.path("/metrics/gpuhealth.prom")) as handle:
        assert "\ngpuhealth_outcome 1\n" in handle.read()
