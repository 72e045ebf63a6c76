"""The one fold: events in, card states out."""
