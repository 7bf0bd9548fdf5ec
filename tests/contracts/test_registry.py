"""Every registered component: what is read from the source is what Python makes of it."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from sciml import registry
from sciml.errors import ConfigError
from sciml.recipe.components import is_parameter
from sciml.recipe.values import adapter, supported
from sciml.source_reading import read_classes

COMPONENTS = [(kind, name) for kind in registry.PACKAGES for name in registry.names(kind)]
every_component = pytest.mark.parametrize(("kind", "name"), COMPONENTS, ids=[f"{k}-{n}" for k, n in COMPONENTS])

SOURCE = '''
@register("model", "fake")
@dataclass(frozen=True)
class Fake(Base):
    """A fake model.

    More words.
    """

    order: ClassVar[int] = 4
    fields = (Field("u", unit="K"), Field("v"))
    width: int
    depth: int = option(2, minimum=1, maximum=8, unit="1", doc="layers")
    rate: float = parameter(-1e-3, above=-1.0)
    kind: "Literal['a', 'b']" = "a"
    sizes: tuple[int, ...] = field(default=(1, 2))

class Plain:
    width: int = 3
'''


@every_component
def test_the_source_says_what_the_class_is(kind, name):
    info, cls = registry.describe(kind, name), registry.load(kind, name)
    assert dataclasses.is_dataclass(cls)
    assert cls.__name__ == info.class_name
    fields = [field for field in dataclasses.fields(cls) if field.init]
    assert [field.name for field in fields] == [option.name for option in info.options]
    for field, option in zip(fields, info.options, strict=True):
        assert _annotation(field) == option.annotation
        assert option.required == (field.default is dataclasses.MISSING)
        assert option.required or field.default == option.default
        for limit in ("minimum", "maximum", "above", "unit"):
            assert field.metadata.get(limit) == getattr(option, limit)
        assert field.metadata.get("doc", "") == option.doc


def _annotation(field: dataclasses.Field[Any]) -> str:
    text = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    return ast.unparse(ast.parse(text, mode="eval"))


@every_component
def test_options_can_be_given_in_a_recipe(kind, name):
    info = registry.describe(kind, name)
    assert info.summary, "the first line of the docstring is shown by `sciml list`"
    for option in info.options:
        if not is_parameter(option, kind):
            assert supported(option.annotation), f"{option.name}: {option.annotation}"
            if not option.required:
                adapter(option).validate_python(_as_yaml(option.default))


def _as_yaml(value: Any) -> Any:
    return [_as_yaml(inner) for inner in value] if isinstance(value, tuple) else value


@every_component
def test_instances_are_frozen(kind, name):
    cls = registry.load(kind, name)
    assert cls.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue] -- set by @dataclass


@pytest.mark.parametrize("kind", registry.PACKAGES)
def test_no_name_is_taken_twice(kind):
    files = {path: module for path, module in registry.source_files(kind)}
    found = [
        name
        for path, module in files.items()
        for source in read_classes(path, module)
        for registered, name in source.registered
        if registered == kind
    ]
    assert not [name for name, count in Counter(found).items() if count > 1]
    assert sorted(found) == registry.names(kind)


def test_loading_imports_one_module_only():
    code = (
        "import sys; from sciml import registry; registry.names('equation'); registry.describe('equation', 'heat'); "
        "assert 'jax' not in sys.modules; registry.load('equation', 'heat'); "
        "assert 'sciml.equations.heat' in sys.modules and 'sciml.equations.burgers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_class_is_read_from_its_text(tmp_path):
    path = tmp_path / "fake.py"
    path.write_text(SOURCE, encoding="utf-8")
    info = registry.describe_file(path, "Fake")
    assert (info.name, info.class_name, info.summary, info.bases) == ("fake", "Fake", "A fake model.", ("Base",))
    assert [(field.name, field.unit) for field in info.fields or ()] == [("u", "K"), ("v", "1")]
    assert dict(info.constants)["order"] == 4
    assert [option.name for option in info.options] == ["width", "depth", "rate", "kind", "sizes"]
    width, depth, rate, kind, sizes = info.options
    assert width.required and not depth.required
    assert (depth.default, depth.minimum, depth.maximum, depth.doc, depth.range) == (2, 1, 8, "layers", ">= 1 and <= 8")
    assert (rate.default, rate.above, rate.declared, rate.range) == (-1e-3, -1.0, "parameter", "> -1")
    assert (kind.annotation, sizes.default) == ("Literal['a', 'b']", (1, 2))


def test_an_edited_file_is_read_again(tmp_path):
    path = tmp_path / "fake.py"
    path.write_text(SOURCE, encoding="utf-8")
    registry.describe_file(path, "Fake")
    path.write_text(SOURCE.replace("option(2", "option(3 "), encoding="utf-8")
    depth = registry.describe_file(path, "Fake").option("depth")
    assert depth is not None and depth.default == 3


def test_a_default_that_must_be_computed_is_refused(tmp_path):
    path = tmp_path / "fake.py"
    path.write_text(SOURCE.replace("option(2,", "option(2 * n,"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"fake.py:13: the default and limits of 'depth' must be literals"):
        registry.describe_file(path, "Fake")


def test_broken_source_is_named(tmp_path):
    path = tmp_path / "fake.py"
    path.write_text("a = 1\nclass (:\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"fake.py:2: not valid Python"):
        registry.describe_file(path, "Fake")


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ConfigError, match="unknown equation 'heta', did you mean 'heat'") as caught:
        registry.load("equation", "heta")
    assert "heat" in str(caught.value.expected) and caught.value.fix == "kind: heat"
    with pytest.raises(ConfigError, match="unknown kind of component 'equations', did you mean 'equation'"):
        registry.names("equations")


def test_two_classes_cannot_share_a_name():
    registry.register("quantity", "only_in_this_test")(type("First", (), {}))
    with pytest.raises(ConfigError, match="registered twice"):
        registry.register("quantity", "only_in_this_test")(type("Second", (), {}))
    assert "only_in_this_test" not in registry.names("quantity")


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
    pass
'''


def test_an_equation_of_a_users_file(tmp_path):
    (tmp_path / "my_problem.py").write_text(OWN, encoding="utf-8")
    first = registry.load_reference("my_problem.py:Decay", relative_to=tmp_path)
    assert first is registry.load_reference(f"{tmp_path}/my_problem.py:Decay")
    assert first(2.0).rate == 2.0
    assert "my_problem" not in sys.modules


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("my_problem", "not a reference to a class"),
        ("other.py:Decay", "no file .*other.py"),
        ("my_problem.py:Decya", "has no class 'Decya', did you mean 'Decay'"),
        ("my_problem.py:Other", "Other is not an equation"),
        ("broken.py:Decay", "broken.py:3: fails while it is imported\n.*ZeroDivisionError"),
    ],
)
def test_mistakes_in_references(tmp_path, reference, message):
    (tmp_path / "my_problem.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "broken.py").write_text(OWN.replace("\n\n@equation", "1 / 0\n\n@equation", 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        registry.load_reference(reference, relative_to=tmp_path)
