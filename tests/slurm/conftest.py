"""Fixtures of the Slurm tests: a fake cluster, and both backends over it."""
import os
import sys

import pytest

from slurm_gpuhealth import config_defaults, slurm

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import fakes  # noqa: E402
from fakes import pyslurm_api  # noqa: E402

# pyslurm has one API, whatever the release.
KINDS = [("scontrol", release) for release in fakes.RELEASES] + [("pyslurm", "24.11")]


@pytest.fixture(params=KINDS, ids="-".join)
def kind(request):
    """(backend, Slurm release)."""
    return request.param


@pytest.fixture
def release(kind):
    return kind[1]


@pytest.fixture
def cluster(tmp_path, release):
    """A fake cluster of two nodes."""
    made = fakes.install(tmp_path / "bin", release)
    made.add_node("n1")
    made.add_node("n2", partitions=["main", "spare"])
    return made


@pytest.fixture
def cfg(cluster):
    made = config_defaults.fresh()
    made["slurm"].update(bin_dir=cluster.bin_dir, conf="/no/such/slurm.conf", backend="scontrol")
    made["deadlines"]["slurm"] = 5
    return made


@pytest.fixture
def client(kind, cfg, cluster, monkeypatch):
    """Each backend, over the same cluster."""
    cfg["slurm"]["backend"] = kind[0]
    if kind[0] == "pyslurm":
        monkeypatch.setitem(sys.modules, "pyslurm", pyslurm_api)
        monkeypatch.setattr(pyslurm_api, "cluster", cluster)
    made = slurm.client(cfg)
    assert made.backend == kind[0]
    return made
