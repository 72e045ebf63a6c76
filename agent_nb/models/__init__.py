"""Where model turns come from: each file is one provider; see `base`.

`http` is the shared HTTP edge, `choose` resolves `provider/name`.

Order: messages, offline, parts, picture_limits, prices, script_turn, settings, strict_schema,
  timeouts
< base, config, images, script_file
< keys, tariff
< http
< chat, choose
< listing, messages_api, openai, responses, scripted
< anthropic, local, ollama, openai_responses
"""
