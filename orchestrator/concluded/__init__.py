"""What is concluded from what was seen. Pure: no clock, no cluster, no file but our rules."""
