"""Evidences of one and of two layers under a magnetotelluric sounding, by tensor quadrature.

Nothing is shared with the library: impedances come from the field itself (two waves in each layer, matched at the
interface) and integrals from Gauss and Legendre's rule in panels. Standard library only.

    python3 layers.py simulate > sounding.csv     # the data, with Python's own random numbers
    python3 layers.py integrate sounding.csv      # the answers, at three resolutions
"""

import cmath
import csv
import json
import math
import random
import sys

MU = 4e-7 * math.pi
PERIODS = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
TRUTH = (100.0, 3000.0, 70.0)  # Ωm of the top layer, m, Ωm below
NOISE = 0.15  # of apparent resistivity; of the phase half of it, in radians
RESISTIVITY = (1.0, 1000.0)  # uniform in the logarithm between these ends
DEPTH = (100.0, 30000.0)  # likewise


def impedance(omega, top, depth, below):
    """Z at the surface from waves exp(±kz) in the layer and exp(−kz) below it: E and H are continuous at the interface."""
    k1, k2 = cmath.sqrt(1j * omega * MU / top), cmath.sqrt(1j * omega * MU / below)
    # E = exp(−k1 z) + b exp(k1 (z − 2 depth)), E'/E = −k2 at the interface.
    b = (k1 - k2) / (k1 + k2)
    up = b * cmath.exp(-2 * k1 * depth)
    return 1j * omega * MU * (1 + up) / (k1 * (1 - up))


def data_of(z, omega):
    return math.log10(abs(z) ** 2 / (omega * MU)), math.degrees(cmath.phase(z))


def simulate():
    stream = random.Random(20261117)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["period", "resistivity", "resistivity_error", "phase", "phase_error"])
    for period in PERIODS:
        omega = 2 * math.pi / period
        log, phase = data_of(impedance(omega, *TRUTH), omega)
        rho = 10**log * math.exp(NOISE * stream.gauss(0, 1))
        phase_error = math.degrees(NOISE / 2)
        phase += phase_error * stream.gauss(0, 1)
        out.writerow([period, f"{rho:.4f}", f"{NOISE * rho:.4f}", f"{phase:.4f}", f"{phase_error:.4f}"])


NODES = [
    (-0.9061798459386640, 0.2369268850561891),
    (-0.5384693101056831, 0.4786286704993665),
    (0.0, 0.5688888888888889),
    (0.5384693101056831, 0.4786286704993665),
    (0.9061798459386640, 0.2369268850561891),
]


def rule(panels):
    """Nodes and weights on (0, 1), five in each panel."""
    width = 1 / panels
    return [((i + 0.5 + 0.5 * x) * width, 0.5 * w * width) for i in range(panels) for x, w in NODES]


def between(ends, share):
    return ends[0] * (ends[1] / ends[0]) ** share


def read(path):
    rows = []
    with open(path) as file:
        for row in csv.DictReader(file):
            row = {name: float(value) for name, value in row.items()}
            log, log_error = math.log10(row["resistivity"]), row["resistivity_error"] / row["resistivity"] / math.log(10)
            rows.append((2 * math.pi / row["period"], log, log_error, row["phase"], row["phase_error"]))
    return rows


def one_layer(rows, panels):
    total = 0.0
    for share, weight in rule(panels):
        log = math.log10(between(RESISTIVITY, share))
        value = 0.0
        for _, y, error, phase, phase_error in rows:
            value -= 0.5 * ((y - log) / error) ** 2 + math.log(error)
            value -= 0.5 * ((phase - 45) / phase_error) ** 2 + math.log(phase_error)
        total += weight * math.exp(value)
    return math.log(total) - len(rows) * math.log(2 * math.pi)


def two_layers(rows, panels):
    nodes = rule(panels)
    resistivities = [(between(RESISTIVITY, share), weight) for share, weight in nodes]
    constant = sum(math.log(row[2]) + math.log(row[4]) for row in rows) + len(rows) * math.log(2 * math.pi)
    total = 0.0
    for top, top_weight in resistivities:
        waves = [cmath.sqrt(1j * row[0] * MU / top) for row in rows]
        for share, depth_weight in nodes:
            depth = between(DEPTH, share)
            fades = [cmath.exp(-2 * wave * depth) for wave in waves]
            inner = 0.0
            for below, weight in resistivities:
                # The ratio of wave numbers k1/k2 is the same at all periods.
                ratio = math.sqrt(below / top)
                b = (ratio - 1) / (ratio + 1)
                value = 0.0
                for (_, y, error, phase, phase_error), fade in zip(rows, fades):
                    up = b * fade
                    z = (1 + up) / (1 - up)
                    log = math.log10(top * (z.real * z.real + z.imag * z.imag))
                    value -= 0.5 * ((y - log) / error) ** 2
                    if value < -200:
                        break
                    angle = 45 + math.degrees(math.atan2(z.imag, z.real))
                    value -= 0.5 * ((phase - angle) / phase_error) ** 2
                inner += weight * math.exp(value)
            total += top_weight * depth_weight * inner
    return math.log(total) - constant


def integrate(path):
    rows = read(path)
    for panels in (16, 24, 36):
        print(json.dumps({
            "nodes": 5 * panels,
            "log_evidence": {"one layer": one_layer(rows, 4 * panels), "two layers": two_layers(rows, panels)},
        }), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["simulate"]:
        simulate()
    elif len(sys.argv) == 3 and sys.argv[1] == "integrate":
        integrate(sys.argv[2])
    else:
        sys.exit(__doc__)
