"""From a laptop to a cluster and back, through its Jobs API."""
