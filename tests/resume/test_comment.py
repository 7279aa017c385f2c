"""The token in a job's comment, and the hint that we leave in it."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_gpuhealth.parse import comment
from slurm_gpuhealth.parse.comment import BadToken, Hint, Token, expand, parse, with_declaration, with_hint

VALUES = {"job_id": 12, "array_job_id": None, "array_task_id": None, "job_name": "run 7", "user": "ada"}
HINT = Hint("/ckpt/run7/step-000400", "12", 1, 2, 1764500000, 400, "verified", "0123456789abcdef")


def test_a_token_is_read_among_other_text():
    """All keys, wherever the token stands; the rest of the comment does not matter."""
    token = parse("proj=x; gpuhealth:ckpt=/ckpt/run7,requeue=no,max-restarts=5,total-steps=1000,"
                  "when-none=start-over | y")
    assert token == Token("/ckpt/run7", False, 5, 1000, "start-over", None, 8, 97)
    assert parse("gpuhealth:ckpt=/a").ckpt == "/a"
    assert parse("gpuhealth:requeue=yes").requeue is True


@pytest.mark.parametrize("text", ["", None, "nothing", "my-gpuhealth:ckpt=/a", "/gpuhealth:x", "xgpuhealth:ckpt=/a"])
def test_no_token(text):
    """A comment without a token declares nothing."""
    assert parse(text) is None


@pytest.mark.parametrize("text,reason", [
    ("gpuhealth:ckpt=/a gpuhealth:ckpt=/b", "2 gpuhealth tokens in the comment, there may be one"),
    ("gpuhealth:ckp=/a", "unknown key 'ckp' (did you mean 'ckpt'?)"),
    ("gpuhealth:max_restarts=3", "unknown key 'max_restarts' (did you mean 'max-restarts'?)"),
    ("gpuhealth:zzz=1", "unknown key 'zzz'"),
    ("gpuhealth:", "expected key=value, found ''"),
    ("gpuhealth:ckpt=/a,", "expected key=value, found ''"),
    ("gpuhealth:ckpt=/a,ckpt=/b", "key 'ckpt' twice"),
    ("gpuhealth:ckpt=/a%2", "bad percent-encoding in ckpt='/a%2'"),
    ("gpuhealth:ckpt=/a%zz", "bad percent-encoding in ckpt='/a%zz'"),
    ("gpuhealth:ckpt=/a%0Ab", "control character in ckpt="),
    ("gpuhealth:ckpt=/a\x01", "control character in the gpuhealth token"),
    ("gpuhealth:ckpt=/a\x1b[31m", "control character in the gpuhealth token"),
    ("gpuhealth:ckpt=a/b", "ckpt= is not an absolute path: 'a/b'"),
    ("gpuhealth:ckpt=", "ckpt= is not an absolute path: ''"),
    ("gpuhealth:ckpt={user}/b", "ckpt= is not an absolute path: 'x/b'"),
    ("gpuhealth:ckpt=/a/../b", "ckpt= goes up with '..': '/a/../b'"),
    ("gpuhealth:ckpt=/a/%2e%2e/b", "ckpt= goes up with '..': '/a/../b'"),
    ("gpuhealth:ckpt=/a/{job}", "unknown placeholder {job} (did you mean 'job_id'?)"),
    ("gpuhealth:ckpt=/a/{", "lone brace in ckpt='/a/{' (write { as %7B, } as %7D)"),
    ("gpuhealth:ckpt=/a$HOME", "write quotes and shell characters in ckpt= as %XX: '/a$HOME'"),
    ('"gpuhealth:ckpt=/a"', "write quotes and shell characters in ckpt= as %XX: '/a\"'"),
    ("gpuhealth:requeue=maybe", "requeue= is yes or no, not 'maybe'"),
    ("gpuhealth:max-restarts=-1", "max-restarts= is a whole number, not '-1'"),
    ("gpuhealth:total-steps=\u0664", "total-steps= is a whole number, not '\\u0664'"),
    ("gpuhealth:when-none=x", "when-none= is hold or start-over, not 'x'"),
    ("gpuhealth:ckpt=/" + "a" * 600, "the gpuhealth token has 616 bytes, at most 512 may be"),
    ("gpuhealth:ckpt=/\ud800", "the comment is not text"),
])
def test_a_bad_token_has_one_clear_line(text, reason):
    """Each way to be wrong is said in one printable line."""
    assert parse(text) == BadToken(reason)


@settings(max_examples=300, deadline=None)
@given(text=st.one_of(st.text(max_size=80), st.text(max_size=60).map(lambda rest: "gpuhealth:ckpt=/" + rest),
                      st.text("gpuhealth:=,/%{}abckpt \x00\n", max_size=60).map(lambda rest: "gpuhealth:" + rest)))
def test_no_comment_raises(text):
    """Whatever a user writes: None, a Token or a BadToken whose reason is one printable ASCII line."""
    found = parse(text)
    assert found is None or isinstance(found, (Token, BadToken))
    if isinstance(found, BadToken):
        assert found.reason.isascii()
        assert found.reason.isprintable()
    if isinstance(found, Token) and found.ckpt:
        path = expand(found.ckpt, VALUES)
        assert isinstance(path, BadToken) or (path.startswith("/") and ".." not in path.split("/"))


def test_placeholders_are_filled_in():
    """Names in braces become parts of the path; %7B stays a brace, also next to one."""
    token = parse("gpuhealth:ckpt=/ckpt/{user}/{job_name}-{job_id}/%7Bx%7D")
    assert expand(token.ckpt, VALUES) == "/ckpt/ada/run 7-12/{x}"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\nb", "a\x1bb", "/etc"])
def test_what_users_control_is_one_part_of_a_path(name):
    """A job's name cannot lead out of the folder or bring a control character."""
    assert isinstance(expand("/ckpt/{job_name}", dict(VALUES, job_name=name)), BadToken)


