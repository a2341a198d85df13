"""Methods for questions of special kinds; the core's methods can answer each such question, too."""
