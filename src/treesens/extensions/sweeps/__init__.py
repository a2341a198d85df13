"""Many questions at once: what is asked, in which order, where it runs, and the journal of the answers."""