def test_a_percent_in_a_name_is_not_decoded():
    """Only what the user encoded is decoded: a job named %2e%2e is just that."""
    assert expand("/ckpt/{job_name}", dict(VALUES, job_name="%2e%2e")) == "/ckpt/%2e%2e"


def test_two_parts_cannot_make_dots():
    """Dots put together from a name and the text around it go nowhere either."""
    assert isinstance(expand("/ckpt/.{job_name}/x", dict(VALUES, job_name=".")), BadToken)
    assert isinstance(expand("/ckpt/{user}{job_name}/x", dict(VALUES, user="..", job_name="..")), BadToken)


def test_a_placeholder_without_a_value_is_said():
    """An array's id in a job that is none."""
    assert expand("/c/{array_task_id}", VALUES) == BadToken("{array_task_id} in ckpt=, but the job has none")


# -- the hint

def test_a_hint_is_written_and_read():
    """What we write is what we read, and the user's text stays byte for byte."""
    before = "note A  gpuhealth:ckpt=/ckpt/%7Bx%7D,requeue=yes\tend \udcff"
    hinted = with_hint(before, HINT)
    assert hinted.kept == "all"
    assert hinted.text.startswith("note A  gpuhealth:ckpt=/ckpt/%7Bx%7D,requeue=yes,resume=/ckpt/run7/step-000400,")
    assert hinted.text.endswith("\tend \udcff")
    token = parse(hinted.text)
    assert token.hint == HINT
    assert (token.ckpt, token.requeue) == ("/ckpt/%7Bx%7D", True)


def test_a_new_hint_takes_the_place_of_the_old():
    """There is one hint, the last one."""
    once = with_hint("gpuhealth:ckpt=/c", HINT).text
    twice = with_hint(once, HINT._replace(restart=2, tries=3)).text
    assert parse(twice).hint == HINT._replace(restart=2, tries=3)
    assert twice.count("for=") == 1


