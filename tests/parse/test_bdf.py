"""PCI addresses are written one way: dddd:bb:dd.f, lower case."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_gpuhealth.parse import bdf


@pytest.mark.parametrize("text,expected", [
    ("0000:18:00.0", "0000:18:00.0"),
    ("PCI:0000:18:00", "0000:18:00.0"),         # Xid lines: no function
    ("00000000:18:00.0", "0000:18:00.0"),       # NVML: domain of eight digits
    ("00000000:D8:00.0", "0000:d8:00.0"),
    ("0000:D8:00", "0000:d8:00.0"),
    ("18:00.0", "0000:18:00.0"),                # no domain
    ("10:1c", "0000:10:1c.0"),
    ("00010000:01:00.0", "10000:01:00.0"),      # VMD: the domain needs five digits
    ("0009:01:00", "0009:01:00.0"),
    (" 0000:18:00.0\n", "0000:18:00.0"),
])
def test_all_forms_become_one(text, expected):
    """However the source writes it, the address compares equal."""
    assert bdf.normalise(text) == expected


@pytest.mark.parametrize("text", [
    "", "PCI:", "0000:18", "18", "0000:18:00.8", "0000:18:20.0", "0000:100:00.0", "0000:1g:00.0", "0x00:18:00.0",
    "+1:18:00.0", "0000:18:00.", "0000:18:00:0.0", "1_0:00.0", "\u0661:\u0662.0", "000000000:18:00.0"])
def test_what_is_no_address_is_empty(text):
    """Nothing is guessed: text that is no address gives ""."""
    assert bdf.normalise(text) == ""


@given(st.text(max_size=40))
def test_any_text_is_survived(text):
    """No text raises, and what comes out is stable."""
    found = bdf.normalise(text)
    assert found == "" or bdf.normalise(found) == found
