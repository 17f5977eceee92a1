"""The stories in examples/python run, and so do the six lines of the README."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORIES = sorted((ROOT / "examples" / "python").glob("*.py"))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_story(story, tmp_path, monkeypatch, capsys):
    if "jax" in story.read_text():
        pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(story), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "python/README.md"])
def test_readme(page, tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert len(code.splitlines()) <= 6
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page, "exec"), {})
    assert "trust" in capsys.readouterr().out and (tmp_path / "page.html").stat().st_size > 10_000


def test_docstrings():
    import doctest

    import vti

    assert doctest.testmod(vti).failed == 0
