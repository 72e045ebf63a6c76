"""An agent's prompt for each row of a table: `agent.map`."""
