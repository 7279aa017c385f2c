"""Any folder with our manifest: whatever is in it, sizes and sha256 say whether it is what was sealed."""
from __future__ import annotations

from functools import partial

from slurm_gpuhealth.checkpoint import content, manifest, parallel
from slurm_gpuhealth.checkpoint.formats import FILE_FORMATS, load
from slurm_gpuhealth.checkpoint.safe import printable
from slurm_gpuhealth.checkpoint.verdict import STRUCTURE, VERIFIED, WEIGHTS, Bad, Unclear, Verdict

NAME = "sealed"
# Without a manifest that says more, a folder is only weights when all in it is plain: weights, and small texts.
_TEXTS = (".json", ".txt", ".md", ".yaml", ".yml", ".model", ".jinja", ".py", ".toml", ".cfg", ".ini")

# Files that never begin with zeros, so that one which does was never written, or lost its content.
_NEVER_ZEROS = (".safetensors", ".pt", ".pth", ".ckpt")


def matches(folder, clock):
    """By the manifest's name, or by sums that name it: then it was there and is lost."""
    names = folder.names(clock)
    if manifest.MANIFEST in names:
        return True
    return names.get(manifest.SUMS) == "file" and manifest.MANIFEST.encode() in _small(folder, manifest.SUMS)


def check(folder, level, clock, on_step=None):
    """Judge a sealed folder. Sizes and the structure of known files at "structure", every sha256 at "full"."""
    sealed = read(folder, clock)
    found = folder.tree(clock)
    for entry in sealed.files:
        stat = found.get(entry.name)
        if stat is None:
            raise Bad("%s is not there" % printable(entry.name, 120))
        if stat.st_size != entry.bytes:
            raise Bad("%s has %d bytes instead of %d" % (printable(entry.name, 120), stat.st_size, entry.bytes))
    extra = sorted(set(found) - {entry.name for entry in sealed.files} - set(manifest.SEAL_FILES))
    insides = look_inside(folder, sealed, clock)
    verdict, reason = STRUCTURE, ""
    if level == "full":
        _compare(folder, sealed, clock, on_step)
        verdict = VERIFIED
    if extra:
        # What a later save left here could be read along with the rest: whole, but no longer what was sealed.
        verdict = STRUCTURE
        reason = "%d file%s not in its manifest: %s" % (len(extra), "s" * (len(extra) > 1), printable(extra[0], 80))
    holds = set(sealed.holds)
    if _only_weights(sealed, insides):
        verdict, reason = WEIGHTS, "no optimizer state" + ("; " + reason if reason else "")
    keys = [key for inside in insides.values() if inside is not None for key in inside.keys]
    step, step_key = sealed.step, "manifest"
    if step is None:
        step, step_key = step_of(insides)
    missing = _missing(holds, insides, step)
    return Verdict(verdict, NAME, step, missing, sealed.world_size, reason, tuple(keys[:200]), level, "",
                   sum(entry.bytes for entry in sealed.files), step_key if step is not None else "")


def read(folder, clock):
    """Manifest of a folder, after SHA256SUMS was found to say the same."""
    if manifest.MANIFEST not in folder.names(clock):
        raise Bad("%s is not there, %s is" % (manifest.MANIFEST, manifest.SUMS))
    raw = _small(folder, manifest.MANIFEST)
    sealed = manifest.parse(raw)
    if manifest.SUMS not in folder.names(clock):
        raise Bad("%s is not there" % manifest.SUMS)
    if _small(folder, manifest.SUMS) != manifest.render_sums(sealed, raw):
        raise Bad("%s and %s disagree" % (manifest.SUMS, manifest.MANIFEST))
    return sealed


def _small(folder, name):
    with folder.open(name) as source:
        if source.size > manifest.MAX_MANIFEST:
            raise Unclear("%s has %d bytes: more than is read" % (name, source.size))
        return source.read(0, source.size)


def look_inside(folder, sealed, clock):
    """{name: Verdict} of each file whose format is known, None for others. A part of a checkpoint is fine here."""
    insides: dict = {}
    for entry in sealed.files:
        clock.check()
        with folder.open(entry.name) as source:
            try:
                insides[entry.name] = _inside(source, clock)
            except Bad as exc:
                raise Bad("%s was sealed, but is not whole: %s" % (printable(entry.name, 100), exc)) from None
    return insides


def _inside(source, clock):
    for name in FILE_FORMATS[:-1]:
        module = load(name)
        if module.matches(source, clock):
            try:
                return module.check(source, "structure", clock)
            except Unclear:
                return None
    if source.name.endswith(_NEVER_ZEROS) and not source.read(0, min(4096, source.size)).strip(b"\0"):
        raise Bad("begins with zeros")
    return None


def _compare(folder, sealed, clock, on_step):
    pieces = [parallel.Piece(partial(folder.open, entry.name), 0, entry.bytes, "sha256") for entry in sealed.files]
    for entry, digest in zip(sealed.files, parallel.sums(pieces, clock, on_step)):
        if digest != entry.sha256:
            raise Bad("sha256 of %s does not fit" % printable(entry.name, 120))


def _only_weights(sealed, insides):
    if sealed.holds:
        return "optimizer" not in sealed.holds and "model" in sealed.holds
    weights = 0
    for name, inside in insides.items():
        if inside is not None and inside.verdict == WEIGHTS and content.part_of(_stem(name)) not in (
                "optimizer", "lr_scheduler", "rng_state"):
            weights += 1
        elif inside is not None or not name.lower().endswith(_TEXTS) or content.part_of(_stem(name)) == "optimizer":
            return False
    return weights > 0


def _stem(name):
    return name.rpartition("/")[2].partition(".")[0]


def _missing(holds, insides, step):
    found = set(holds)
    for name, inside in insides.items():
        found.add(content.part_of(_stem(name)))
        if inside is not None:
            found.update(part for part in content.PARTS if part not in inside.missing and inside.keys)
    if step is not None:
        found.add("global_step")
    return tuple(part for part in content.PARTS if part not in found)


def step_of(insides):
    """(step, its name) recorded in the files of a sealed folder, the highest; (None, "") without."""
    steps = [(inside.step, inside.step_key) for inside in insides.values() if inside and inside.step is not None]
    return max(steps) if steps else (None, "")
