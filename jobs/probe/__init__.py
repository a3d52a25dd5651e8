"""Runs inside a build's interpreter: standard library, vLLM, and of ours only the contract."""
