"""What causes what among eleven proteins in a cell?

Sachs and others measured 11 proteins in thousands of single cells. With linear equations the answer is exact: all graphs are summed.
An edge is a direct cause only if no hidden common cause stands behind its two ends.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import vti

table = pd.read_csv(Path(__file__).parents[2] / "data" / "sachs.csv")
# A few proteins and cells, so that it takes a moment; all of them take a little longer.
proteins = ["praf", "pmek", "plcg", "PIP2", "PIP3", "p44/42"]
answer = vti.dag(table[proteins].head(400), sem="linear", log=True, graph_prior="graphs", score="bge")
print(answer.verdict)

# Every edge with the probability of its direction.
print(answer.edges.head(8))

# `adjacency[i, j]` is the probability of i → j; both directions of a pair together say how sure their bond is.
bond = answer.adjacency + answer.adjacency.T
i, j = np.unravel_index(bond.argmax(), bond.shape)
print(f"surest bond: {answer.nodes[i]} – {answer.nodes[j]}, {bond[i, j]:.3f}")
assert bond[i, j] > 0.99

# Edges that are more probable than not, for NetworkX.
graph = answer.graph(threshold=0.5)
for cause, effect, about in graph.edges(data=True):
    print(f"{cause} → {effect}: {about['probability']:.2f}")

# What we know beforehand narrows it down: nothing acts on praf.
known = vti.dag(table[proteins].head(400), sem="linear", log=True, graph_prior="graphs", score="bge", tiers=[["praf"], proteins[1:]])
assert known.adjacency[1:, 0].max() == 0.0
known.plot_graph().save("proteins.svg")
