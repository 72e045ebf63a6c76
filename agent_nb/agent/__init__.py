"""An agent and its runs: the loop, turns, batches of calls, replay."""
