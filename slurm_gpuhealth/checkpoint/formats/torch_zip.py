"""Files of torch.save since 1.6: a zip archive of stored records with a pickle of what they mean.

Facts (torch 2.13 and 2.14, looked at byte by byte; writer: torch/csrc and miniz): records NAME/data.pkl,
.format_version, .storage_alignment, byteorder, data/0..n, version, .data/serialization_id; all stored, never
compressed; flags 0x0808 and zeros for sizes and CRC in the local header, the truth in a data descriptor behind
the record and in the central directory; local extra field "FB" of Z's that aligns the data to 64 bytes; zip64 end
record and locator always there; no comment, so the end record is the last 22 bytes. torch.load does not check the
CRC, so a CRC that fits says more than "it loads".
"""
from __future__ import annotations

import struct
from collections import namedtuple

from slurm_gpuhealth.checkpoint import content, parallel, pickles
from slurm_gpuhealth.checkpoint.safe import printable
from slurm_gpuhealth.checkpoint.verdict import STRUCTURE, UNKNOWN, VERIFIED, WEIGHTS, Bad, Unclear, Verdict

NAME = "torch-zip"
MAX_DIRECTORY = 64 << 20    # bytes; 100,000 records take about 7 MB
MAX_RECORDS = 200000

# Bytes of one element, torch/storage.py and torch/_utils.py. UntypedStorage counts bytes.
ITEM_SIZES = {
    "DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "LongStorage": 8, "IntStorage": 4,
    "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1, "ComplexDoubleStorage": 16,
    "ComplexFloatStorage": 8, "QUInt8Storage": 1, "QInt8Storage": 1, "QInt32Storage": 4, "QUInt4x2Storage": 1,
    "QUInt2x4Storage": 1, "UntypedStorage": 1,
}
_INTEGERS = {"LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1}
_FLOATS = {"DoubleStorage": "<d", "FloatStorage": "<f"}

_EOCD = struct.Struct("<4sHHHHIIH")
_EOCD64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR = struct.Struct("<4sIQI")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF

Record = namedtuple("Record", "name crc size header zip64 plain")
Record.__doc__ = """One entry of the central directory. header: offset of its local header. zip64: its zip64 extra
field. plain: every field that no checksum covers is as torch writes it."""


def matches(source, clock):
    """By the first bytes: the local header of the first record."""
    return source.size >= 4 and source.read(0, 4) == b"PK\x03\x04"


def check(source, level, clock, on_step=None):
    """Judge one file. level "structure": directory, local headers, storage sizes; "full": every record's CRC too."""
    records, directory, plain = _directory(source, clock)
    prefix = _prefix(records)
    by_name = {record.name[len(prefix):]: record for record in records}
    places, all_plain = _walk(_Window(source), records, directory, clock)
    plain = plain and all_plain
    if any(name.startswith("code/") for name in by_name) or "constants.pkl" in by_name:
        raise Unclear("a TorchScript archive, not a checkpoint")
    if "data.pkl" not in by_name or "version" not in by_name:
        raise Unclear("a zip archive, but not one of torch: no data.pkl or no version in it")
    pickled = by_name["data.pkl"]
    raw = source.read(places[pickled.name], pickled.size)
    parsed = pickles.read(raw, clock.check)
    if parsed.length != len(raw):
        raise Bad("data.pkl goes on behind its end")
    order = _byte_order(source, by_name, places)
    _check_storages(parsed.storages, by_name)
    what = content.of_pickle(parsed.root, lambda thing: _number_of(thing, source, by_name, places, order))
    verdict, reason = STRUCTURE, ""
    if level == "full" and not what.part:
        verdict, reason = _checksums(source, records, places, plain, clock, on_step)
    if what.part:
        verdict, reason = UNKNOWN, what.why
    elif what.weights_only:
        verdict, reason = WEIGHTS, what.why + ("; " + reason if reason else "")
    return Verdict(verdict, NAME, what.step, what.missing, None, reason, what.keys, level, "", source.size,
                   what.step_key)


# -- the directory at the end

def _directory(source, clock):
    """(records, offset of the directory, True when all end records and entries are just as torch writes them)."""
    if source.size < _EOCD.size:
        raise Bad("cut off: %d bytes, too short for a zip archive" % source.size)
    end_at = source.size - _EOCD.size
    end = _EOCD.unpack(source.read(end_at, _EOCD.size))
    if end[0] != b"PK\x05\x06" or end[7] != 0:
        raise Bad("cut off or overwritten at its end: the zip end record is not there")
    count, size, offset, stop, plain = _zip64(source, end, end_at)
    if offset + size != stop:
        raise Bad("the zip directory does not end where it should")
    if size > MAX_DIRECTORY or count > MAX_RECORDS:
        raise Unclear("zip directory of %d records, %d bytes: more than is looked at" % (count, size))
    data = source.read(offset, size)
    records: list = []
    at = 0
    while at < len(data):
        if len(records) % 4096 == 0:
            clock.check()
        record, at = _central(data, at)
        records.append(record)
    if len(records) != count or len({record.name for record in records}) != count:
        raise Bad("the zip directory holds %d records, its end record says %d" % (len(records), count))
    return records, offset, plain and all(record.plain for record in records)


def _zip64(source, end, end_at):
    """(records, bytes and offset of the directory, where it must end, canonical?) with zip64 where it is."""
    _, disk, first_disk, here, count, size, offset, _ = end
    if disk or first_disk or here != count:
        raise Bad("the zip end record is damaged")
    at = end_at - _LOCATOR.size - _EOCD64.size
    if at < 0 or source.read(end_at - _LOCATOR.size, 4) != b"PK\x06\x07":
        if _MAX32 in (size, offset) or count == _MAX16:
            raise Bad("the zip64 end record is not there")
        return count, size, offset, end_at, False
    _, locator_disk, pointed, disks = _LOCATOR.unpack(source.read(end_at - _LOCATOR.size, _LOCATOR.size))
    (magic, length, made, needed, disk, first_disk, here, count64, size64, offset64) = _EOCD64.unpack(
        source.read(at, _EOCD64.size))
    if magic != b"PK\x06\x06" or pointed != at or length != 44 or locator_disk or disks != 1 or disk or first_disk:
        raise Bad("the zip64 end record is damaged")
    if (here != count64 or count != min(count64, _MAX16) or size != min(size64, _MAX32)
            or offset != min(offset64, _MAX32)):
        raise Bad("the two zip end records disagree")
    return count64, size64, offset64, at, made == 0x031E and needed == 45


def _central(data, at):
    """(Record, offset behind it) of the directory entry at `at`."""
    if at + _CENTRAL.size > len(data):
        raise Bad("the zip directory is cut off")
    (magic, made, needed, flags, method, time, date, crc, packed, size, name_len, extra_len, comment_len, disk,
     internal, external, header) = _CENTRAL.unpack_from(data, at)
    if magic != b"PK\x01\x02":
        raise Bad("the zip directory is damaged")
    at += _CENTRAL.size
    end = at + name_len + extra_len + comment_len
    if end > len(data):
        raise Bad("the zip directory is cut off")
    raw, extra = data[at:at + name_len], data[at + name_len:at + name_len + extra_len]
    if method != 0 and b"/code/" in raw:
        raise Unclear("a TorchScript archive, not a checkpoint")
    if method != 0:
        raise Bad("a compressed record: torch writes none, so it is not read")
    if flags & 0x2041 or disk:
        raise Bad("an encrypted or split record: torch writes none")
    zip64 = b""
    values = [size, packed, header]
    if _MAX32 in values:
        zip64, values = _zip64_extra(extra, values)
    size, packed, header = values
    if size != packed:
        raise Bad("a stored record with two sizes")
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Bad("a record name that is not text") from None
    plain = (not (made or needed or time or date or comment_len or internal or external)
             and flags == (0x0808 if size else 0x0800) and extra == zip64)
    return Record(name, crc, size, header, zip64, plain), end


def _zip64_extra(extra, values):
    """The zip64 block at the start of an extra field and `values` with those filled in that are 32 bits of ones."""
    wanted = sum(value == _MAX32 for value in values)
    if len(extra) < 4 + 8 * wanted or extra[:4] != struct.pack("<HH", 1, 8 * wanted):
        raise Bad("a record's zip64 field is damaged")
    numbers = iter(struct.unpack_from("<%dQ" % wanted, extra, 4))
    return extra[:4 + 8 * wanted], [next(numbers) if value == _MAX32 else value for value in values]


def _prefix(records):
    """The folder that all records lie in, with its slash."""
    if not records:
        raise Bad("an empty archive")
    prefix = records[0].name.partition("/")[0] + "/"
    for record in records:
        name = record.name
        if not name.startswith(prefix) or "\\" in name or any(part in ("", "..") for part in name.split("/")):
            raise Unclear("a zip archive, but not one of torch: record %s" % printable(name, 80))
    return prefix


# -- the records

class _Window:
    """Small reads that follow each other, as one: what stands between two records comes in one read."""

    AHEAD = 512

    def __init__(self, source):
        self.source, self.size = source, source.size
        self.at, self.data = 0, b""

    def read(self, offset, count):
        inside = offset - self.at
        if inside < 0 or inside + count > len(self.data):
            ahead = max(count, min(self.AHEAD, self.size - offset))
            self.at, self.data, inside = offset, self.source.read(offset, ahead), 0
        return self.data[inside:inside + count]


def _walk(window, records, directory, clock):
    """({name: offset of its data}, canonical?): local headers agree, records lie side by side up to the directory."""
    places, reached, plain = {}, 0, True
    for number, record in enumerate(sorted(records, key=lambda one: one.header)):
        if number % 1024 == 0:
            clock.check()
        if record.header != reached:
            raise Bad("record %s does not begin where the one before ends" % printable(record.name, 80))
        places[record.name], reached, canonical = _local(window, record, directory)
        plain = plain and canonical
    if reached != directory:
        raise Bad("the records end at %d, the zip directory begins at %d" % (reached, directory))
    return places, plain


def _local(window, record, stop):
    """(start of the data, end of the record with its descriptor, canonical?) of one record."""
    raw_name = record.name.encode("utf-8")
    extra_at = record.header + _LOCAL.size + len(raw_name)
    fixed = window.read(record.header, extra_at - record.header)
    magic, needed, flags, method, time, date, crc, packed, size, name_len, extra_len = _LOCAL.unpack_from(fixed)
    if magic != b"PK\x03\x04" or method != 0 or fixed[_LOCAL.size:] != raw_name or name_len != len(raw_name):
        raise Bad("the header of record %s is damaged" % printable(record.name, 80))
    start = extra_at + extra_len
    end = start + record.size
    if end > stop:
        raise Bad("record %s reaches beyond the end" % printable(record.name, 80))
    extra = window.read(extra_at, extra_len)
    if not flags & 0x0008:
        if (crc, packed, size) != (record.crc, record.size, record.size) and not record.zip64:
            raise Bad("record %s has two sizes or checksums" % printable(record.name, 80))
        empty = flags == 0x0800 and not (needed or time or date or crc or packed or size)
        return start, end, empty and _is_padding(extra, record)     # torch writes only empty records so
    descriptor = struct.pack("<4sIQQ" if record.zip64 else "<4sIII", b"PK\x07\x08", record.crc, record.size,
                             record.size)
    if end + len(descriptor) > stop or window.read(end, len(descriptor)) != descriptor:
        raise Bad("what stands behind record %s disagrees with the directory" % printable(record.name, 80))
    plain = not (needed or time or date or crc or packed or size) and flags == 0x0808 and record.size > 0
    return start, end + len(descriptor), plain and _is_padding(extra, record)


def _is_padding(extra, record):
    """True for a local extra field as torch writes it: zip64 with zero sizes, then FB and Z's."""
    if record.zip64:
        if extra[:4] != record.zip64[:4]:
            return False
        length = len(record.zip64)
        numbers = list(struct.unpack_from("<%dQ" % ((length - 4) // 8), extra, 4))
        if record.header >= _MAX32 and numbers.pop() != record.header:
            return False
        if any(numbers):
            return False
        extra = extra[length:]
    if len(extra) < 4:
        return not extra
    kind, length = struct.unpack_from("<2sH", extra)
    return kind == b"FB" and length == len(extra) - 4 and not extra[4:].strip(b"Z")


def _checksums(source, records, places, plain, clock, on_step):
    """(verdict, reason) after reading every record."""
    stored = [record for record in records if record.crc or not record.size]
    pieces = [parallel.Piece(source, places[record.name], record.size, "crc32") for record in stored]
    for record, value in zip(stored, parallel.sums(pieces, clock, on_step)):
        if value != record.crc:
            raise Bad("checksum of record %s does not fit: %08x, recorded %08x"
                      % (printable(record.name, 80), value, record.crc))
    bare = len(records) - len(stored)
    if bare:
        # torch.serialization.set_crc32_options(False) stores zeros: not recorded is not wrong.
        return STRUCTURE, "%d of %d records were saved without a checksum" % (bare, len(records))
    if not plain:
        return STRUCTURE, "every record's checksum fits, but the zip headers are not as torch writes them"
    return VERIFIED, ""


# -- what the records mean

def _byte_order(source, by_name, places):
    record = by_name.get("byteorder")
    if record is None:
        return "little"
    raw = source.read(places[record.name], min(record.size, 8))
    if raw not in (b"little", b"big"):
        raise Bad("record byteorder is damaged")
    return raw.decode()


def _check_storages(storages, by_name):
    for key, (kind, numel) in storages.items():
        record = by_name.get("data/" + key)
        if record is None:
            raise Bad("record data/%s is not there" % printable(key, 40))
        item = ITEM_SIZES.get(kind.rpartition(".")[2])
        if item is not None and record.size != numel * item:
            raise Bad("record data/%s has %d bytes instead of %d" % (printable(key, 40), record.size, numel * item))


def _number_of(thing, source, by_name, places, order):
    """Value of a tensor with one whole number (a step that was kept as a tensor), or None."""
    storage = thing.args[0] if thing.args else None
    if not isinstance(storage, pickles.Thing) or storage.kind != "storage":
        return None
    key, numel = storage.args[2], storage.args[4]
    kind = storage.name.rpartition(".")[2]
    if numel != 1:
        return None
    record = by_name["data/" + key]
    raw = source.read(places[record.name], record.size)
    if kind in _INTEGERS:
        return int.from_bytes(raw, "big" if order == "big" else "little", signed=kind != "ByteStorage")
    if kind in _FLOATS:
        return struct.unpack((">" if order == "big" else "<") + _FLOATS[kind][1], raw)[0]
    return None
