"""
A Triton back end for machines without a GPU: Triton's interpreter runs the kernels.

It compiles nothing. With it on the path and TRITON_INTERPRET=1, vLLM finds Triton
usable on a CPU, and its V2 model runner starts there. Slow, and for tests only.
"""
