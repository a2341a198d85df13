"""Files of other people: names that inject, numbers that explode, files that are none."""
