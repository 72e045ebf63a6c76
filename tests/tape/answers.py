"""Answers of providers as the bytes that they send, for tests of the tape."""

import json


def sse(*chunks, names=False, done=True):
    """Return chunks as an event stream; `names`: frames have an event's name, as Anthropic's."""
    frames = [
        (f"event: {chunk['type']}\n" if names else "") + f"data: {json.dumps(chunk)}\n\n"
        for chunk in chunks
    ]
    return "".join([*frames, "data: [DONE]\n\n" if done and not names else ""]).encode()


def chat_chunks(words, *, call=None, padding=True):
    """Return the chunks of a streamed chat completion."""
    base = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-5-mini",
        "service_tier": "default",
        "system_fingerprint": None,
    }

    def chunk(delta, reason=None, **more):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        pad = {"obfuscation": "xyz"[: len(str(delta)) % 4]} if padding else {}
        return {**base, "choices": [choice], **pad, **more}

    yield chunk({"role": "assistant", "content": ""})
    for word in words:
        yield chunk({"content": word})
    if call:
        function = {"name": call[0], "arguments": ""}
        yield chunk(
            {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
        )
        for piece in call[1]:
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if call else "stop")
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    yield {**base, "choices": [], "usage": usage}


def chat_whole(text, *, call=None, **fields):
    """Return a chat completion that is not streamed."""
    message = {"role": "assistant", "content": text, "refusal": None, **fields}
    if call:
        function = {"name": call[0], "arguments": "".join(call[1])}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    reason = "tool_calls" if call else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {
        "id": "chatcmpl-2",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5-mini",
        "choices": [choice],
        "usage": usage,
    }


def message_events(words, *, call=None):
    """Return the events of a streamed message of Anthropic."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "ping"}
    for word in words:
        yield {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": word},
        }
    yield {"type": "content_block_stop", "index": 0}
    if call:
        block = {"type": "tool_use", "id": "toolu_1", "name": call[0], "input": {}}
        yield {"type": "content_block_start", "index": 1, "content_block": block}
        for piece in call[1]:
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield {"type": "content_block_delta", "index": 1, "delta": delta}
        yield {"type": "content_block_stop", "index": 1}
    reason = "tool_use" if call else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


def message_whole(text, *, call=None):
    """Return a message of Anthropic that is not streamed."""
    content = [{"type": "text", "text": text}]
    if call:
        given = json.loads("".join(call[1]))
        content.append({"type": "tool_use", "id": "toolu_1", "name": call[0], "input": given})
    return {
        "id": "msg_2",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": content,
        "stop_reason": "tool_use" if call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def google_chunks(words, *, call=None):
    """Return the chunks of a streamed answer of Google."""
    used = {"promptTokenCount": 11, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}

    def chunk(*pieces, **fields):
        candidate = {"content": {"parts": list(pieces), "role": "model"}, "index": 0, **fields}
        return {"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "r1"}

    yield chunk({"text": "Hm.", "thought": True})
    for word in words:
        yield chunk({"text": word}) | {"usageMetadata": {"promptTokenCount": 11}}
    if call:
        name, args = call[0], json.loads("".join(call[1]))
        yield chunk({"functionCall": {"name": name, "args": args}, "thoughtSignature": "c2ln"})
    yield chunk({"text": ""}, finishReason="STOP") | {"usageMetadata": used}


def google_whole(words, *, call=None):
    """Return an answer of Google that is not streamed."""
    *chunks, last = google_chunks(words, call=call)
    pieces = [piece for c in chunks for piece in c["candidates"][0]["content"]["parts"]]
    last["candidates"][0]["content"]["parts"] = pieces
    return last


def response_events(words, body, *, call=None):
    """Return the events of a streamed response, which repeats its text and the request's fields."""
    text = "".join(words)
    echo = {name: body.get(name) for name in ("instructions", "tools")}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5-mini", **echo}
    common = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    yield {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}}
    yield {
        "type": "response.in_progress",
        "response": {**base, "status": "in_progress", "output": []},
    }
    begun = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
    yield {"type": "response.content_part.added", **common, "part": {**part, "text": ""}}
    for word in words:
        yield {
            "type": "response.output_text.delta",
            **common,
            "delta": word,
            "logprobs": [],
            "obfuscation": "ab",
        }
    yield {"type": "response.output_text.done", **common, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **common, "part": part}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    items = [item]
    if call:
        whole = "".join(call[1])
        asked = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": call[0]}
        common, items = (
            {"item_id": "fc_1", "output_index": 1},
            [item, {**asked, "arguments": whole}],
        )
        begun = {**asked, "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": 1, "item": begun}
        for piece in call[1]:
            yield {"type": "response.function_call_arguments.delta", **common, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **common, "arguments": whole}
        yield {"type": "response.output_item.done", "output_index": 1, "item": items[1]}
    whole = {**base, "status": "completed", "output": items, "usage": usage}
    yield {"type": "response.completed", "response": whole}


def numbered(events):
    """Return events with the numbers that the Responses API gives them."""
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]
