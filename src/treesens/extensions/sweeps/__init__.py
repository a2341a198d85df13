"""Many questions at once: their order, the executors that answer them, and the journal of the answers."""
