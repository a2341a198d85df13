"""One small file per pass. `registry` finds passes by name, including plug-ins."""
