"""Same settings and seed, same bits as the command."""

import json

import pandas as pd
import pytest

import vti

from conftest import QUICK

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
            words += ["--" + name.replace("_", "-"), str(value)]
    return words


@pytest.mark.parametrize(
    ("kind", "own", "run"),
    [
        ("select", {"response": "y"}, {"seed": 3}),
        ("select", {"response": "y", "prior": "normal:2", "model_prior": "beta-binomial:1,1"}, {}),
        ("select", {"response": "y", "likelihood": "student-t:4", "prior": "normal:1"}, QUICK | {"seed": 5}),
        ("dag", {"sem": "linear", "exclude": "group"}, {"seed": 2}),
        ("dag", {"hidden": 2, "exclude": "group"}, QUICK | {"seed": 4, "precision": "f64"}),
    ],
)
def test_same_as_the_command(command, frame, tmp_path, kind, own, run):
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
    from vti._questions import DagOptions, FitOptions, RunOptions, SelectOptions
    from vti._vti import options as of_command

    # Those are for a terminal.
    others = {"json", "quiet", "help"}
    for command_name, known in [("select", SelectOptions), ("dag", DagOptions), ("fit", RunOptions)]:
        names = {name.replace("-", "_") for name, _ in of_command(command_name)} - others
        assert names == known.__optional_keys__ - {"names", "progress"}, command_name
    assert FitOptions.__optional_keys__ > RunOptions.__optional_keys__
