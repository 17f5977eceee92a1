"""Which model, and which parameters, learned together: variational transdimensional inference.

>>> import vti
>>> answer = vti.select("builtin:prostate", response="lpsa")
>>> print(answer.verdict)
trust: exact, all 2^8 models were summed in closed form, and draws are independent ones from the posterior

Ready questions are `select` (which covariates?), `dag` (what causes what?), and how many there are of something: `changepoints`,
`mixture`, `peaks` and `layers`. `fit` takes a configuration, or a log density of one's own with a space of models. Each gives an
`Answer`, which is a run directory of the command `vti` with data frames, draws, predictions, plots and a page. `load` reads one
again.
"""

from ._vti import VERSION as __version__
from ._answer import Answer, Figure, LogEvidence, Verdict, VerdictKind
from ._density import OneOf, Product, Space, Subsets, jax, torch
from ._handle import Handle, Progress
from ._questions import changepoints, dag, fit, layers, load, mixture, peaks, select

__all__ = [
    "Answer",
    "Figure",
    "Handle",
    "LogEvidence",
    "OneOf",
    "Product",
    "Progress",
    "Space",
    "Subsets",
    "Verdict",
    "VerdictKind",
    "__version__",
    "changepoints",
    "dag",
    "fit",
    "jax",
    "layers",
    "load",
    "mixture",
    "peaks",
    "select",
    "torch",
]
