"""Many questions at once: the questions, their order, their executors, and the journal of the answers."""
