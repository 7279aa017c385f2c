#!/usr/bin/env python3
"""A small training loop that is real: it learns, saves whole checkpoints and goes on from one bit for bit.

A two-layer classifier with dropout and Adam, in NumPy, on synthetic data. Everything that the next step depends
on is saved: weights, optimizer, step, random state, the sampler's order and place. A resumed run therefore ends
with the very bytes of an uninterrupted one.

    train.py --save-to /ckpt/run7 --steps 200 --every 10 --out /ckpt/run7.final [--resume-from /ckpt/run7/step-000100]

--format safetensors: a folder a checkpoint, sealed with our manifest; written under a temporary name, then renamed.
--format torch: one file a checkpoint, as torch.save writes it; the arithmetic stays NumPy's.
"""
import argparse
import json
import os
import shutil
import signal
import sys
import time

# One thread: the order of additions, and with it the last bit, must not depend on the node.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

SAMPLES, FEATURES, HIDDEN, CLASSES, BATCH = 512, 16, 32, 4, 32
RATE, WARM_UP, BETA1, BETA2, EPSILON, KEEP = 3e-3, 20, 0.9, 0.999, 1e-8, 0.9


def dataset(seed):
    """(inputs, labels) of a fixed problem: labels come from a random teacher."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((SAMPLES, FEATURES)).astype(np.float32)
    teacher = rng.standard_normal((FEATURES, CLASSES)).astype(np.float32)
    return inputs, np.argmax(inputs @ teacher, axis=1)


class Training:
    """All state of a run. One `step()` is one batch."""

    def __init__(self, seed):
        self.inputs, self.labels = dataset(seed)
        self.rng = np.random.default_rng(seed + 1)
        shapes = {"w1": (FEATURES, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, CLASSES), "b2": (CLASSES,)}
        self.model = {name: (self.rng.standard_normal(shape) * (0.3 if len(shape) > 1 else 0)).astype(np.float32)
                      for name, shape in shapes.items()}
        self.mean = {name: np.zeros_like(value) for name, value in self.model.items()}
        self.square = {name: np.zeros_like(value) for name, value in self.model.items()}
        self.done = 0
        self.order = self.rng.permutation(SAMPLES)
        self.place = 0

    def batch(self):
        """The next batch; a new order when the epoch is over."""
        if self.place + BATCH > SAMPLES:
            self.order, self.place = self.rng.permutation(SAMPLES), 0
        chosen = self.order[self.place:self.place + BATCH]
        self.place += BATCH
        return self.inputs[chosen], self.labels[chosen]

    def step(self):
        """Train on one batch and return its loss."""
        inputs, labels = self.batch()
        model, rows = self.model, np.arange(len(labels))
        before = inputs @ model["w1"] + model["b1"]
        mask = (self.rng.random(before.shape) < KEEP).astype(np.float32) / np.float32(KEEP)
        hidden = np.maximum(before, 0) * mask
        scores = hidden @ model["w2"] + model["b2"]
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        chances /= chances.sum(axis=1, keepdims=True)
        loss = float(-np.log(chances[rows, labels] + 1e-12).mean())
        chances[rows, labels] -= 1
        chances /= len(labels)
        back = (chances @ model["w2"].T) * mask * (before > 0)
        self.update({"w1": inputs.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ chances,
                     "b2": chances.sum(axis=0)})
        return loss

    def update(self, slopes):
        """One step of Adam, with a warm-up of the rate that depends on the step."""
        self.done += 1
        rate = np.float32(RATE * min(1.0, self.done / WARM_UP))
        for name, slope in slopes.items():
            self.mean[name] = (BETA1 * self.mean[name] + (1 - BETA1) * slope).astype(np.float32)
            self.square[name] = (BETA2 * self.square[name] + (1 - BETA2) * slope * slope).astype(np.float32)
            mean = self.mean[name] / np.float32(1 - BETA1 ** self.done)
            square = self.square[name] / np.float32(1 - BETA2 ** self.done)
            self.model[name] = self.model[name] - rate * mean / (np.sqrt(square) + np.float32(EPSILON))

    def progress(self):
        """What is not an array, as plain values."""
        return {"global_step": self.done, "place": self.place, "rng_state": self.rng.bit_generator.state}

    def optimizer(self):
        """The optimizer's arrays by name."""
        found = {"exp_avg." + name: value for name, value in self.mean.items()}
        found.update({"exp_avg_sq." + name: value for name, value in self.square.items()})
        return found

    def restore(self, model, optimizer, order, progress):
        """Go back to a saved state."""
        self.model = {name: np.array(value) for name, value in model.items()}
        for name in self.model:
            self.mean[name] = np.array(optimizer["exp_avg." + name])
            self.square[name] = np.array(optimizer["exp_avg_sq." + name])
        self.order, self.place, self.done = np.array(order), progress["place"], progress["global_step"]
        self.rng.bit_generator.state = progress["rng_state"]


# -- checkpoints

