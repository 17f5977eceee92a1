"""Reads graph.graphml with NetworkX and graph.dot with pydot and compares what they say with summary.json."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import networkx
import pydot

run = Path(sys.argv[1])
edges = json.loads((run / "summary.json").read_text())["edges"]
names = edges["nodes"]
place = {name: number for number, name in enumerate(names)}

# Every edge with a positive probability, its numbers as attributes, nodes by their names.
graph = networkx.read_graphml(run / "graph.graphml")
assert graph.is_directed()
graph = networkx.relabel_nodes(graph, networkx.get_node_attributes(graph, "name"))
assert set(graph.nodes) == set(names)
for source, target, data in graph.edges(data=True):
    i, j = place[source], place[target]
    assert data["q"] == edges["q"][i][j] and data["corrected"] == edges["corrected"][i][j], (source, target, data)
positive = sum(q > 0 or c > 0 for q, c in zip(sum(edges["q"], []), sum(edges["corrected"], [])))
assert graph.number_of_edges() == positive

# The drawing: the likely edges, and all nodes.
(drawing,) = pydot.graph_from_dot_file(run / "graph.dot")
assert drawing.get_type() == "digraph"


def unquoted(text):
    return text.strip('"').replace('\\"', '"').replace("\\\\", "\\")


assert [unquoted(node.get_label()) for node in drawing.get_nodes() if node.get_name() != "node"] == names
drawn = {(unquoted(edge.get_source()), unquoted(edge.get_destination())): edge for edge in drawing.get_edges()}
for (source, target), edge in drawn.items():
    assert float(unquoted(edge.get("corrected"))) == edges["corrected"][place[source]][place[target]]
likely = {(a, b) for a in names for b in names if edges["corrected"][place[a]][place[b]] >= 0.1}
assert set(drawn) == likely, (set(drawn), likely)
if shutil.which("dot"):
    subprocess.run(["dot", "-Tsvg", "-o", run / "graph.svg", run / "graph.dot"], check=True)
