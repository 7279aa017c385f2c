"""What the node remembers from round to round."""
import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import memory
from slurm_gpuhealth.model import FATAL, NODE, NOTE, Finding


def note(key):
    return Finding("GH-GPU-SWAP", NOTE, NODE, data={"streak": key})


def test_streaks_count_rounds_in_a_row():
    """Seen again: one more. Not seen: it begins anew."""
    assert memory.streaks([note("a")], {}, 100.0, None) == {"a": [1, 100.0]}
    assert memory.streaks([note("a"), note("b")], {"a": [1, 100.0]}, 400.0, 100.0) == {"a": [2, 100.0], "b": [1, 400.0]}
    assert memory.streaks([], {"a": [5, 100.0]}, 400.0, 100.0) == {}


def test_rounds_that_follow_at_once_are_one_sample():
    """A flood of kernel lines wakes a round every second: ten of them are not ten samples."""
    assert memory.streaks([note("a")], {"a": [2, 100.0]}, 401.0, 400.0) == {"a": [2, 100.0]}
    assert memory.streaks([note("a")], {}, 401.0, 400.0) == {"a": [1, 401.0]}
    # The clock was set back.
    assert memory.streaks([note("a")], {"a": [2, 100.0]}, 401.0, 4000.0) == {"a": [3, 100.0]}


def test_first_seen_is_kept_while_it_stands():
    """By code and subject; what was not seen this round is forgotten."""
    lost = Finding("GH-GPU-LOST", FATAL, NODE._replace(kind="gpu", index=3, uuid="GPU-3"))
    assert memory.first_seen([lost], {}, 100.0) == {"GH-GPU-LOST|GPU-3": 100.0}
    assert memory.first_seen([lost], {"GH-GPU-LOST|GPU-3": 7.0, "GH-X|y": 1.0}, 100.0) == {"GH-GPU-LOST|GPU-3": 7.0}


@pytest.mark.parametrize("one, other, later", [
    ({"boot_id": "a", "inode": 1, "seq": 5}, {"boot_id": "a", "inode": 1, "seq": 9}, 9),
    ({"boot_id": "a", "inode": 1, "seq": 9}, {"boot_id": "a", "inode": 1, "seq": 5}, 9),
    ({"boot_id": "b", "inode": 1, "seq": 5}, {"boot_id": "a", "inode": 1, "seq": 9}, 5),
    ({"boot_id": "a", "inode": 2, "seq": 5}, {"boot_id": "a", "inode": 1, "seq": 9}, 5)])
def test_cursor_never_goes_back(one, other, later):
    """A slow round that began earlier must not have the next one read everything again."""
    assert memory.later_cursor(one, other)["seq"] == later


def test_counters_of_links_and_parts_have_names_of_their_own():
    """NVLink errors by GPU and link, ports and memory controllers by name; what was not read is left out."""
    gpu = builders.healthy_gpu(0, nvlinks=({"link": 4, "state": 1, "errors": {"replay": 3, "crc": None}},),
                               sram_counts={"parity": 2})
    facts = builders.healthy_node(gpus=(gpu,))._replace(
        links=(builders.F.RECORDS["links"](name="mlx5_0/1", counters={"link_downed": 7}),),
        memory_controllers=(builders.F.RECORDS["memory_controllers"](name="mc0", corrected=1, uncorrected=None),))
    found = memory.counters(facts)
    assert found[gpu.uuid + "/nvlink4"] == {"replay": 3}
    assert found[gpu.uuid]["sram_counts.parity"] == 2
    assert found["mlx5_0/1"] == {"link_downed": 7}
    assert found["mc0"] == {"corrected": 1}


def test_a_port_that_was_up_is_remembered_with_its_best_speed():
    """Down now, or slower: what it could is what counts."""
    port = F.RECORDS["links"]
    facts = F.Facts(links=(port(name="a", state="up", speed=200, width=4), port(name="b", state="down", speed=None)))
    assert memory.links(facts, {"a": {"speed": 400}}) == {"a": {"speed": 400, "width": 4}}
    assert memory.links(F.Facts(), {"a": {"speed": 400}}) == {"a": {"speed": 400}}
