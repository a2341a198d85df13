"""Methods for questions of special kinds; the core's methods can answer all of these questions, too."""
