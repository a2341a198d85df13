"""One small file per rewrite. `registry` finds them by name, those of plug-ins included."""