def test_the_path_goes_first_when_room_is_short():
    """At the limits of token and comment: the counter stays as long as it can, the user's text always."""
    long_path = "gpuhealth:ckpt=/" + "a" * 420
    hinted = with_hint(long_path, HINT)
    assert hinted.kept == "counter"
    assert parse(hinted.text).hint == Hint("", "12", 1, 2, 1764500000)
    full = "gpuhealth:ckpt=/" + "a" * 490
    assert with_hint(full, HINT) == (full, "none")
    others = "x" * 1000 + " gpuhealth:ckpt=/c"
    assert with_hint(others, HINT) == (others, "none")
    assert with_hint(others[80:], HINT).kept == "counter"


def test_an_old_hint_goes_when_the_new_one_has_no_room():
    """A stale hint is never left standing."""
    text = with_hint("gpuhealth:ckpt=/c", HINT).text + " " + "x" * 900
    hinted = with_hint(text, HINT._replace(path="/" + "y" * 300))
    assert parse(hinted.text).hint in (None, Hint("", "12", 1, 2, 1764500000))


def test_a_comment_without_a_token_gets_one():
    """A job under the site's default pattern has no token: the counter must be kept all the same."""
    assert with_hint("", Hint(job="5", restart=1, tries=1)).text == "gpuhealth:for=5.1,tries=1"
    assert with_hint("mine", Hint(job="5", restart=1, tries=1)).text == "mine gpuhealth:for=5.1,tries=1"


def test_a_bad_comment_is_left_alone():
    """What we cannot read we do not rewrite."""
    assert with_hint("gpuhealth:zzz=1", HINT) == ("gpuhealth:zzz=1", "none")


def test_a_hint_that_was_edited_is_no_hint():
    """Nonsense in our keys spoils the hint only, not what the user declared."""
    for ours in ("for=x", "for=1.2,tries=y", "for=1.2,resume=rel", "resume=/a", "for=1.2.3"):
        token = parse("gpuhealth:ckpt=/c," + ours)
        assert (token.ckpt, token.hint) == ("/c", None)


PATHS = st.text(min_size=1, max_size=60).filter(
    lambda text: not any(0xd800 <= ord(char) <= 0xdfff for char in text) and comment._CONTROL.search(text) is None
).map(lambda text: "/" + text)


@settings(max_examples=200, deadline=None)
@given(path=PATHS, tries=st.integers(0, 99), before=st.text("abc ,;|=%", max_size=20))
def test_any_path_survives(path, tries, before):
    """Every path without control characters comes back as it was, in a hint and in a declaration."""
    hint = Hint(path, "7", 3, tries, None, 5, "verified", "ff")
    hinted = with_hint(before + " gpuhealth:ckpt=/c x", hint)
    token = parse(hinted.text)
    assert hinted.text.startswith(before + " gpuhealth:ckpt=/c,")
    assert token.hint in (hint, Hint("", "7", 3, tries))
    declared = with_declaration(before, path)
    if not isinstance(declared, BadToken):
        assert expand(parse(declared).ckpt, {}) == path


def test_a_declaration_is_added_once():
    """A declared folder stays the user's; a token without one gets it; braces are taken as they are."""
    assert with_declaration("note", "/c/{x} y") == "note gpuhealth:ckpt=/c/%7Bx%7D%20y"
    assert with_declaration("gpuhealth:requeue=no z", "/c") == "gpuhealth:requeue=no,ckpt=/c z"
    assert with_declaration("gpuhealth:ckpt=/mine", "/c") == "gpuhealth:ckpt=/mine"
    assert isinstance(with_declaration("gpuhealth:bad", "/c"), BadToken)
    assert isinstance(with_declaration("", "rel"), BadToken)
    assert isinstance(with_declaration("x" * 1020, "/c"), BadToken)
    hinted = with_hint("", Hint(job="5", restart=1, tries=1)).text
    assert parse(with_declaration(hinted, "/c")).hint.tries == 1
