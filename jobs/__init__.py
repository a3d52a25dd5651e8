"""
Code that runs on a node.

Three processes take part in one cell: the orchestrator, the Ray worker on the
node (`jobs.node`) and the engine under test (`jobs.probe`, inside the build's
own interpreter). They share nothing but `jobs.contract`.

Nothing here imports Ray, Hydra or any other package at module level: a build's
interpreter has only what vLLM brought along.
"""
