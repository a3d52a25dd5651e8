"""
Code that runs on a node.

The orchestrator asks, the Ray worker on the node (`jobs.node`) watches, and the
engine under test runs inside the build's own interpreter (`jobs.probe`). What they
share lies beside this file.

Nothing here imports Ray, Hydra or any other package at module level: a build's
interpreter has only what vLLM brought along.
"""
