"""One small file per rewrite. `registry` finds them by name, including plug-ins."""
