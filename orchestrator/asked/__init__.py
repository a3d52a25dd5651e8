"""What is asked: from conf/ and a command line to cells, and to what vLLM is asked."""