def flush(path):
    """Bring a file or folder to the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def into_place(temporary, final):
    """Rename a finished checkpoint to its name; one of that name from before (a run gone back) goes away."""
    if os.path.isdir(final):
        old = os.path.join(os.path.dirname(final), ".tmp-old-%d" % os.getpid())
        os.rename(final, old)
        os.rename(temporary, final)
        shutil.rmtree(old)
    else:
        os.rename(temporary, final)
    flush(os.path.dirname(final))


def save_safetensors(training, folder):
    """A sealed folder: model, optimizer, and the rest as JSON."""
    from safetensors.numpy import save_file

    from slurm_gpuhealth.checkpoint.seal import seal
    temporary = os.path.join(folder, ".tmp-step-%d" % os.getpid())
    shutil.rmtree(temporary, ignore_errors=True)
    os.mkdir(temporary)
    step = {"global_step": str(training.done)}
    save_file(training.model, os.path.join(temporary, "model.safetensors"), step)
    save_file(training.optimizer(), os.path.join(temporary, "optimizer.safetensors"), step)
    save_file({"order": training.order}, os.path.join(temporary, "sampler.safetensors"), step)
    with open(os.path.join(temporary, "progress.json"), "w", encoding="ascii") as handle:
        json.dump(training.progress(), handle)
    seal(temporary, step=training.done, world_size=1, format="numpy training loop",
         holds=("model", "optimizer", "lr_scheduler", "global_step", "rng_state"))
    final = os.path.join(folder, "step-%06d" % training.done)
    into_place(temporary, final)
    return final


def load_safetensors(training, path):
    """Restore from a folder that save_safetensors wrote."""
    from safetensors.numpy import load_file
    with open(os.path.join(path, "progress.json"), encoding="ascii") as handle:
        progress = json.load(handle)
    training.restore(load_file(os.path.join(path, "model.safetensors")),
                     load_file(os.path.join(path, "optimizer.safetensors")),
                     load_file(os.path.join(path, "sampler.safetensors"))["order"], progress)


def save_torch(training, folder):
    """One file, as torch.save writes it."""
    import torch

    def tensors(arrays):
        return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}
    progress = training.progress()
    state = {"model": tensors(training.model), "optimizer": tensors(training.optimizer()),
             "sampler": {"order": torch.from_numpy(training.order), "place": progress["place"]},
             "global_step": training.done, "rng_state": json.dumps(progress["rng_state"])}
    temporary = os.path.join(folder, ".tmp-step-%d.pt" % os.getpid())
    torch.save(state, temporary)
    flush(temporary)
    final = os.path.join(folder, "step-%06d.pt" % training.done)
    into_place(temporary, final)
    return final


def load_torch(training, path):
    """Restore from a file that save_torch wrote."""
    import torch
    state = torch.load(path, weights_only=True)
    arrays = {part: {name: value.numpy() for name, value in state[part].items()} for part in ("model", "optimizer")}
    training.restore(arrays["model"], arrays["optimizer"], state["sampler"]["order"].numpy(), {
        "global_step": state["global_step"], "place": state["sampler"]["place"],
        "rng_state": json.loads(state["rng_state"])})


SAVE = {"safetensors": save_safetensors, "torch": save_torch}
LOAD = {"safetensors": load_safetensors, "torch": load_torch}


def save_result(training, path):
    """The final weights, always in the same bytes for the same weights."""
    from safetensors.numpy import save
    temporary = path + ".tmp"
    with open(temporary, "wb") as handle:
        handle.write(save(training.model))
        handle.flush()
        os.fsync(handle.fileno())
    os.rename(temporary, path)


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save-to", metavar="DIR", help="folder for the checkpoints")
    parser.add_argument("--every", type=int, default=10, metavar="N", help="steps between checkpoints")
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="train up to this step")
    parser.add_argument("--step-seconds", type=float, default=0.0, metavar="S", help="let each step take so long")
    parser.add_argument("--resume-from", metavar="PATH", help="checkpoint to go on from")
    parser.add_argument("--format", choices=sorted(SAVE), default="safetensors")
    parser.add_argument("--out", metavar="FILE", help="write the final weights here (safetensors)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--ignore-term", action="store_true", help="do not end on SIGTERM (a job that will not stop)")
    return parser.parse_args(argv)


def main(argv=None):
    args = arguments(argv)
    if args.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    training = Training(args.seed)
    if args.resume_from:
        LOAD["torch" if os.path.isfile(args.resume_from) else "safetensors"](training, args.resume_from)
        print("resumed at step %d from %s" % (training.done, args.resume_from), flush=True)
    else:
        print("starting at step 0", flush=True)
    if args.save_to:
        os.makedirs(args.save_to, exist_ok=True)
    while training.done < args.steps:
        loss = training.step()
        print("step %d loss %.6f" % (training.done, loss), flush=True)
        if args.step_seconds:
            time.sleep(args.step_seconds)
        if args.save_to and training.done % args.every == 0:
            print("saved %s" % SAVE[args.format](training, args.save_to), flush=True)
    if args.out:
        save_result(training, args.out)
    print("finished at step %d" % training.done, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
