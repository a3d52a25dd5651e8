"""Nobody reads a secret: not its value, nor another spelling of it, nor what only looks like one."""

import base64
import html
import json
import re
import time
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from jobs.contract.attempts import Timeout
from jobs.contract.terms import Check, EngineMode, Phase
from jobs.secrets import LONGEST_HELD, MASK, Redactor, Stream, is_secret, redactor

UNQUOTED_BY_REQUESTS = "!#$%&'()*+,/:;=?@[]~"
VALUE = "pl4nted/Value+with='\"\\and ä"
NOTHING = redactor({})


def planted(value: str = VALUE) -> Redactor:
    return redactor({"MY_TOKEN": value})


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
        *("OPENAI_API_KEY", "PGPASSWORD", "MYSQL_PWD", "GITHUB_PAT", "DATABASE_DSN", "HF_TOKEN_2"),
        *(
            "hf_token",
            "api_key",
            "apiKey",
            "accessToken",
            "SECRETS",
            "REDIS_AUTH",
            "CORP_TOKEN_DEV",
        ),
    ],
)
def test_names_that_speak_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PWD", "OLDPWD", "PATH", "HF_TOKEN_PATH", "SSH_AUTH_SOCK", "AWS_WEB_IDENTITY_TOKEN_FILE"),
        *("tokenizer", "max_num_batched_tokens", "bos_token_id", "num_speculative_tokens"),
        *("secrets", "kv_cache_dtype", "TOKENIZERS_PARALLELISM", "RAY_AUTH_MODE", "CUDA_PATH"),
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not is_secret(name)


def test_further_names_may_be_endings() -> None:
    assert is_secret("MY_CORP_LICENCE", ("_LICENCE",))
    assert is_secret("my_corp_licence", ("MY_CORP_LICENCE",))
    assert not is_secret("MY_CORP_LICENCE_SERVER", ("_LICENCE",))


@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        json.dumps({"said": VALUE}),
        json.dumps({"said": VALUE}, ensure_ascii=False),
        json.dumps(json.dumps({"said": VALUE})),
        repr([VALUE]),
        repr(VALUE.encode()),
        ascii(VALUE),
        html.escape(VALUE),
        html.escape(json.dumps({"said": VALUE})),
        f"https://host/?q={quote_plus(VALUE)}",
        re.sub("%..", lambda escape: escape[0].lower(), quote(VALUE)),
        f"https://host/?q={quote(VALUE, safe=UNQUOTED_BY_REQUESTS)}",
        *(base64.b64encode(b"u" * before + VALUE.encode()).decode() for before in range(4)),
        base64.urlsafe_b64encode(f"user:{VALUE}:more".encode()).decode(),
    ],
)
def test_a_value_is_found_however_it_is_spelt(written: str) -> None:
    said = f"before {written} behind"

    assert "nted" not in (masked := planted().text(said))
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" behind")
    assert planted().bytes(said.encode()).decode() == masked
    middle = base64.b64encode(VALUE.encode()).decode()[6:-6]
    assert middle not in masked


def test_the_longer_of_two_values_goes_first() -> None:
    both = redactor({"A_TOKEN": "planted", "B_TOKEN": "planted-and-more"})

    assert both.text("planted-and-more planted") == "*** ***"


@pytest.mark.parametrize(
    "value", ["", "1", "true", "short", "enabled", "Password", str(Path.home())]
)
def test_what_stands_in_any_text_is_not_searched_for(value: str) -> None:
    assert planted(value).forms == ()


def test_secrets_are_found_below_several_holders_and_in_urls() -> None:
    found = redactor(
        {
            "here": {"HF_TOKEN": "from-the-node"},
            "asked": {"HF_TOKEN": "from-the-model", "PROXY": "http://me:in-a-url@proxy:80"},
            "args": {"loader": {"api_keys": ["in-a-list"]}},
        }
    )
    said = "from-the-node from-the-model in-a-url in-a-list"

    assert found.text(said) == "*** *** *** ***"


def test_user_and_password_of_a_url_are_known_as_written_and_as_meant() -> None:
    found = redactor({"PROXY": "http://pl4nted-user:pl%40nted%21@proxy:80"})

    assert (
        found.text("401 for pl4nted-user with pl%40nted%21, pl@nted!")
        == "401 for *** with ***, ***"
    )


def test_numbers_may_be_secrets() -> None:
    given = {"password": 4711471147, "seed": 4711, "pin_token": True, "api_key": None}
    found = redactor(given)

    assert found.value(given) == given | {"password": MASK}
    assert found.text("with 4711471147, not 4711") == "with ***, not 4711"


@pytest.mark.parametrize("word", sorted({*map(str, (*Phase, *Check, *EngineMode, *Timeout))}))
def test_words_of_ours_are_read_whatever_has_the_same_value(word: str) -> None:
    found = planted(word) | planted("planted")

    assert found.text(f"{word} planted") == f"{word} ***"
    assert found.value({"phase": word, "MY_TOKEN": word}) == {"phase": word, "MY_TOKEN": MASK}


def test_names_of_ours_are_read_whatever_looks_like_them() -> None:
    name = "cpu/sk-a-model-with-a-long-name/auto/v0_32"
    found = redactor({"A_KEY": "long-name", "B_KEY": "planted"}, ours=[name])

    assert found.value([name, "long-name planted"]) == [name, "long-name ***"]
    assert (planted("long-name") | found).text("long-name") == "long-name"


