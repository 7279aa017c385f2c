"""The pickle reader against pickle itself, and what names in a checkpoint say."""
import pickle
import pickletools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_gpuhealth.checkpoint import content, pickles
from slurm_gpuhealth.checkpoint.verdict import Bad, Unclear

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-2**70, 2**70), st.floats(allow_nan=False),
                    st.text(max_size=40), st.text(max_size=3).map(lambda text: text * 100))
PLAIN = st.recursive(SCALARS, lambda inner: st.one_of(
    st.lists(inner, max_size=5), st.lists(inner, max_size=5).map(tuple),
    st.dictionaries(st.text(max_size=10), inner, max_size=5)), max_leaves=20)


@settings(max_examples=200, deadline=None)
@given(value=PLAIN, protocol=st.integers(0, 5))
def test_plain_values_are_read_as_pickle_reads_them(value, protocol):
    """Everything that needs no class comes out as pickle.loads would give it, in every protocol."""
    raw = pickle.dumps(value, protocol)
    found = pickles.read(raw + b"behind")
    assert found.root == value
    assert found.length == len(raw)


@settings(max_examples=200, deadline=None)
@given(value=PLAIN, protocol=st.integers(0, 5), part=st.floats(0, 0.999))
def test_a_cut_pickle_is_never_whole(value, protocol, part):
    """Cut anywhere: Bad, never another exception, never a value."""
    raw = pickle.dumps(value, protocol)
    with pytest.raises(Bad):
        pickles.read(raw[:int(len(raw) * part)])


@settings(max_examples=400, deadline=None)
@given(data=st.binary(max_size=80))
def test_noise_raises_nothing_else(data):
    """Any bytes: a value, Bad or Unclear."""
    try:
        pickles.read(data)
    except (Bad, Unclear):
        pass


def test_every_opcode_of_python_is_known():
    """All opcodes that this Python's pickletools lists are handled."""
    inlined = {0x72, 0x71, 0x68, 0x6a, 0x58, 0x4b, 0x28, 0x94, 0x2e, 0x74, 0x29, 0x4a}
    assert {ord(op.code) for op in pickletools.opcodes} == set(pickles._TABLE) | inlined


def test_calls_are_held_and_not_made():
    """Globals, calls, instances and sets leave Things that say what would have been done."""
    value = {"a": {1, 2}, "b": frozenset((3,)), "c": ValueError("x"), "d": bytearray(b"y"), "e": complex(1, 2)}
    root = pickles.read(pickle.dumps(value, 4)).root
    assert root["c"].name == "builtins.ValueError"
    assert root["c"].args == ("x",)
    assert sorted(root["a"].elements) == [1, 2]


def test_limits_are_kept(monkeypatch):
    """Too many opcodes, too long a class name: said as beyond the limits, not as damage."""
    monkeypatch.setattr(pickles, "MAX_OPCODES", 10)
    with pytest.raises(Unclear):
        pickles.read(b"\x80\x02" + b"]" * 200000 + b".")
    with pytest.raises(Unclear):
        pickles.read(b"c" + b"m" * 600 + b"\nx\n.")


def test_the_clock_is_looked_at():
    """A long pickle can be given up on the way."""
    class Late(Exception):
        pass

    def tick():
        raise Late
    with pytest.raises(Late):
        pickles.read(b"\x80\x02].", tick)


# -- content: what names say

def tensor():
    return pickles.Thing("torch._utils._rebuild_tensor_v2", "tensor")


OPTIMIZER = {"state": {}, "param_groups": [{"lr": 0.1}]}
WEIGHTS = {"w": tensor()}


@pytest.mark.parametrize("root,expected", [
    ({"model": WEIGHTS, "optimizer": OPTIMIZER, "epoch": 3}, (False, False, 3)),
    ({"net": WEIGHTS, "opt_g": OPTIMIZER, "global_step": 5, "epoch": 1}, (False, False, 5)),
    ({"state_dict": WEIGHTS, "optimizer_states": [OPTIMIZER], "global_step": 7}, (False, False, 7)),      # Lightning
    ({"state_dict": WEIGHTS, "global_step": 7, "hyper_parameters": {"a": 1}}, (True, False, 7)),
    ({"module": WEIGHTS, "optimizer": None, "global_steps": 9}, (True, False, 9)),                         # DeepSpeed
    ({"model": WEIGHTS, "optimizer": OPTIMIZER, "train_state": {"step": 11}}, (False, False, 11)),
    ({"a.weight": tensor(), "a.bias": tensor()}, (True, False, None)),
    ({"model.w": tensor(), "optim.state.0.exp_avg": tensor()}, (False, False, None)),
    ({"params": WEIGHTS, "mu": WEIGHTS, "nu": WEIGHTS, "step": 4}, (False, False, 4)),      # an optimizer of one's own
    ({"model": WEIGHTS, "opt": {"lr": 0.1, "name": "x"}, "epoch": 2}, (True, False, 2)),    # options, no optimizer
    ({"model": WEIGHTS, "ema": WEIGHTS}, (True, False, None)),
    (OPTIMIZER, (False, True, None)),
    ({"python": 1, "numpy": 2, "cpu": tensor()}, (True, False, None)),
    ({"rng_state": tensor()}, (False, True, None)),
    ({"optimizer": OPTIMIZER, "step": 3}, (False, True, 3)),
    ([WEIGHTS, OPTIMIZER, 12], (False, False, None)),
    ({"model": "llama", "optimizer": "adam"}, (False, True, None)),
    (7, (False, True, None)),
])
def test_what_names_say(root, expected):
    """(weights only, only a part, step) for the habits of frameworks and of people."""
    found = content.of_pickle(root)
    assert (found.weights_only, found.part, found.step) == expected


def test_steps_that_are_none():
    """Negative, fractional, huge and boolean values are not steps."""
    for value in (-1, 1.5, 10 ** 16, True, "5", None, float("nan"), float("inf")):
        assert content.whole_number(value) is None
    assert content.whole_number(3.0) == 3


def test_a_numpy_scalar_is_a_step():
    """np.int64(42) in a pickle is read from its bytes."""
    np = pytest.importorskip("numpy")
    for value in (np.int64(42), np.uint32(42)):
        root = pickles.read(pickle.dumps({"model": 1, "step": value}, 2)).root
        assert content.find_step(root) == (42, "step")


def test_missing_parts_are_named():
    """Of the six parts, those that are not there."""
    found = content.of_pickle({"model": WEIGHTS, "optimizer": OPTIMIZER, "lr_scheduler": {"last_epoch": 1}, "step": 1})
    assert found.missing == ("grad_scaler", "rng_state")
