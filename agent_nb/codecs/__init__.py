"""How a run travels: each plug-in is one format; see `base`.

Order: call_matching, coerce, foreign_values, losses, passthrough, provenance, replies, sources,
  times, usage
< checks, framing, run_builder, writing
< blocks, contract
< block_protocol, stream_decoder
< stream_encoder
< base
< ag_ui, agent_event, canonical, cogency, detect, loom, looopy, ui_message
< foreign_stream
< convert
"""
