"""
How a node comes by the vLLM of a build: an interpreter, and an overlay of changed files.

An environment is made once per node and shared; nothing is ever written into it
afterwards. What a checkout or a patch changes lies in an overlay, which goes first
on the interpreter's PYTHONPATH. `provision` is the way in.
"""
