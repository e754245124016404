"""One module per family of ops; each has a function `write(file)`. Read next: text.py, then any family."""
