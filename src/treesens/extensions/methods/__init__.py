"""Methods for special kinds of questions; the core's methods can answer all of these questions, too."""
