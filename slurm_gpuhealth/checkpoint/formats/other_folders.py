"""Folders of frameworks whose layout is recognised and not judged: sealing one makes it verifiable.

Without this, single files of such a folder would pass as checkpoints of their own, and a job would be told to
resume from one rank's part. Marks: names that only that framework writes (sources: each project's own writer).
"""
from __future__ import annotations

import re

from slurm_gpuhealth.checkpoint.verdict import Unclear

NAME = "unknown"

# (format, a name that gives it away). torch/distributed/checkpoint/filesystem.py; deepspeed/runtime/engine.py;
# megatron/training/checkpointing.py; transformers/trainer.py; accelerate/utils/constants.py; orbax
# _CHECKPOINT_METADATA.
MARKS = (
    ("deepspeed", re.compile(r"(bf16_)?zero_pp_rank_\d+_mp_rank_\d+_(optim|model)_states\.pt\Z"
                             r"|mp_rank_\d+_model_states\.pt\Z|layer_\d+-model_\d+-model_states\.pt\Z")),
    ("dcp", re.compile(r"\.metadata\Z|__\d+_\d+\.distcp\Z|__\d+\.metadata\Z")),
    ("megatron", re.compile(r"mp_rank_\d+(_\d+)*\Z|model_optim_rng\.pt\Z|distrib_optim\.pt\Z")),
    ("hf-trainer", re.compile(r"trainer_state\.json\Z|training_args\.bin\Z")),
    ("accelerate", re.compile(r"random_states_\d+\.pkl\Z")),
    ("orbax", re.compile(r"_CHECKPOINT_METADATA\Z|commit_success\.txt\Z|manifest\.ocdbt\Z|_METADATA\Z")),
    ("hf-sharded", re.compile(r"pytorch_model\.bin\.index\.json\Z|optimizer\.(pt|bin)\Z|rng_state(_\d+)?\.pth\Z")),
    ("tensorflow", re.compile(r".*\.data-\d{5}-of-\d{5}\Z")),
)


def kind(names):
    """Format whose mark is among `names`, or ""."""
    for fmt, mark in MARKS:
        if any(mark.match(name) for name in names):
            return fmt
    return ""


def matches(folder, clock):
    """By a name that only one framework writes."""
    return bool(kind(folder.names(clock)))


def check(folder, level, clock, on_step=None):
    """Raises Unclear: nothing in such a folder is called whole."""
    raise Unclear("a folder of %s, not judged yet: seal it (gpuhealth ckpt seal)" % kind(folder.names(clock)))
