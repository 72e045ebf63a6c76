"""An agent and its runs: the loop, turns, batches of calls, replay.

Order: call_ids, clean_json, code_names, context, dependencies, interpolate, limits, model_choice,
  outgoing, registry, result_pictures, vision
< attachments, display, history, tape, text_block
< batch, context_check, replay_check, turn
< drift, parse, typed
< compaction, replay, run, run_spec, turn_reader
< bill, configuration, in_progress, readiness, turn_calls
< assembly, request, stream
< retry, subagent
< loop
< agent
"""
