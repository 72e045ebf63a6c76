"""What all providers behind HTTP share: connections, streamed answers, limits, faults, retries."""
