"""What a node remembers of its network ports and memory controllers, and the deadline of each mount."""
import types

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import gather, memory
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.facts_node import Link

PORT = Link("mlx5_0/1", "infiniband", "up", "LinkUp", 400, 4)
KNOWN = {"mlx5_0/1": {"speed": 400, "width": 4}, "GPU-x/nvlink": {"up": 3}}


def links(*ports, before=KNOWN):
    return memory.links(F.Facts(links=tuple(ports)), before)


def test_ports_that_are_up_are_remembered_with_their_best():
    """A port that is slow today was faster."""
    assert links(PORT._replace(speed=200))["mlx5_0/1"] == {"speed": 400, "width": 4}
    assert links(PORT, before={}) == {"mlx5_0/1": {"speed": 400, "width": 4}}


def test_a_port_that_was_never_up_is_not_remembered():
    """Nobody cabled it."""
    assert links(PORT._replace(state="down", speed=None, width=None), before={}) == {}


def test_a_port_that_is_down_stays_remembered():
    """A healthy round with an acknowledged fault does not forget it."""
    assert "mlx5_0/1" in links(PORT._replace(state="down", speed=None, width=None))


def test_a_port_that_is_not_there_in_a_healthy_round_is_forgotten():
    """It has another name now, or was taken out and acknowledged. NVLinks are kept beside the ports and stay."""
    found = links(PORT._replace(name="ibp59s0/1"))
    assert set(found) == {"ibp59s0/1", "GPU-x/nvlink"}


def test_ports_that_were_not_read_change_nothing():
    """Unread is not gone."""
    assert memory.links(F.Facts(links=F.Unknown(F.TIMEOUT)), KNOWN) == KNOWN


def test_counters_of_ports_and_memory_controllers():
    """They become the base for "new since"."""
    counted = memory.counters(builders.healthy_node())
    assert counted["mlx5_0/1"] == {"link_downed": 0, "symbol_error": 0}
    assert counted["mc0"] == {"corrected": 0, "uncorrected": 0}


@pytest.mark.parametrize("gpus, known, kept", [(8, 8, True), (0, 0, True), (0, 8, False)])
def test_base_of_counters(gpus, known, kept):
    """A node without GPUs has a base too; one whose GPUs were not read this time keeps its old one."""
    facts = builders.healthy_node(gpus=gpus, known_gpus=builders.known_gpus(known))
    ctx = types.SimpleNamespace(woken=False, facts=facts, memory={"counters": {"old": {"x": 1}}}, phase="healthcheck",
                                seen=(), findings=(), gathered=types.SimpleNamespace(cursor=None),
                                state=types.SimpleNamespace(read=lambda name: {}))
    assert ("mc0" in memory.merged(ctx)["counters"]) is kept


@pytest.mark.parametrize("mount, seconds", [
    ({}, 3), ({"type": ["nfs4"]}, 8), ({"network": "true"}, 8), ({"type": ["nfs4"], "network": "false"}, 3),
    ({"deadline": 20}, 20), ({"type": ["lustre"], "deadline": 1.5}, 1.5)])
def test_deadline_of_a_mount(mount, seconds):
    """Its own, else that of its kind; `network: true` of the file is the word "true"."""
    entry = {"path": "/data", "type": [], "writable": False, "network": "auto", **mount}
    cfg = overlay(DEFAULTS, {"mounts": [entry]})
    plans = gather._plans(cfg, "", {}, {}, {"boot_id": ""}, (), F.Expected(0, "config"), "healthcheck")
    assert plans["mount:/data"][2] == seconds
