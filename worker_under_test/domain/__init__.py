"""The words and rules of the worker, free of any I/O. Imports no other layer."""
