"""The peer as an oracle: its own correctness, and values to compare other implementations with.

    python oracle.py check            correctness checks in float64
    python oracle.py dump OUT.json    values and gradients of tiny flows
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor, nn

from flow import OUTPUTS, TRANSFORMS, Flow, Rows, SymbolContext, loss_of


def tiny(kind: str) -> tuple[Flow, Tensor, Rows]:
    """A small float64 flow with every parameter random, and a row of each size."""
    torch.manual_seed(1)
    d = 3
    flow = Flow(kind, 3, d, 5, 2, lambda h, n: SymbolContext(4, h, n)).double()
    for parameter in flow.parameters():
        nn.init.normal_(parameter, std=0.5)
    z = torch.randn(4, d, dtype=torch.float64)
    return flow, z, Rows.of(torch.tensor([2, 0, 3, 1]), torch.arange(4), d)


def one_row(rows: Rows, r: int, d: int) -> Rows:
    """Row `r` alone."""
    return Rows.of(rows.condition[r : r + 1], rows.count[r : r + 1], d)


def check() -> None:
    """Checks structure and log-determinants against Jacobians; raises on a failure."""
    for kind in TRANSFORMS:
        flow, z, rows = tiny(kind)
        d = z.shape[1]
        theta, log_det = flow(z, rows)

        for r, count in enumerate(rows.count.tolist()):
            assert torch.equal(theta[r, count:], z[r, count:]), "an inactive variable moved"
            alone = one_row(rows, r, d)
            assert torch.allclose(flow(z[r : r + 1], alone)[0], theta[r : r + 1], atol=1e-13)
            jacobian = torch.autograd.functional.jacobian(
                lambda x, alone=alone: flow(x[None], alone)[0][0], z[r]
            )
            sign, expected = torch.linalg.slogdet(jacobian)
            # Each reversal of n variables is a permutation of n // 2 swaps.
            swaps = (len(flow.layers) - 1) * (count // 2)
            assert sign == (-1) ** swaps, "orientation"
            assert torch.allclose(log_det[r], expected, atol=1e-11), "log-determinant"
            outside = jacobian.clone()
            outside[:count, :count] = 0.0
            outside[count:, count:] -= torch.eye(d - count, dtype=z.dtype)
            assert (outside == 0.0).all(), "active and inactive variables mix"

        for layer in flow.layers:
            jacobian = torch.autograd.functional.jacobian(
                lambda x, layer=layer: layer(x[None], rows.condition[:1])[0], z[3]
            )
            reads = jacobian.abs().sum(1)
            lower = torch.ones(d, d, dtype=torch.bool).tril(-1)
            assert (reads[~lower] == 0.0).all(), "a variable reads itself or a later one"
            assert (reads[lower] > 0.0).all(), "a variable misses an earlier one"

        parameters = list(flow.parameters())
        z.requires_grad_()
        assert torch.autograd.gradcheck(
            lambda z, *_: loss_of(*flow(z, rows), rows.active), (z, *parameters)
        )
        print(f"{kind}: structure, log-determinants and gradients agree")

        torch.manual_seed(2)
        flow = Flow(kind, 3, d, 5, 2, lambda h, n: SymbolContext(4, h, n))
        z = torch.randn(4, d)
        theta, log_det = flow(z, rows)
        kept = ~rows.active
        assert torch.equal(theta[kept].view(torch.int32), z[kept].view(torch.int32))
        assert log_det[0] == 0.0
        assert log_det.abs().max() < 1e-4, "zero outputs are not the identity"
        print(f"{kind}: float32 starts at the identity and keeps inactive bits")


def dump(path: Path) -> None:
    """Writes inputs, results and gradients of the tiny flows, as an oracle in float64."""
    result = {}
    for kind in TRANSFORMS:
        flow, z, rows = tiny(kind)
        z.requires_grad_()
        theta, log_det = flow(z, rows)
        loss = loss_of(theta, log_det, rows.active)
        loss.backward()
        named = {name.replace("final.", "global."): p for name, p in flow.named_parameters()}
        result[kind] = {
            "d": z.shape[1],
            "hidden": 5,
            "blocks": 2,
            "layers": 3,
            "symbol_count": 4,
            "outputs": OUTPUTS[kind],
            "z": z.tolist(),
            "symbols": rows.condition.tolist(),
            "d_m": rows.count.tolist(),
            "theta": theta.tolist(),
            "logdet": log_det.tolist(),
            "loss": loss.item(),
            "parameters": {name: p.tolist() for name, p in named.items()},
            "gradients": {name: p.grad.tolist() for name, p in named.items()},
            "gradient_z": z.grad.tolist(),
        }
    path.write_text(json.dumps(result))


def main() -> None:
    parser = argparse.ArgumentParser(description="The PyTorch peer as an oracle")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="check correctness")
    command = commands.add_parser("dump", help="write values of tiny flows")
    command.add_argument("out", type=Path)
    arguments = parser.parse_args()
    match arguments.command:
        case "check":
            check()
        case "dump":
            dump(arguments.out)


if __name__ == "__main__":
    main()
