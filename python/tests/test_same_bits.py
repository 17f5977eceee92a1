"""Same settings and seed, same bits as the command."""

import json

import pandas as pd
import pytest

import vti
from vti._options import OF_COMMAND

from conftest import COUNTED, QUICK, changing, measured, sounded

def without_place(summary: dict) -> dict:
    """An answer without what differs from run to run: its file, and how long it took."""
    kept = {key: value for key, value in summary.items() if key not in ("seconds", "data")}
    data = {key: value for key, value in summary["data"].items() if key not in ("path", "fingerprint")}
    return kept | {"data": data}


def options(given: dict) -> list[str]:
    words = []
    for name, value in given.items():
        if name == "set":
            words += [word for key, item in value.items() for word in ("--set", f"{key}={item}")]
        else:
            words += ["--" + OF_COMMAND.get(name, name).replace("_", "-"), str(value)]
    return words


@pytest.mark.parametrize(
    ("kind", "own", "run"),
    [
        ("select", {"response": "y"}, {"seed": 3}),
        ("select", {"response": "y", "prior": "normal:2", "model_prior": "beta-binomial:1,1"}, {}),
        ("select", {"response": "y", "likelihood": "student-t:4", "prior": "normal:1"}, QUICK | {"seed": 5}),
        ("dag", {"sem": "linear", "exclude": "group"}, {"seed": 2}),
        ("dag", {"hidden": 2, "exclude": "group"}, QUICK | {"seed": 4, "precision": "f64"}),
        ("changepoints", {"kind": "means", "time": "t", "value": "v", "max_changes": 3}, {"seed": 7}),
        ("mixture", {"column": "v", "max_components": 3, "count_prior": "poisson:2"}, COUNTED | {"seed": 1}),
        ("peaks", {"x": "t", "y": "v", "max_peaks": 2, "background_degree": 0}, COUNTED | {"seed": 2}),
        ("layers", {"forward": "mt", "max_layers": 2, "errors": "scaled"}, COUNTED | {"seed": 3}),
    ],
)
def test_same_as_the_command(command, tmp_path, kind, own, run):
    frame = {"select": measured, "dag": measured, "layers": sounded}.get(kind, changing)()
    frame.to_csv(tmp_path / "t.csv", index=False)
    command(kind, "t.csv", *options(own), *options(run), "--out", "run", "--quiet", cwd=tmp_path)
    theirs = json.loads((tmp_path / "run" / "summary.json").read_text())
    # By default pandas reads numbers that are off by a bit.
    read = pd.read_csv(tmp_path / "t.csv", float_precision="round_trip")
    answer = getattr(vti, kind)(read, **own, **run)
    assert without_place(answer.summary) == without_place(theirs)
    # The same draws, and the same page but for what the table is called.
    there = vti.load(tmp_path / "run")
    pd.testing.assert_frame_equal(answer.draws, there.draws)
    pd.testing.assert_frame_equal(answer.sample(50, batch=1), there.sample(50, batch=1))


def test_same_from_a_file_and_by_a_configuration(command, frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "run.toml").write_text(
        '[problem]\nkind = "select"\ndata = "t.csv"\nresponse = "y"\nalways = ["a"]\n[train]\nseed = 9\n'
    )
    command("fit", "run.toml", "--quiet", cwd=tmp_path)
    theirs = json.loads((tmp_path / "run.vti" / "summary.json").read_text())
    by_file = vti.fit(tmp_path / "run.toml")
    config = {"problem": {"kind": "select", "response": "y", "always": ["a"]}, "train": {"seed": 9}}
    by_mapping = vti.fit(config, data=frame)
    by_options = vti.select(tmp_path / "t.csv", response="y", always=["a"], seed=9)
    for answer in (by_file, by_mapping, by_options):
        assert without_place(answer.summary) == without_place(theirs)


def test_the_command_works_with_runs_of_python(command, frame, tmp_path):
    answer = vti.select(frame, response="y", out=tmp_path / "run")
    drawn = command("sample", "run", "-n", "5", cwd=tmp_path)
    assert len(drawn.splitlines()) == 6
    frame.head(3).to_csv(tmp_path / "new.csv", index=False)
    command("predict", "run", "new.csv", "--out", "p.csv", cwd=tmp_path)
    theirs = pd.read_csv(tmp_path / "p.csv", float_precision="round_trip").drop(columns="row")
    pd.testing.assert_frame_equal(answer.predict(frame.head(3)), theirs)


def test_every_option_of_the_command_is_one_of_python():
    from vti import _options
    from vti._vti import options as of_command

    # Those are for a terminal.
    others = {"json", "quiet", "help"}
    questions = {
        "select": _options.SelectOptions,
        "dag": _options.DagOptions,
        "changepoints": _options.ChangePointOptions,
        "mixture": _options.MixtureOptions,
        "peaks": _options.PeakOptions,
        "layers": _options.LayerOptions,
        "fit": _options.RunOptions,
    }
    for command_name, known in questions.items():
        names = {name.replace("-", "_") for name, _ in of_command(command_name)} - others
        ours = _options.names_of(known) - {"names", "progress"}
        assert names == {OF_COMMAND.get(name, name) for name in ours}, command_name
    assert _options.names_of(_options.FitOptions) > _options.names_of(_options.RunOptions)
