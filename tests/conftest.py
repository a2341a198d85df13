"""What all tests share."""

from __future__ import annotations

import signal

from hypothesis import settings

# The same examples in every run, so that a red run is the fault of its change. New ones are drawn by
# `pytest --hypothesis-profile=random`. Time limits of single examples say nothing on a shared machine.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("fixed")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start as well; tests of
# interruptions send the signal themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
