"""Three long-running searches for mistakes, and the site that they search.

`python -m tests.fuzz messages` sends malformed and half-valid messages to the endpoint.
`python -m tests.fuzz pairs` asks two databases that differ only in what the caller may not see.
`python -m tests.fuzz writes` makes each write by a tool and in the admin of Django.
"""
