"""Components in a recipe: names, options, limits, parameters of equations, a user's own equation."""

from __future__ import annotations

import pytest

from sciml.errors import ConfigError
from sciml.recipe import Component

OWN = '''
from sciml.equations import Evolution, Field, equation, parameter


@equation
class Decay(Evolution):
    """Decay, u_t = -k u."""

    fields = (Field("u", unit="K"),)
    rate: float = parameter(1.0, unit="1/s", above=0.0)

    def nonstiff(self, u, d):
        return {"u": -self.rate * u.u}


class Other:
    """Not an equation."""
'''


def test_defaults_are_filled_in(folder):
    component = folder.read().models["fno"].component
    assert component.options == {"width": 32, "modes": (12,), "activation": "gelu", "bias": True, "dropout": None}
    assert component.where.endswith("heat.yaml:16:5")
    assert component.info.summary == "Fourier neural operator."


def test_a_bare_name_is_a_component(folder):
    text = folder.text.replace("{kind: etdrk4, dt: 0.01}", "etdrk4")
    assert folder.read(text).data.method == Component("method", "etdrk4", {"dt": 0.01})


def test_parameters_are_numbers_distributions_or_fields(folder):
    equation = "{kind: log_uniform, low: 0.02, high: 0.08}"
    given = folder.read().problem.equation.options["diffusivity"]
    assert (given.category, given.kind) == ("distribution", "log_uniform")
    number = folder.read(folder.text.replace(equation, "0.05")).problem.equation.options["diffusivity"]
    assert number == 0.05
    field = folder.read(folder.text.replace(equation, "fourier_series")).problem.equation.options["diffusivity"]
    assert field.category == "field"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind: fno", "kind: fmo", "16:11: models.fno.kind: unknown model (got 'fmo'), did you mean 'fno'?"),
        ("kind: fno", "kind: zzz", "16:11: models.fno.kind: unknown model, known: fno, pinn (got 'zzz')"),
        ("kind: fno", "kind: 3", "16:11: models.fno.kind: must be the name of a model (got 3)"),
        ("    kind: fno\n", "", "15:3: models.fno.kind: this key is required"),
        ("width: 32", "width: 3.5", "17:12: models.fno.width: must be a whole number (got 3.5)"),
        ("width: 32", "width: true", "17:12: models.fno.width: must be a whole number (got true)"),
        ("width: 32", "width: '32'", "17:12: models.fno.width: must be a whole number (got '32')"),
        ("width: 32", "width: 0", "17:12: models.fno.width: must be >= 1 (got 0)"),
        ("modes: [12]", "modes: [12, x]", "18:17: models.fno.modes.1: must be a whole number (got 'x')"),
        ("modes: [12]", "modes: 12", "18:12: models.fno.modes: must be a list (got 12)"),
        ("width: 32", "bias: 3", "17:11: models.fno.bias: must be true or false (got 3)"),
        ("width: 32", "dropout: 1.5", "17:14: models.fno.dropout: must be <= 1 (got 1.5)"),
        ("width: 32", "dropout: .nan", "17:14: models.fno.dropout: must be a finite number (got nan)"),
        (
            "width: 32",
            "activation: gellu",
            "17:17: models.fno.activation: must be 'gelu' or 'tanh' (got 'gellu'), did you mean 'gelu'?",
        ),
        ("width: 32", "widht: 32", "17:5: models.fno.widht: unknown key 'widht', did you mean 'width'?"),
        ("width: 32", "zzz: 1", "17:5: models.fno.zzz: unknown key 'zzz', known here: width, modes, activation"),
        ("    train: {", "    trian: {", "19:5: models.fno.trian: unknown key 'trian', did you mean 'train'?"),
        ("{kind: etdrk4, dt: 0.01}", "[etdrk4]", "11:11: data.method: must be a method: {kind: name, ...}"),
        ("dt: 0.01", "dt: 0", "11:30: data.method.dt: must be > 0 (got 0)"),
        (
            "{kind: log_uniform, low: 0.02, high: 0.08}",
            "-0.1",
            "4:39: problem.equation.diffusivity: must be > 0 (got -0.1)",
        ),
        (
            "{kind: log_uniform, low: 0.02, high: 0.08}",
            "abc",
            "4:39: problem.equation.diffusivity: unknown distribution or field, known: fourier_series, log_uniform",
        ),
        (
            "{kind: log_uniform, low: 0.02, high: 0.08}",
            "[1]",
            "4:39: problem.equation.diffusivity: must be a number or a distribution or a field: {kind: name, ...}",
        ),
        ("low: 0.02", "low: 0", "4:64: problem.equation.diffusivity.low: must be > 0 (got 0)"),
        ("low: 0.02, ", "", "4:26: problem.equation.diffusivity.low: this key is required"),
        ("high: 0.08", "high: 0.01", "high: must be >= low, which is 0.02 (got 0.01)"),
        (
            "log_uniform, low: 0.02",
            "uniform, low: -0.5",
            "4:60: problem.equation.diffusivity.low: diffusivity must be > 0 m^2/s (got -0.5)",
        ),
    ],
)
def test_each_mistake_has_its_place_and_words(folder, old, new, expected):
    (problem,) = folder.changed(old, new)
    assert expected in problem
    assert problem.startswith("heat.yaml:")


