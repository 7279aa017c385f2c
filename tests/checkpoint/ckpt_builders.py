"""Checkpoints for the tests: a zip laid out as torch lays it out, safetensors files, sealed folders."""
import json
import os
import struct
import zlib

from slurm_gpuhealth.checkpoint.seal import seal

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


def golden(name):
    with open(os.path.join(DATA, name), "rb") as handle:
        return handle.read()


def torch_like(records, name="whole", method=0):
    """Bytes of an archive as torch writes it (see data/whole.pt), with these {record: bytes}."""
    out, central = bytearray(), bytearray()
    for record, data in records.items():
        full, at, crc = ("%s/%s" % (name, record)).encode(), len(out), zlib.crc32(data)
        flags = 0x0808 if data else 0x0800
        padding = -(at + 30 + len(full) + 4) % 64
        extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        out += struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 0, flags, method, 0, 0, 0, 0, 0, len(full), len(extra))
        out += full + extra + data
        if data:
            out += struct.pack("<4sIII", b"PK\x07\x08", crc, len(data), len(data))
        central += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 0, 0, flags, method, 0, 0, crc, len(data),
                               len(data), len(full), 0, 0, 0, 0, 0, at) + full
    at, count = len(out), len(records)
    out += central
    out += struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 0x031E, 45, 0, 0, count, count, len(central), at)
    out += struct.pack("<4sIQI", b"PK\x06\x07", 0, at + len(central), 1)
    out += struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), len(central), at, 0)
    return bytes(out)


def torch_state(pickled, **records):
    """An archive around a pickle: {name of a storage: bytes} come as data/NAME."""
    every = {"data.pkl": pickled, "byteorder": b"little"}
    every.update({"data/" + key.lstrip("_"): data for key, data in records.items()})
    return torch_like(dict(every, version=b"3\n"))


def safetensors_bytes(tensors, metadata=None):
    """Bytes of a safetensors file: {name: number of float32}."""
    header, at, buffer = {}, 0, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for number, (name, count) in enumerate(tensors.items()):
        header[name] = {"dtype": "F32", "shape": [count], "data_offsets": [at, at + 4 * count]}
        at += 4 * count
        buffer += bytes([number + 1]) * (4 * count)
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + buffer


TRAINING = {"model.w": 6, "optim.state.0.exp_avg": 6}


def write(path, data):
    os.makedirs(os.path.dirname(str(path)), exist_ok=True)
    with open(str(path), "wb") as handle:
        handle.write(data)
    return str(path)


def sealed(folder, step=10, **more):
    """A sealed folder of two safetensors files and a text."""
    folder = str(folder)
    write(folder + "/model.safetensors", safetensors_bytes({"w": 6}))
    write(folder + "/optimizer.safetensors", safetensors_bytes({"exp_avg.w": 6}))
    write(folder + "/parts/progress.json", b'{"place": 3}')
    seal(folder, step=step, world_size=2, **more)
    return folder


def at_time(path, mtime):
    os.utime(str(path), (mtime, mtime))
    return str(path)
