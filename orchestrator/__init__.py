"""
The control side: Hydra, Ray, verdicts, reports. No vLLM, no torch.

Read it in the order the data flows; `run.validate` is the flow in code::

    compose        the words of a command line -> what conf/ says, by way of Hydra
    checking       that -> a Config, or every mistake in it at once
    cells          Config -> every (hardware, model, backend, build) to try
    plan           cells and nodes -> which can run, and why the others can't
    asking         a cell -> what vLLM is asked, in vLLM's own terms
    cluster        what is needed of a cluster; ray_cluster is one
    schedule       a plan -> attempts on the cluster, again where it was bad luck
    classify       an attempt -> the kind of its failure        (rules/failures.yaml)
    requests       an attempt -> what became of each request    (rules/contracts.yaml)
    judge          both, and what was expected -> the verdict on the cell
    records        one line on disk per cell that ended; run_directory holds them
    matrix         records -> the last word on every cell
    gate           matrix -> may this release ship?
    reports        matrix -> terminal, md, json, junit; they decide nothing

Imports point up this list only; pyproject.toml holds them to it.
"""
