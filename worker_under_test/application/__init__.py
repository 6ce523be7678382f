"""What the worker does, told in terms of ports. Imports domain and ports."""
