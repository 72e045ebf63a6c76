"""A request that is too long for its model is told from the words of any server, and the error says
what helps.
"""

import json

import pytest

from agent_nb.models import anthropic, openai, openai_responses, parts
from agent_nb.models.http.errors import Peer, make_refusal
from agent_nb.models.http.overflow import find_context_size, is_too_long

WORDS = [
    # OpenAI, DeepSeek
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        8192,
    ),
    (
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        0,
    ),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Please reduce the length of the messages.",
        272000,
    ),
    ("prompt is too long: 207033 tokens > 200000 maximum", 200000),  # Anthropic
    (
        "input length and `max_tokens` exceed context limit: 180000 + 64000 > 200000, decrease input length or `max_tokens`",
        200000,
    ),
    # llama.cpp
    (
        "request (20031 tokens) exceeds the available context size (8192 tokens), try increasing it",
        8192,
    ),
    (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        0,
    ),
    # vLLM
    (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages).",
        4096,
    ),
    (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that it is no smaller.",
        4096,
    ),
    ("prompt too long; exceeded max context length by 500 tokens", 0),  # Ollama
    ("the input length exceeds the context length", 0),
    # SGLang
    ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096),
    # LM Studio
    (
        "Trying to keep the first 5000 tokens. However, the model is loaded with context length of only 4096 tokens",
        4096,
    ),
    # Gemini
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
    ),
    # Mistral
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
    ),
    # xAI
    (
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        131072,
    ),
    # TGI
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 512 `max_new_tokens`",
        4097,
    ),
    # OpenRouter
    (
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens",
        8192,
    ),
    # Cohere
    (
        "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 150000",
        128000,
    ),
    ("Input is too long for requested model.", 0),  # Bedrock
    ("Please reduce the length of the messages or completion.", 0),  # Groq
]
OTHERS = [
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
    "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000",
    "Rate limit reached: context window tokens per minute",
    "Unknown parameter: 'context_management'",
    "string too long. Expected a string with maximum length 64",
    "The model `x` does not exist",
    "Incorrect API key provided",
]
HELP = ("--new", "--memory window", "--memory summary")


@pytest.mark.parametrize(("words", "tokens"), WORDS)
def test_the_words_of_every_server_are_understood(words, tokens):
    assert is_too_long(words)
    assert find_context_size(words) == tokens
    error = make_refusal(
        400, {}, json.dumps({"error": {"message": words}}).encode(), Peer(provider="p")
    )
    assert (error.code, error.context, error.retryable) == ("context", tokens, False)
    assert all(help_ in str(error) for help_ in HELP)


@pytest.mark.parametrize("words", OTHERS)
def test_other_refusals_are_not_taken_for_it(words):
    assert not is_too_long(words)
    assert (
        make_refusal(400, {}, json.dumps({"error": {"message": words}}).encode(), Peer()).code
        == "provider"
    )


def test_an_error_code_alone_says_it():
    body = b'{"error": {"message": "No.", "type": "exceed_context_size_error", "n_ctx": 8192}}'
    error = make_refusal(400, {}, body, Peer())
    assert (error.code, error.context) == ("context", 8192)


FRAMES = {
    "chat": (openai, {"error": {"message": WORDS[0][0], "code": "context_length_exceeded"}}),
    "responses": (
        openai_responses,
        {"type": "error", "code": "context_length_exceeded", "message": WORDS[0][0]},
    ),
    "anthropic": (
        anthropic,
        {"type": "error", "error": {"type": "invalid_request_error", "message": WORDS[3][0]}},
    ),
}


@pytest.mark.parametrize("api", FRAMES)
def test_an_error_within_a_stream_says_what_helps_too(api, serve, caught):
    module, frame = FRAMES[api]
    server = serve(lambda peer: peer.stream(f"data: {json.dumps(frame)}\n\n"))
    got, error = caught(module.provider("m", base_url=server.url))
    assert (got.of(parts.Text), error.code, error.retryable) == ([], "context", False)
    assert error.context in (8192, 200000)
    assert all(help_ in str(error) for help_ in HELP)
