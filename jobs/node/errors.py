"""What can go wrong on a node and says nothing about a build."""


class NodeError(Exception):
    """This node can't run the cell: no space, no interpreter, no permission."""
