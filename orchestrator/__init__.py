"""
The control side: Hydra, Ray, verdicts, reports. No vLLM, no torch.

A folder for each stage, in the order the data flows; `run.validate` is the flow in code::

    asked/         what conf/ and a command line say -> cells, and what vLLM is asked
      compose        words -> what conf/ says, by way of Hydra
      checking       that -> a Config, or every mistake in it at once
      cells          Config -> every (hardware, model, backend, build) to try
      cell_requests  a cell -> what a node is asked, in vLLM's own terms
    concluded/     what was seen -> verdicts. Pure
      classify       an attempt -> the kind of its failure        (rules/failures.yaml)
      requests       an attempt -> what became of each request    (rules/contracts.yaml)
      judge          both, and what was expected -> the verdict on the cell
      matrix         records -> the last word on every cell
      gate           matrix -> may this release ship?
    running/       cells -> attempts on a cluster
      cluster        what is needed of a cluster; on_ray/ is one
      plan           cells and nodes -> which can run, and why the others can't
      budget         a plan -> what of it may be used
      schedule       a plan -> attempts, again where it was bad luck
      dispatch       what waits, and which nodes are free -> which cell goes where
    kept/          what stays on disk
      records        one line per cell that ended; run_directory holds them
      reuse          which verdicts of earlier runs still hold
      past           every run, with all that its records say; database asks them with SQL
    reports/       matrix -> terminal, md, json, junit; they decide nothing
    remote/        the same from a laptop, by way of a cluster's Jobs API

What is seen in between, jobs/ sees. Imports point up this list only; pyproject.toml holds them
to it, between stages and within each.
"""
