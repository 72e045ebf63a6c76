"""An agent and its runs: the loop, turns, batches of calls, replay.

Order: call_ids, clean_json, code_names, context, interpolate, limits, masking, model_choice,
  outgoing, registry, result_pictures, vision
< attachments, dependencies, display, history, text_block
< batch, tape, turn
< context_check, parse, replay_check, typed
< compaction, drift, run, run_spec, turn_reader
< bill, configuration, in_progress, readiness, replay, turn_calls
< assembly, request, stream
< retry, subagent
< loop
< agent
"""
