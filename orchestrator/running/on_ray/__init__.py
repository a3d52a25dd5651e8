"""A Ray cluster, by way of the only folder of the orchestrator's that imports Ray."""
