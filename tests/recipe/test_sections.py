"""Sections of a recipe: defaults, limits, what fits together, a user's own data."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sciml.recipe import FileData, Recipe

BOUNDED = """\
  domain: {x: {upper: 2.0}, y: {}}
  boundary:
    x-: {kind: dirichlet, value: 1.0}
    x+: dirichlet
    y-: {kind: robin, alpha: 1.0, beta: 2.0, value: {kind: fourier_series}}
    y+: {kind: neumann, value: 0.0}
"""
OWN_DATA = """\
name: own
data: {file: my.npz, input: a, output: [u, v], parameters: k, units: {a: K}, axes: {u: [time, x]}}
models:
  fno: {kind: fno, train: {batch: 8}}
"""


def _bounded(folder) -> str:
    text = folder.text.replace("  domain: {x: {lower: 0.0, upper: 1.0, periodic: true}}\n", BOUNDED)
    return text.replace("grid: {x: 64}", "grid: {x: 64, y: 32}").replace("modes: [12]", "modes: [12, 12]")


def test_defaults(folder):
    recipe = folder.read(folder.text.replace("    train: {steps: 400, batch: 16, optimizer", "    train: {optimizer"))
    train = recipe.models["fno"].train
    assert (train.steps, train.batch, train.checkpoint_every, train.precision) == (4000, 32, 500, "float32")
    assert (train.objective.data, train.objective.residual) == (1.0, 0.0)
    assert (recipe.plan.data, recipe.data.dtype, recipe.data.samples.total) == (1, "float64", 100)
    assert str(recipe.run_folder) == "runs/heat"


def test_a_recipe_is_frozen(folder):
    recipe = folder.read()
    with pytest.raises(ValidationError, match="frozen"):
        recipe.seed = 3
    with pytest.raises(ValidationError, match="frozen"):
        recipe.models["fno"].train.steps = 3


def test_whole_numbers_may_be_written_as_floats(folder):
    recipe = folder.read(folder.text.replace("steps: 400", "steps: 4e2"))
    assert recipe.models["fno"].train.steps == 400


def test_the_resolved_recipe_reads_back_the_same(folder):
    for text in (folder.text, _bounded(folder)):
        recipe = folder.read(text)
        assert folder.read(recipe.to_yaml()) == recipe
        assert folder.read(recipe.to_yaml()).hash() == recipe.hash()


def test_the_hash_knows_what_matters(folder):
    recipe = folder.read()
    assert folder.read(folder.text, "name=other", "run=elsewhere").hash() == recipe.hash()
    assert folder.read(folder.text, "seed=1").hash() != recipe.hash()
    other = folder.read(folder.text, "models.fno.width=16")
    assert other.hash("problem", "data", "seed") == recipe.hash("problem", "data", "seed")
    assert other.hash("models.fno") != recipe.hash("models.fno")


def test_conditions_on_faces(folder):
    problem = folder.read(_bounded(folder)).problem
    assert problem.faces == ("x-", "x+", "y-", "y+")
    assert problem.boundary["x+"].value == 0.0
    assert problem.boundary["y-"].value.kind == "fourier_series"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    y+: {kind: neumann, value: 0.0}\n", "", "problem.boundary: no boundary condition for y+"),
        ("y+: {kind: neumann", "z+: {kind: neumann", "unknown key 'z+'"),
        ("y: {}}", "y: {periodic: yes}}", "the axis y is periodic and has no face y-: delete this condition"),
        ("kind: neumann", "kind: neuman", "must be a boundary condition (dirichlet | neumann | robin) (got 'neuman')"),
        ("alpha: 1.0, beta: 2.0", "alpha: 0.0, beta: 0.0", "alpha or beta must not be 0"),
        ("beta: 2.0, ", "", "problem.boundary.y-.beta: this key is required"),
        ("x+: dirichlet", "x+: 0.0", "must be a boundary condition: {kind: dirichlet, value: 0.0} (got 0.0)"),
        ("upper: 2.0", "upper: -2", "problem.domain.x.upper: must be > lower, which is 0 (got -2.0)"),
        ("upper: 2.0", "uper: 2.0", "problem.domain.x.uper: unknown key 'uper', did you mean 'upper'?"),
        ("y: {}}", "z: {}}", "problem.domain: 2 axes must be named x, y (got ['x', 'z'])"),
    ],
)
def test_mistakes_about_domain_and_boundary(folder, old, new, expected):
    text = _bounded(folder)
    assert text.count(old) == 1
    assert any(expected in line for line in folder.problems(text.replace(old, new)))


def test_an_empty_boundary_set_is_refused(folder):
    problems = folder.changed("periodic: true", "periodic: false")
    assert problems == [
        "heat.yaml:3:1: problem: no boundary condition for x-, x+: every face of a bounded axis needs one"
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: heat", "name: ../heat", "1:7: name: must be usable as a file name"),
        ("name: heat", "name: 3", "1:7: name: must be text (got 3)"),
        ("name: heat", "name: ''", "1:7: name: must be usable as a file name"),
        ("name: heat", f"name: {'x' * 300}", "1:7: name: must be at most 200 bytes long"),
        ("name: heat\n", "", "1:1: name: this key is required"),
        ("seed: 0", "seed: -1", "2:7: seed: must be >= 0 (got -1)"),
        ("seed: 0", "sede: 0", "2:1: sede: unknown key 'sede', did you mean 'seed'?"),
        ("train: 80", "train: 0", "12:20: data.samples.train: must be >= 1 (got 0)"),
        (
            "batch: 16",
            "batch: 81",
            "19:32: models.fno.train.batch: must be <= data.samples.train, which is 80 (got 81)",
        ),
        ("modes: [12]", "modes: [33]", "18:13: models.fno.modes.0: must be <= 32, half of data.grid.x (got 33)"),
        (
            "modes: [12]",
            "modes: [2, 2]",
            "18:12: models.fno.modes: must have one entry, or one per axis of data.grid (1)",
        ),
        ("modes: 6", "modes: 33", "problem.initial.u.modes: must be <= 32, half of data.grid (got 33)"),
        ("grid: {x: 64}", "grid: {y: 64}", "9:9: data.grid: must have the axes of problem.domain: x (got ['y'])"),
        ("grid: {x: 64}", "grid: {w: 64}", "9:10: data.grid.w: must be 'x', 'y' or 'z' (got 'w')"),
        ("grid: {x: 64}", "grid: {x: 2}", "9:13: data.grid.x: must be >= 4 (got 2)"),
        ("times: 10", "times: 0", "10:10: data.times: must be a whole number >= 1 or a list of numbers (got 0)"),
        ("times: 10", "times: [0.5, 0.25]", "10:10: data.times: must be > 0 and increasing (got [0.5, 0.25])"),
        ("times: 10", "times: [0.5, 2]", "must not pass problem.horizon, which is 1 (got 2.0)"),
        ("  times: 10\n", "", "8:1: data.times: this key is required"),
        ("  horizon: 1.0\n", "", "3:1: problem.horizon: this key is required"),
        ("initial: {u: {", "initial: {v: {", "6:13: problem.initial.v: unknown key 'v'"),
        ("initial: {u: {", "initial: {v: {", "6:3: problem.initial: no initial field for 'u'"),
        ("[final_energy]", "[final_energy, final_energy]", "data.quantities.1: is there twice (got 'final_energy')"),
        ("steps: 400", "steps: 400, objective: {data: 0}", "data or residual must be > 0"),
        ("steps: 400", "steps: 400, precision: float16", "must be 'bfloat16', 'float32' or 'float64' (got 'float16')"),
        ("  fno:\n", "  fno.2:\n", "15:3: models.fno.2: must not contain a dot (got 'fno.2')"),
        ("  fno:\n", "  a/b:\n", "must be usable as a file name"),
        ("seed: 0", "plan: {data: 3}", "must be a multiple of plan.data, which is 3 (got 16)"),
        ("seed: 0", "plan: {data: 0}", "plan.data: must be >= 1, or -1 for all devices (got 0)"),
        ("seed: 0", "plan: autom", "plan: must be a mapping of sizes, or auto (got 'autom'), did you mean 'auto'?"),
        ("seed: 0", "plan: {auto: true, data: 2}", "plan.data: auto chooses data itself"),
        ("seed: 0", "plan: {auto: true, remat: true}", "plan.remat: auto chooses remat itself"),
        ("seed: 0", "plan: {microbatches: 2}", "plan.microbatches: belong to a pipeline"),
        ("seed: 0", "plan: {compress: powersgd, fsdp: 2, zero: 1}", "plan.zero: compressed gradients need zero 0"),
        ("kind: heat, diff", "kind: darcy, perm", "'perm"),
    ],
)
def test_each_mistake_has_its_place_and_words(folder, old, new, expected):
    assert any(expected in line for line in folder.changed(old, new))


def test_all_mistakes_come_at_once_in_the_order_of_the_file(folder):
    text = folder.text.replace("seed: 0", "sede: 0").replace("modes: [12]", "modes: [99]")
    text = text.replace("horizon: 1.0", "horizon: -1").replace("width: 32", "width: x").replace("80", "8")
    places = [line.split(": ")[0] for line in folder.problems(text)]
    assert places == ["heat.yaml:2:1", "heat.yaml:7:12", "heat.yaml:17:12"]


def test_sound_sections_are_compared_although_another_is_wrong(folder):
    text = folder.text.replace("seed: 0", "sede: 0").replace("modes: [12]", "modes: [99]").replace("x: 64", "y: 64")
    problems = folder.problems(text)
    assert [line.split(": ")[1] for line in problems] == ["sede", "data.grid", "models.fno.modes.0"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("sample: 10", "15:30: models.pinn.sample: must be < data.samples.test, which is 10 (got 10)"),
        (
            "unknown: [difusivity]",
            "models.pinn.unknown.0: not a coefficient of the equation (got 'difusivity'), did you mean 'diffusivity'?",
        ),
        ("unknown: [zzz]", "not a coefficient of the equation, it has: diffusivity (got 'zzz')"),
    ],
)
def test_a_model_of_one_instance(folder, options, expected):
    models = folder.text.index("  fno:")
    start = f"{folder.text[:models]}  pinn: {{kind: pinn, "
    assert folder.read(start + "unknown: [diffusivity], train: {batch: 5000}}\n").models["pinn"].train.batch == 5000
    (problem,) = folder.problems(start + options + "}\n")
    assert expected in problem


def test_a_steady_equation_has_no_time(folder):
    text = folder.text.replace("{kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.08}}", "darcy")
    problems = folder.problems(text)
    assert [line.split(": ", 1)[1] for line in problems] == [
        "problem.initial: darcy is steady: delete this key",
        "problem.horizon: darcy is steady: delete this key (got 1.0)",
        "data.times: darcy is steady: delete this key (got 10)",
    ]


def test_an_equation_for_one_axis_only(folder):
    text = _bounded(folder).replace(
        "{kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.08}}", "{kind: waves, speed: 1.0}"
    )
    assert any("waves is written for 1 axes (got ['x', 'y'])" in line for line in folder.problems(text))


def test_own_data(folder):
    (folder.path / "my.npz").touch()
    recipe = folder.read(OWN_DATA)
    assert isinstance(recipe.data, FileData)
    assert recipe.data.arguments() == {
        "file": folder.path.resolve() / "my.npz",
        "input": ("a",),
        "output": ("u", "v"),
        "parameters": ("k",),
        "axes": {"u": ("time", "x")},
        "periodic": (),
        "coordinates": {},
        "units": {"a": "K"},
        "splits": None,
    }
    assert recipe.problem is None
    assert folder.read(recipe.to_yaml()) == recipe


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("my.npz", "mine.npz", "2:14: data.file: no such file (got '"),
        ("my.npz", ".", "2:14: data.file: is a folder, not a file (got '"),
        ("input: a, ", "", "2:1: data.input: this key is required"),
        ("input: a", "inputs: a", "data.inputs: unknown key 'inputs', did you mean 'input'?"),
        ("parameters: k", "splits: {train: 0.9}", "data.splits: must be three shares that sum to at most 1"),
        ("parameters: k", "splits: {train: 9}", "data.splits: must be three shares that sum to at most 1"),
        ("batch: 8", "objective: {residual: 1}", "residual: needs an equation: add the section `problem`"),
    ],
)
def test_mistakes_about_own_data(folder, old, new, expected):
    (folder.path / "my.npz").touch()
    assert OWN_DATA.count(old) == 1
    assert any(expected in line for line in folder.problems(OWN_DATA.replace(old, new)))


def test_generated_data_need_a_problem(folder):
    text = folder.text[: folder.text.index("problem:")] + folder.text[folder.text.index("data:") :]
    assert folder.problems(text) == ["heat.yaml:1:1: problem: this key is required"]


def test_a_recipe_can_be_made_in_python(folder):
    given = folder.read()
    again = Recipe(name="heat", problem=given.problem, data=given.data, models=given.models)
    assert again == given
    with pytest.raises(ValidationError, match="unknown key 'nmae', did you mean 'name'"):
        Recipe.model_validate({"nmae": "heat", "data": given.data, "models": given.models})