def test_plain_options_of_an_equation_are_no_parameters(folder):
    text = folder.text.replace(
        "{kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.08}}", "{kind: waves, order: uniform}"
    )
    problems = folder.problems(text)
    assert any("problem.equation.order: must be a whole number (got 'uniform')" in line for line in problems)
    assert any("problem.equation.speed: this key is required" in line for line in problems)


def _with_own(folder, reference: str) -> str:
    (folder.path / "my_problem.py").write_text(OWN, encoding="utf-8")
    old = "{kind: heat, diffusivity: {kind: log_uniform, low: 0.02, high: 0.08}}"
    return folder.text.replace(old, reference)


def test_an_own_equation_is_read_relative_to_the_recipe(folder):
    recipe = folder.read(_with_own(folder, "{kind: 'my_problem.py:Decay', rate: 2.0}"))
    equation = recipe.problem.equation
    assert equation.kind == f"{folder.path.resolve()}/my_problem.py:Decay"
    assert equation.options == {"rate": 2.0}
    assert folder.read(recipe.to_yaml()) == recipe


def test_the_hash_follows_the_content_of_an_own_equation(folder, tmp_path_factory):
    text = _with_own(folder, "my_problem.py:Decay")
    before = folder.read(text).hash()
    elsewhere = type(folder)(tmp_path_factory.mktemp("elsewhere"))
    assert elsewhere.read(_with_own(elsewhere, "my_problem.py:Decay")).hash() == before
    path = folder.path / "my_problem.py"
    path.write_text(OWN.replace("-self.rate", "-2 * self.rate"), encoding="utf-8")
    assert folder.read(text).hash() != before


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("my_probelm.py:Decay", "no file .*my_probelm.py .got .*, did you mean 'my_problem.py'"),
        ("my_problem.py:Decya", "has no class 'Decya' .got .*, did you mean 'Decay'"),
        ("my_problem.py:Other", "Other is not decorated with @equation"),
        ("{kind: 'my_problem.py:Decay', rate: -1}", "problem.equation.rate: must be > 0"),
    ],
)
def test_mistakes_about_an_own_equation(folder, reference, expected):
    with pytest.raises(ConfigError, match=expected):
        folder.read(_with_own(folder, reference))


def test_components_build_with_changes():
    component = Component("optimizer", "adam", {"learning_rate": 0.1})
    assert component.plain() == {"kind": "adam", "learning_rate": 0.1}
    assert component == Component("optimizer", "adam", {"learning_rate": 0.1}, where="elsewhere:1:1")
