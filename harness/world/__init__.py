"""Everything outside the worker that it talks to, owned by the harness."""
