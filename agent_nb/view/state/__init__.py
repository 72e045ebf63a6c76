"""The fold of a view: events go in, the states of the cards come out (`fold`)."""
