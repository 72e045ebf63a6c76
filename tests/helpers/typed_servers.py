"""Servers on loopback that answer with a JSON document in the way a request asks for it."""

import json

from helpers.model_server import Server

from agent_nb.models.anthropic import provider as anthropic
from agent_nb.models.openai import provider as openai
from agent_nb.models.openai_responses import provider as responses

UNKNOWN = {"error": {"message": "This response_format type is unavailable now"}}


class Typed:
    """A server of one API that answers with `texts`, one per answered request, then the last again.

    `bodies` are the bodies of all requests. `takes`: whether it takes schemas.
    """

    path = ""

    def __init__(self, *texts, takes=True):
        self.bodies = []
        self.takes = takes
        self._texts = list(texts)
        self._server = Server(self._answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.close()

    @property
    def model(self):
        return self.make("m", base_url=self._server.url)

    def asked(self, body):
        """Return the schema that a request asks for, or None."""

    def offered(self, body):
        """Return the names of the tools that a request offers."""
        return [tool.get("name") or tool["function"]["name"] for tool in body.get("tools", ())]

    def _answer(self, peer):
        self.bodies.append(peer.body)
        if self.asked(peer.body) is not None and not self.takes:
            peer.reply(400, json.dumps(UNKNOWN))
            return
        text = self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]
        name = "" if self.asked(peer.body) is not None else self.offered(peer.body)[-1]
        frames = self.call(name, text) if name else self.say(text)
        peer.stream(*(f"event: {f.get('type')}\ndata: {json.dumps(f)}\n\n" for f in frames))


class Chat(Typed):
    make = staticmethod(openai)

    def asked(self, body):
        return body.get("response_format", {}).get("json_schema", {}).get("schema")

    def _chunk(self, finish=None, **delta):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}

    def say(self, text):
        half = len(text) // 2
        return [
            self._chunk(content=text[:half]),
            self._chunk(content=text[half:]),
            self._chunk(finish="stop"),
        ]

    def call(self, name, text):
        first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name}}
        return [
            self._chunk(tool_calls=[first]),
            self._chunk(tool_calls=[{"index": 0, "function": {"arguments": text}}]),
            self._chunk(finish="tool_calls"),
        ]


class Compatible(Chat):
    """A server of chat completions that takes no schema, as many do."""

    def __init__(self, *texts):
        super().__init__(*texts, takes=False)


class Responses(Typed):
    make = staticmethod(responses)

    def asked(self, body):
        return body.get("text", {}).get("format", {}).get("schema")

    def say(self, text):
        item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
        content = [{"type": "output_text", "text": text}]
        return self._whole(
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            self._of("output_text.delta", item="msg_1", delta=text),
            self._of("output_text.done", item="msg_1", text=text),
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {**item, "content": content},
            },
        )

    def call(self, name, text):
        item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": name}
        return self._whole(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**item, "arguments": ""},
            },
            self._of("function_call_arguments.delta", item="fc_1", delta=text),
            self._of("function_call_arguments.done", item="fc_1", arguments=text),
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {**item, "arguments": text},
            },
        )

    def _of(self, kind, item, **fields):
        place = {"output_index": 0, "content_index": 0, "item_id": item}
        return {"type": f"response.{kind}", **place, **fields}

    def _whole(self, *frames):
        head = {"id": "resp_1", "model": "m", "output": []}
        return [
            {"type": "response.created", "response": {**head, "status": "in_progress"}},
            *frames,
            {"type": "response.completed", "response": {**head, "status": "completed"}},
        ]


class Claude(Typed):
    make = staticmethod(anthropic)

    def asked(self, body):
        return body.get("output_config", {}).get("format", {}).get("schema")

    def say(self, text):
        delta = {"type": "text_delta", "text": text}
        return self._whole({"type": "text", "text": ""}, delta, "end_turn")

    def call(self, name, text):
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
        return self._whole(block, {"type": "input_json_delta", "partial_json": text}, "tool_use")

    def _whole(self, block, delta, reason):
        message = {"id": "msg_1", "model": "m", "content": [], "usage": {}}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}},
            {"type": "message_stop"},
        ]


APIS = {"chat": Chat, "responses": Responses, "anthropic": Claude, "compatible": Compatible}
