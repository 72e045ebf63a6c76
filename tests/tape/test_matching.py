"""Which recorded model call answers a request, and what a miss says."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.masking.masks import Rule
from agent_nb.record.packing import Home
from agent_nb.tape import masks, misses
from agent_nb.tape.exchange import Body, Exchange, Request, Response
from agent_nb.tape.masks import TapeMasks
from agent_nb.tape.matching import Miss, Recording, TapeIndex
from agent_nb.tape.packed import ExchangePacker, unpack_exchange
from agent_nb.wire.json_text import encode_canonical

FORM = '--{0}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{0}--\r\n'
MASKS = TapeMasks([Rule(pattern=r"cost \d+", replace="cost …")])


def request(prompt, path="/chat/completions", **fields):
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **fields}
    return Request(provider="openai", path=path, body=Body("json", body))


def recording(prompt, record, cell="a", execution="1", started=1.0, ordinal=1, **response):
    exchange = Exchange(request=request(prompt), response=Response(**response))
    return Recording(
        exchange=exchange,
        key=MASKS.make_key(exchange.request),
        record=record,
        cell=cell,
        execution=execution,
        started=started,
        ordinal=ordinal,
    )


def answers(index, prompt, times=1, cell="a"):
    used = set()
    found = [index.take_recording(request(prompt), cell, used) for _ in range(times)]
    return [f.why if isinstance(f, Miss) else f.record for f in found]


def test_an_answer_is_used_once_and_in_order():
    index = TapeIndex(
        [recording("hi", "second", ordinal=2), recording("hi", "first", ordinal=1)], MASKS
    )
    assert answers(index, "hi", 3) == [
        "first",
        "second",
        "the request was recorded 2 times, and is sent once more",
    ]


def test_the_cell_that_asks_comes_before_others():
    index = TapeIndex([recording("hi", "of b", cell="b"), recording("hi", "of a")], MASKS)
    assert answers(index, "hi", 2) == ["of a", "of b"]
    assert answers(index, "hi", 2, cell="b") == ["of b", "of a"]


def test_of_a_cell_only_its_newest_execution_with_the_request_counts():
    old = recording("hi", "old", execution="1", started=1.0)
    new = recording("hi", "new", execution="2", started=2.0)
    other = recording("you", "other", execution="3", started=3.0)
    index = TapeIndex([old, new, other], MASKS)
    assert answers(index, "hi", 2)[0] == "new"
    assert "once more" in answers(index, "hi", 2)[1]


def test_an_answer_that_broke_off_is_not_served():
    index = TapeIndex([recording("hi", "half", complete=False)], MASKS)
    assert answers(index, "hi") == [
        "the recorded answer broke off, is not text, or is too large to be stored"
    ]
    assert answers(index, "he") == ["no model call of this notebook is recorded"]


def test_another_path_or_model_is_another_request():
    index = TapeIndex([recording("hi", "first")], MASKS)
    assert (
        "/responses is not recorded, only openai POST"
        in index.take_recording(request("hi", "/responses"), "a", set()).why
    )
    found = index.take_recording(request("hi", model="other"), "a", set())
    assert found.why == 'model differs from the recorded request: "m" → "other"'


def test_a_miss_names_the_field_of_the_nearest_request():
    index = TapeIndex(
        [recording("a text about cats", "first"), recording("the weather", "second")], MASKS
    )
    why = answers(index, "a text about bats")[0]
    assert why.startswith("messages[0].content differs from the recorded request: ")
    assert "cats" in why
    assert "bats" in why
    why = index.take_recording(request("the weather", temperature=1), "a", set()).why
    assert why == "temperature differs from the recorded request: (missing) → 1"


@pytest.mark.parametrize(
    "response",
    [
        {"complete": False},
        {"body": Body.read(bytes(range(256)))},
        {"body": Body("json", [n * 7919 % 1_000_003 for n in range(900_000)])},
    ],
)
def test_a_miss_says_that_the_recorded_answer_is_not_served(response):
    exchange = Exchange(request=request("hi"), response=Response(**response))
    packed = ExchangePacker(Home("")).pack(exchange, [])
    exchange = unpack_exchange(packed.value, packed.payloads, [])
    key = MASKS.make_key(exchange.request)
    index = TapeIndex(
        [recording("you", "other"), Recording(exchange=exchange, key=key, record="first")], MASKS
    )
    assert answers(index, "hi") == [
        "the recorded answer broke off, is not text, or is too large to be stored"
    ]
    assert "messages[0].content differs" in answers(index, "he")[0]


def test_a_miss_says_that_the_body_of_a_request_is_not_stored():
    upload = Request(provider="openai", path="/audio", body=Body.read(bytes(range(256))))
    why = TapeIndex([recording("hi", "first")], MASKS).take_recording(upload, "a", set()).why
    assert why == "its body is not text, or is too large to be stored"


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ("in /tmp/pytest-1/x.csv", "in /tmp/other/x.csv"),
        (
            r"in C:\Users\ann\AppData\Local\Temp\tmp1\x.csv",
            r"in C:\Users\ann\AppData\Local\Temp\tmp2\x.csv",
        ),
        ("in /var/folders/a1/b2/T/c3/x.csv", "in /var/folders/a1/b2/T/d4/x.csv"),
        ("<ipython-input-3-ab12>", "<ipython-input-4-cd34>"),
        ("CURRENT DATE: 2026-01-02.", "CURRENT DATE: 2026-11-28."),
        ("<Model at 0x7f00aa11bb22>", "<Model at 0x7f00aa11bb33>"),
        ("File /tmp/ipykernel_12/34.py", "File /tmp/ipykernel_56/78.py"),
        ("Today's date: 2026-01-02.", "Today's date: 2026-11-28."),
        ("It is late.\nToday is 2026-01-02.", "It is late.\nToday is 2026-11-28."),
        ("Today is Friday, January 2, 2026.", "Today is Saturday, November 28, 2026."),
        ("**Current date:** 2026-01-02", "**Current date:** 2026-11-28"),
        ("it:\n0x7f00aa11bb22", "it:\n0x7f00aa11bb33"),
        (
            "visit https://errors.pydantic.dev/2.12/v/int_type",
            "visit https://errors.pydantic.dev/2.14/v/int_type",
        ),
        ("cost 17 USD", "cost 18 USD"),
        (FORM.format("0a" * 16), FORM.format("1b" * 16)),
    ],
)
def test_what_differs_by_chance_is_masked(recorded, now):
    index = TapeIndex([recording(recorded, "first")], MASKS)
    assert answers(index, now) == ["first"]


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    r"/tmp",
                    "/",
                    r"\AppData\Local\Temp",
                    "\\",
                    "ipykernel_12",
                    "<ipython-input-1-a>",
                ),
                *("34.py", "0x00aabb11", "Today is ", "CURRENT DATE: ", "2026-01-02", "1 May 2026"),
                *("https://errors.pydantic.dev/2.1/", "HTTPS://", "TMP", "\n", " ", "x", "K", "İ"),
            ]
        )
        | st.text(max_size=3)
    ).map("".join)
)
def test_the_hints_of_a_mask_change_nothing_that_it_finds(text):
    text = encode_canonical(text)
    slow = [msgspec.structs.replace(mask, hints=()) for mask in masks.MASKS]
    assert masks.mask_text(text, masks.MASKS) == masks.mask_text(text, slow)


def test_a_mask_that_fits_one_field_alone_leaves_a_miss():
    own = TapeMasks([Rule(pattern='^"[0-9a-f]{4,}"$', replace="id")])
    exchange = Exchange(request=request("abcd"), response=Response())
    key = own.make_key(exchange.request)
    index = TapeIndex([Recording(exchange=exchange, key=key, record="first")], own)
    why = index.take_recording(request("ef01"), "a", set()).why
    assert why == "the recorded request differs in what `normalize` masks"


def test_a_date_that_a_user_asks_about_counts():
    index = TapeIndex([recording("What happened on 2026-01-02?", "first")], MASKS)
    assert "differs" in answers(index, "What happened on 2026-01-03?")[0]


def test_a_recorded_error_is_asked_again_where_calls_may_go_live():
    index = TapeIndex([recording("hi", "error", status=401)], MASKS)
    assert answers(index, "hi") == ["error"]
    assert index.take_recording(request("hi"), "a", set(), errors=False) == Miss(
        "the recorded answer is an error (401)"
    )


def test_an_answer_that_makes_libraries_ask_again_answers_that_too():
    index = TapeIndex([recording("hi", "busy", status=429)], MASKS)
    assert answers(index, "hi", 3) == ["busy"] * 3


def test_of_equal_calls_each_gets_its_answer_although_one_failed():
    busy = recording("hi", "busy", status=503)
    index = TapeIndex([busy, *(recording("hi", f"ok {n}", ordinal=n) for n in (1, 2))], MASKS)
    assert answers(index, "hi", 5) == ["busy", "ok 1", "ok 2", "busy", "busy"]


@pytest.mark.parametrize("status", [400, 503])
def test_where_calls_may_go_live_a_recorded_error_hides_no_answer(status):
    error = recording("hi", "error", status=status)
    index = TapeIndex([error, recording("hi", "ok", ordinal=1)], MASKS)
    used = set()
    served = [index.take_recording(request("hi"), "a", used, errors=False) for _ in range(2)]
    assert served[0].record == "ok"
    assert served[1] == Miss(f"the recorded answer is an error ({status})")


def test_a_large_picture_in_a_request_is_masked_at_once():
    MASKS.make_key(request("A" * 5_000_000))  # in quadratic time beyond the limit of a test


def test_the_key_of_a_request_is_made_once(monkeypatch):
    """It may hold a picture of megabytes."""
    index = TapeIndex([recording("hi", "first")], MASKS)
    count, mask = [], masks.mask_text
    monkeypatch.setattr(masks, "mask_text", lambda *args: (count.append(1), mask(*args))[1])
    for _ in range(2):
        again = request("hi")
        assert index.has_recording(again, {})
        assert index.take_recording(again, "a", set()).record == "first"
    assert len(count) == 2


def test_the_nearest_request_is_found_without_masking_each_again(monkeypatch):
    """Their texts may be megabytes, and the tape answers no other call meanwhile."""
    count, mask = [], misses.mask_text
    monkeypatch.setattr(misses, "mask_text", lambda *args: (count.append(1), mask(*args))[1])
    index = TapeIndex([recording(f"row {n}", str(n)) for n in range(100)], MASKS)
    assert answers(index, "row 7x") == [
        'messages[0].content differs from the recorded request: "row 7" → "row 7x"'
    ]
    assert len(count) < 50
