"""`agent.map`: asks an agent one prompt for each row of a table. Read `stream` first."""