def test_of_code_only_what_is_known_or_unmistakable_is_hidden() -> None:
    text = "+    stride_q_token=q.stride(0), token=planted-value,\n+    # hf_abcdefghijklmnopqrst\n"
    shown = planted("planted-value").value({"patches": [{"name": "a.diff", "text": text}]})

    assert shown["patches"] == [
        {
            "name": "a.diff",
            "text": "+    stride_q_token=q.stride(0), token=***,\n+    # ***\n",
        }
    ]


def test_each_line_of_a_key_is_a_secret() -> None:
    key = redactor({"SIGNING_KEY": "first line of it\nsecond line of it\n"})

    assert key.text("| second line of it\n| first line of it") == "| ***\n| ***"


TOKENS = [
    "hf_abcdefghijklmnopqrstuvwx",
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "ghp_abcdefghijklmnopqrstuvwx0123",
    "github_pat_11ABCDEFG0abcdefghijkl_mn",
    "glpat-abcdefghijklmnopqrst",
    "AKIAABCDEFGHIJKLMNOP",
    "xoxb-1234567890-abcdefghij",
    "nvapi-abcdefghijklmnopqrstuvwx",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
]


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_are_known_by_their_shape(token: str) -> None:
    assert NOTHING.text(f"got '{token}', why?") == "got '***', why?"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Authorization: Bearer abc123def456", "Authorization: Bearer ***"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "{'authorization': 'Basic ***'}"),
        ("sent bearer abc123def456", "sent bearer ***"),
        ("--hf-token abc12345 --model x", "--hf-token *** --model x"),
        ("--api-key=abc12345", "--api-key=***"),
        ("password=swordfish, user=me", "password=***, user=me"),
        ('{"client_secret": "swordfish"}', '{"client_secret": "***"}'),
        (r'"{\"token\": \"swordfish\"}"', r'"{\"token\": \"***\"}"'),
        ("DB_PASSWORD = sw0rdfish", "DB_PASSWORD = ***"),
        ("MY_CORP_KEY=abc-123", "MY_CORP_KEY=***"),
        ("https://me:sw0rd@fish@host/path", "https://***@host/path"),
        ("https://host/m?token=abcdef&a=b", "https://host/m?token=***&a=b"),
        ("s3://b/k?X-Amz-Signature=0a1b2c3d&x=1", "s3://b/k?X-Amz-Signature=***&x=1"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nnext",
            "***\nnext",
        ),
    ],
)
def test_credentials_are_known_by_what_introduces_them(said: str, shown: str) -> None:
    assert NOTHING.text(said) == shown
    assert NOTHING.bytes(said.encode()).decode() == shown
    assert NOTHING.text(shown) == shown


@pytest.mark.parametrize(
    "said",
    [
        "max_num_batched_tokens=8192, tokenizer='shipped/model', hf_token=None, seed=0",
        "num_speculative_tokens: 3, eos_token_id=2, bos_token='<s>', token: please log in",
        "Unexpected token: found a comma. The secret: sleep. password=",
        "KeyError: 'model.layers.0.self_attn.qkv_proj.weight'",
        "risk-adjusted-numbers-of-tasks-in-flight desk-0123456789abcdef01234567",
        "vllm/v1/attention/backends/flash_attn.py:150 https://docs.vllm.ai/en/latest?x=a@b",
        "distributed_init_method=tcp://127.0.0.1:29500 git+https://github.com/vllm-project/vllm",
    ],
)
def test_what_engines_log_all_day_stays(said: str) -> None:
    assert NOTHING.text(said) == said


def test_structures_keep_their_form_and_the_words_that_are_ours() -> None:
    asked = {"model": f"hub/{VALUE}", "hf_token": "abc", "phase": Phase.LOAD, "n": 3, "t": (VALUE,)}

    shown = planted().value(asked)

    assert shown == {
        "model": "hub/***",
        "hf_token": MASK,
        "phase": Phase.LOAD,
        "n": 3,
        "t": (MASK,),
    }
    assert type(shown["phase"]) is Phase
    assert planted().value(shown) == shown


def streamed(pieces: list[bytes]) -> bytes:
    stream = Stream(planted("planted-value"))
    return b"".join([*map(stream.feed, pieces), stream.rest()])


def test_a_secret_that_arrives_in_pieces_is_found() -> None:
    assert streamed([b"a planted", b"-valu", b"e\nb", b" planted-value"]) == b"a ***\nb ***"


def test_whole_lines_are_shown_at_once() -> None:
    stream = Stream(NOTHING)

    assert stream.feed(b"ready\nand wai") == b"ready\n"
    assert stream.feed(b"ting\n") == b"and waiting\n"


def test_a_line_that_never_ends_is_shown_in_parts_with_no_secret_cut_in_two() -> None:
    for before in range(LONGEST_HELD - 20, LONGEST_HELD + 5):
        line = b"." * before + b"planted-value" + b"." * 9000
        pieces = [line[start : start + 4096] for start in range(0, len(line), 4096)]

        assert streamed(pieces) == b"." * before + b"***" + b"." * 9000


def test_a_key_is_held_until_its_end() -> None:
    begin, end = b"-----BEGIN PRIVATE KEY-----\n", b"-----END PRIVATE KEY-----\n"

    assert streamed([b"a\n", begin, b"abcdef\n", b"ghi\n", end, b"b\n"]) == b"a\n***\nb\n"


@pytest.mark.parametrize(
    "piece",
    ["a", "token:", "token=", "://", "-", "--a-", "eyJ", "sk-", ":", "-----BEGIN PRIVATE KEY-----"],
)
def test_no_text_takes_long(piece: str) -> None:
    began = time.process_time()

    NOTHING.text(piece * (2**18 // len(piece)))

    assert time.process_time() - began < 2.0
