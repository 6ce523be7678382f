"""What the worker can do, one file each, with its recovery policy. Imports domain and ports."""
