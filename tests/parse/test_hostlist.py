"""Host lists as Slurm writes them."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.parse import hostlist

CASES = [
    ("", []),
    ("n1", ["n1"]),
    ("n1,n2", ["n1", "n2"]),
    ("n[1-3]", ["n1", "n2", "n3"]),
    ("n[8-11]", ["n8", "n9", "n10", "n11"]),
    ("n[08-11]", ["n08", "n09", "n10", "n11"]),
    ("n[001,003-004]x", ["n001x", "n003x", "n004x"]),
    ("a,n[1-2],b[3]", ["a", "n1", "n2", "b3"]),
    ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
    ("r[1-2]n[5]-ib", ["r1n5-ib", "r2n5-ib"]),
    ("[1-2]", ["1", "2"]),
    ("gpu-a100-[0-1].example", ["gpu-a100-0.example", "gpu-a100-1.example"]),
]


@pytest.mark.parametrize(("text", "names"), CASES)
def test_expand(text, names):
    """Brackets, ranges, zero padding and several brackets in one name expand in the list's own order."""
    assert hostlist.expand(text) == names


@pytest.mark.parametrize(("text", "names"), CASES)
def test_first_is_the_first_of_expand(text, names):
    """The cheap way to the batch host gives the same name as expanding the whole list."""
    assert hostlist.first(text) == (names[0] if names else "")


@pytest.mark.parametrize(("text", "names"), CASES)
def test_contains(text, names):
    """Every name of the list is found in it, and near misses are not."""
    for name in names:
        assert hostlist.contains(text, name)
        assert not hostlist.contains(text, name + "0x")
        assert not hostlist.contains(text, "z" + name)


def test_padding_is_part_of_the_name():
    """n1 and n01 are two nodes."""
    assert not hostlist.contains("n[01-10]", "n1")
    assert not hostlist.contains("n[1-10]", "n01")
    assert hostlist.contains("n[01-10]", "n10")


def test_digits_after_a_bracket():
    """A number may be followed by digits that belong to the name."""
    assert hostlist.expand("n[1-2]5") == ["n15", "n25"]
    assert hostlist.contains("n[1-2]5", "n25")
    assert not hostlist.contains("n[1-2]5", "n35")


@pytest.mark.parametrize("text", [
    "a[1-999999999]", "a[1-300]b[1-300]", "a[0-99999999999999999999999]", "a[1-40000],b[1-40000]"])
def test_too_many_names_are_refused(text):
    """A list that stands for more names than any cluster has is refused before anything is built."""
    with pytest.raises(DataError):
        hostlist.expand(text)


@pytest.mark.parametrize("text", [
    "a[1-3", "a]1", "a[[1-2]]", "a[b-c]", "a[3-1]", "a[]", "a[1,,2]", "a[\u00b2]"])
def test_malformed_lists_are_refused(text):
    """Brackets must match, hold numbers, and run forwards."""
    with pytest.raises(DataError):
        hostlist.expand(text)
    with pytest.raises(DataError):
        hostlist.contains(text, "a1")


def test_contains_does_not_expand():
    """A pattern over a billion names answers at once."""
    assert hostlist.contains("n[1-999999999]", "n123456789")


def test_first_of_a_cut_list():
    """A list that was cut off still names its first node."""
    assert hostlist.first("n[003-0") == "n003"
    assert hostlist.first("n[") == "n"


@pytest.mark.parametrize(("names", "text"), [
    ([], ""),
    (["n1"], "n1"),
    (["n3", "n1", "n2", "n2", "n7"], "n[1-3,7]"),
    (["n9", "n10", "n11"], "n[9-11]"),
    (["n09", "n10", "n11"], "n[09-11]"),
    (["login", "n1"], "login,n1"),
    (["a-1.x", "a-2.x"], "a-[1-2].x"),
    (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
])
def test_fold(names, text):
    """Names fold into the ranges that Slurm would write."""
    assert hostlist.fold(names) == text


def test_numbers():
    """GPU indices are a list of numbers and ranges."""
    assert hostlist.numbers("0,1,3-5") == (0, 1, 3, 4, 5)
    with pytest.raises(DataError):
        hostlist.numbers("0,x")
    with pytest.raises(DataError):
        hostlist.numbers("0-99999999")


@settings(max_examples=150, deadline=None)
@given(st.sets(st.from_regex(r"[a-z]{0,3}(-[a-z])?[0-9]{0,4}[a-z]?", fullmatch=True).filter(bool),
               max_size=12))
def test_fold_and_expand_are_inverse(names):
    """Folding loses no name and invents none."""
    assert set(hostlist.expand(hostlist.fold(names))) == names


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="n1205[],-", max_size=14))
def test_any_text_expands_or_is_refused(text):
    """Whatever the text: names or DataError, and `contains` agrees with `expand`."""
    try:
        names = hostlist.expand(text, limit=2000)
    except DataError:
        return
    assert all(hostlist.contains(text, name) for name in names)
    if names:
        assert hostlist.first(text) == names[0] or text.startswith(("[", ","))
