"""Runs inside a build's interpreter: the standard library, vLLM and nothing of ours but the contract."""
