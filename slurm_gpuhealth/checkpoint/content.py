"""What the names in a checkpoint say: the step, which parts are there, whether it is only weights.

Names are habits, not rules, so this leans one way: a checkpoint is called weights-only, or a part, only where that
is plain. What a training script wrote into the folder it declared is what it reads back.
"""
from __future__ import annotations

import re

from slurm_gpuhealth.checkpoint.pickles import Thing
from slurm_gpuhealth.checkpoint.verdict import MAX_KEYS, Content

PARTS = ("model", "optimizer", "lr_scheduler", "global_step", "grad_scaler", "rng_state")

# In the order they are believed. Sources of the habits: Lightning and HF (global_step), DeepSpeed (global_steps),
# Megatron-LM (iteration), torchtitan (train_state.step), fairseq (num_updates). An epoch is better than nothing.
STEP_KEYS = ("global_step", "step", "iteration", "global_steps", "steps", "num_steps", "current_step", "train_step",
             "iter", "num_updates", "updates", "epoch")
_MAX_STEP = 10 ** 15
_LOOK_DEPTH = 4         # levels of containers searched for tensors and optimizers
_LOOK_VALUES = 20000    # values looked at in one such search

_PART = "no model weights in it: one part of a checkpoint"
_WORD = re.compile(r"[a-z]+")
_SCALER = re.compile(r"grad_?scaler|loss_?scaler|amp_scaler|\bscaler\b|mixedprecision")
_OPTIMIZER_WORDS = frozenset(("opt", "adam", "adamw", "sgd", "lamb", "lion", "adafactor", "momentum", "velocity"))
_RNG_WORDS = frozenset(("rng", "random", "rngs", "seed", "seeds"))
_DATA_WORDS = frozenset(("sampler", "dataloader", "loader", "dataset", "data", "loops", "callbacks"))
_MODEL_WORDS = frozenset(("model", "models", "module", "modules", "net", "network", "weights", "weight", "params",
                          "parameters", "state", "generator", "discriminator", "ema", "encoder", "decoder",
                          "backbone", "head"))


def part_of(name):
    """Which of PARTS (or "data") a top-level name stands for, "" when it says nothing."""
    name = name.lower()
    words = _WORD.findall(name)
    if any(word.startswith("sched") for word in words) or name in ("lr", "lr_state"):
        return "lr_scheduler"
    if _SCALER.search(name):
        return "grad_scaler"
    if _RNG_WORDS.intersection(words):
        return "rng_state"
    if _OPTIMIZER_WORDS.intersection(words) or any(word.startswith("optim") for word in words):
        return "optimizer"
    if _DATA_WORDS.intersection(words):
        return "data"
    if _MODEL_WORDS.intersection(words):
        return "model"
    return ""


def of_pickle(root, number_of=None):
    """Content of what a torch file holds. number_of(thing): value of a tensor with one whole number, or None."""
    top = entries(root)
    if top is None:
        what = root.name if isinstance(root, Thing) else type(root).__name__
        if isinstance(root, Thing) and has_tensor(root.state):
            return Content(weights_only=True, missing=PARTS[1:], why="a whole object of class %s" % what)
        return Content(missing=PARTS, part=True, why="holds one %s, not a training state" % what)
    names = [key for key in top if isinstance(key, str)]
    if "param_groups" in top and "state" in top:
        return Content(tuple(names), missing=_missing({"optimizer"}), part=True,
                       why="optimizer state only: one part of a checkpoint")
    step, step_key = find_step(top, number_of)
    found, loose, tensors = set(), 0, 0
    for key, value in top.items():
        if value is None or entries(value) == {} or (step is not None and key == step_key):
            continue        # "optimizer": None (DeepSpeed under ZeRO), "optimizer_states": []
        is_tensor = isinstance(value, Thing) and value.kind == "tensor"
        part = _part(str(key), value, is_tensor)
        if part:
            found.add(part)
        elif is_tensor:
            tensors += 1
        elif has_tensor(value):
            loose += 1
    if step is not None:
        found.add("global_step")
    return _judge(names, found, loose, tensors, step, step_key)


def _part(key, value, is_tensor):
    """Which part a top-level entry is; "" when neither its name nor what it holds tells."""
    if is_optimizer(value):
        return "optimizer"
    part = _part_of_flat(key) if is_tensor and "." in key else part_of(key)
    if part == "model":
        return part if has_tensor(value) else ""        # "model": "llama" is a name
    if part == "optimizer" and not has_tensor(value):
        # "opt" is as often the options of the command line. Plain SGD has no tensors, but param_groups.
        return ""
    return part


