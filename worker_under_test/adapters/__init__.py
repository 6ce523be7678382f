"""The ports made real: SQLite, HTTP, SSE, files, time, identities. Imports domain and ports."""
