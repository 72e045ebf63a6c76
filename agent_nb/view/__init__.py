"""What people see: `state` folds events into cards, `cards` turn them into neutral nodes, `html`
and `widgets` draw the nodes.
"""