def of_names(names, step=None, step_key=""):
    """Content of a flat file of tensors (safetensors): `names` are all their names."""
    found = {"global_step"} if step is not None else set()
    for name in names:
        part = _part_of_flat(name)
        found.add(part or "model")
    shown = tuple(sorted(names)[:MAX_KEYS])
    if not names:
        return Content(missing=PARTS, part=True, why="holds no tensors")
    if "model" not in found:
        return Content(shown, step, step_key, _missing(found), part=True, why=_PART)
    only = "optimizer" not in found
    return Content(shown, step, step_key, _missing(found), only, False, "no optimizer state" if only else "")


def _part_of_flat(name):
    """As part_of, for a flat name such as model.layer.0.weight or optim.state.0.exp_avg."""
    first, dot, _ = name.lower().replace("/", ".").partition(".")
    part = part_of(first) if dot or first in ("rng", "rng_state") else ""
    if part in ("optimizer", "rng_state", "lr_scheduler", "grad_scaler"):
        return part
    pieces = name.lower().replace("/", ".").split(".")
    if any(piece.startswith(("exp_avg", "momentum_buffer", "exp_inf", "max_exp_avg")) for piece in pieces):
        return "optimizer"
    return "data" if part == "data" and first.startswith(("sampler", "dataloader")) else ""


def _judge(names, found, loose, tensors, step, step_key):
    shown = tuple(names[:MAX_KEYS])
    if "optimizer" in found:
        if "model" in found or loose or tensors:
            return Content(shown, step, step_key, _missing(found), False, False, "")
        return Content(shown, step, step_key, _missing(found), part=True, why=_PART)
    if "model" not in found and not loose and not tensors:
        return Content(shown, step, step_key, _missing(found), part=True, why=_PART)
    if loose + ("model" in found) >= 2 and not tensors:
        # Several unfamiliar groups of tensors: an optimizer under a name of its own may be among them.
        return Content(shown, step, step_key, _missing(found | {"model"}), False, False, "")
    return Content(shown, step, step_key, _missing(found | {"model"}), True, False, "no optimizer state")


def _missing(found):
    return tuple(part for part in PARTS if part not in found)


def entries(value):
    """The entries of a container as a dict, or None when it is not one."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, Thing) and value.kind == "object":
        if value.items is not None:
            return value.items
        if value.name.rpartition(".")[2] in ("OrderedDict", "defaultdict", "dict"):
            return {}
        if value.name == "argparse.Namespace" and isinstance(value.state, dict):
            return value.state
    return None


def has_tensor(value):
    """True when there is a tensor in `value`, not too deep."""
    return _search(value, lambda thing: isinstance(thing, Thing) and thing.kind == "tensor")


def is_optimizer(value):
    """True for the state of a torch optimizer, or a container of such: known by its own two keys."""
    def looks(thing):
        inside = entries(thing)
        return inside is not None and "param_groups" in inside and "state" in inside
    return _search(value, looks, 2)


def _search(value, test, depth=_LOOK_DEPTH):
    level, seen = [value], 0
    for _ in range(depth + 1):
        below = []
        for item in level:
            seen += 1
            if seen > _LOOK_VALUES:
                return False
            if test(item):
                return True
            inner = entries(item)
            if inner:
                below.extend(inner.values())
            elif isinstance(item, Thing) and isinstance(item.state, dict):
                below.append(item.state)
        level = below
    return False


def find_step(top, number_of=None):
    """(step, name it stood under) in top-level entries and those one level below; (None, "") without."""
    places = [("", top)]
    for key, value in top.items():
        inner = entries(value) if isinstance(key, str) and part_of(key) not in ("optimizer", "lr_scheduler") else None
        if inner and "param_groups" not in inner:
            places.append((key + ".", inner))
    for wanted in STEP_KEYS:
        for prefix, place in places:
            if wanted in place:
                step = whole_number(place[wanted], number_of)
                if step is not None:
                    return step, prefix + wanted
    return None, ""


def whole_number(value, number_of=None):
    """`value` as a step, or None: a whole number that is not negative, or what holds one."""
    if isinstance(value, Thing):
        if value.name.endswith("multiarray.scalar") and len(value.args) == 2 and isinstance(value.args[1], bytes):
            dtype = value.args[0]
            code = dtype.args[0] if isinstance(dtype, Thing) and dtype.args else ""
            if code in ("i8", "i4", "u8", "u4"):
                value = int.from_bytes(value.args[1], "little", signed=code[0] == "i")
        elif number_of is not None and value.kind == "tensor":
            value = number_of(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is int and 0 <= value < _MAX_STEP:
        return value
    return None


def text_step(metadata):
    """(step, key) among the texts of a safetensors header's __metadata__, (None, "") without."""
    for wanted in STEP_KEYS:
        text = metadata.get(wanted, "")
        if isinstance(text, str) and len(text) <= 15 and text.isascii() and text.isdigit():
            return int(text), wanted
    return None, ""
