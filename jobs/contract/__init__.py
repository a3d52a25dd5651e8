"""All that the three processes know of each other: what is asked, and what was seen."""
