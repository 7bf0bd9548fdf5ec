"""Files of The Well and PDEBench: their schemas as written, and the numbers of a data set there and back."""

from __future__ import annotations

import generated_data
import h5py
import numpy as np
import pytest
from comparison import assert_identical

from sciml.data import Coordinate, Dataset, Layout, Simulated, generate, open_arrays
from sciml.data.exchange import export, format_of, import_file
from sciml.data.merging import merge
from sciml.errors import CannotCreateError, ConfigError, DataError
from sciml.spec import Variable

NOTES = {
    "equation": "heat",
    "fixed_parameters": {"density": 2.0},
    "boundary": {"y-": {"kind": "dirichlet", "value": 0.5}, "y+": {"kind": "neumann", "value": 0.0}},
}
SAME_SPLITS = {"train": 12, "validation": 3, "test": 5}


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """20 trajectories of one field on a periodic line."""
    folder = tmp_path_factory.mktemp("line")
    generated_data.make(folder, notes=NOTES)
    return folder


def plane_layout(fields: tuple[str, ...], times: tuple[float, ...] = (0.5, 1.0), **changes) -> Layout:
    """Fields with initial values on a plane, x periodic and y bounded, of different sizes."""
    shape, axes = (4, 3), ("x", "y")
    values = {
        "inputs": tuple(Variable(f"{name}0", "K", shape, axes) for name in fields),
        "outputs": tuple(Variable(name, "K", (len(times), *shape), ("time", *axes)) for name in fields),
        "parameters": (Variable("rate", "1/s", role="scalar"),),
        "coordinates": {
            "x": Coordinate((0.0, 0.25, 0.5, 0.75), "m", True, 1.0),
            "y": Coordinate((-1.0, 0.0, 1.0), "m"),
            "time": Coordinate(times, "s"),
        },
        "splits": {"train": 4, "test": 2},
    }
    return Layout(**{**values, **changes})


def make(folder, layout: Layout, **notes) -> dict[str, np.ndarray]:
    """Six samples of random numbers; returns them."""
    random = np.random.default_rng(3)
    arrays = {v.name: random.normal(size=(layout.samples, *v.shape)) for _, v in layout}
    notes = {**NOTES, **notes}
    generate(folder, layout, lambda ids: Simulated({n: a[ids] for n, a in arrays.items()}), chunk=2, notes=notes)
    return arrays


def text(item, name):
    return [str(value) for value in np.atleast_1d(item.attrs[name])]


def test_schema_of_the_well(tmp_path):
    arrays = make(tmp_path / "data", plane_layout(("u", "v")))
    made = export(tmp_path / "data", tmp_path / "w.hdf5", to="well")
    assert (made.samples, made.left_out) == (6, ())
    with h5py.File(made.path) as file:
        assert (file.attrs["dataset_name"], file.attrs["grid_type"]) == ("heat", "cartesian")
        assert (file.attrs["n_spatial_dims"], file.attrs["n_trajectories"]) == (2, 6)
        assert text(file, "simulation_parameters") == ["density"] and file.attrs["density"] == 2.0
        assert text(file["dimensions"], "spatial_dims") == ["x", "y"]
        assert list(file["dimensions/time"]) == [0.0, 0.5, 1.0]
        assert not file["dimensions/x"].attrs["sample_varying"]
        assert text(file["t0_fields"], "field_names") == ["u", "v"]
        assert [len(file[g].attrs["field_names"]) for g in ("t1_fields", "t2_fields")] == [0, 0]
        u = file["t0_fields/u"]
        assert (u.shape, u.dtype) == ((6, 3, 4, 3), np.float32)
        assert list(u.attrs["dim_varying"]) == [True, True]
        assert u.attrs["sample_varying"] and u.attrs["time_varying"]
        assert_identical(u[:, 0], arrays["u0"].astype(np.float32))
        assert_identical(u[:, 1:], arrays["u"].astype(np.float32))
        assert text(file["scalars"], "field_names") == ["density", "rate"]
        assert [bool(file[f"scalars/{n}"].attrs["sample_varying"]) for n in ("density", "rate")] == [False, True]


def test_boundary_conditions_of_the_well(tmp_path):
    make(tmp_path / "data", plane_layout(("u",)))
    export(tmp_path / "data", tmp_path / "w.hdf5", to="well")
    with h5py.File(tmp_path / "w.hdf5") as file:
        found = file["boundary_conditions"]
        assert {str(entry.attrs["bc_type"]) for entry in found.values()} == {"PERIODIC", "WALL"}
        x, y = found["x_periodic"], found["y_wall"]
        assert (text(x, "associated_dims"), text(y, "associated_dims")) == (["x"], ["y"])
        assert list(x["mask"]) == [True, False, False, True]
        assert list(y["mask"]) == [True, False, True]
        np.testing.assert_array_equal(y["values"], [0.5, np.nan])  # a slope sets no value


@pytest.mark.parametrize("to", ["well", "pdebench"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_there_and_back(line, tmp_path, to, dtype):
    export(line, tmp_path / "file.hdf5", to=to, dtype=dtype)
    assert format_of(tmp_path / "file.hdf5") == to
    made = import_file(tmp_path / "file.hdf5", tmp_path / "back", splits=SAME_SPLITS)
    assert made.computed == 20
    back, first = Dataset.open(tmp_path / "back"), Dataset.open(line)
    wanted = {name: values.astype(dtype) for name, values in first.read(["u0", "u", "diffusivity"]).items()}
    assert_identical(back.read(["u0", "u", "diffusivity"]), wanted)
    assert (back.layout.variable("u").unit, back.layout.splits) == ("K", first.layout.splits)
    if dtype == "float64":
        assert back.layout.coordinates["x"] == first.layout.coordinates["x"] or to == "well"
        assert back.layout.coordinates["time"] == first.layout.coordinates["time"]
    assert list(back.read(["density"])["density"]) == [2.0] * 20
    assert import_file(tmp_path / "file.hdf5", tmp_path / "back", splits=SAME_SPLITS).computed == 0


@pytest.mark.parametrize("to", ["well", "pdebench"])
def test_several_fields_on_a_plane(tmp_path, to):
    arrays = make(tmp_path / "data", plane_layout(("u", "v")))
    export(tmp_path / "data", tmp_path / "file.hdf5", to=to, dtype="float64")
    import_file(tmp_path / "file.hdf5", tmp_path / "back", splits={"train": 4, "test": 2})
    back = Dataset.open(tmp_path / "back")
    assert_identical({name: back.read([name])[name] for name in arrays}, arrays)
    assert back.layout.coordinates["x"].periodic and not back.layout.coordinates["y"].periodic
    assert back.layout.coordinates["x"].period == 1.0


def test_layout_of_pdebench(line, tmp_path):
    export(line, tmp_path / "p.hdf5", to="pdebench")
    with h5py.File(tmp_path / "p.hdf5") as file:
        assert (file["tensor"].shape, file["tensor"].dtype) == ((20, 4, 16), np.float32)
        assert list(file["t-coordinate"]) == [0.0, 0.5, 1.0, 2.0]
        assert_identical(file["x-coordinate"][...], np.float32(np.arange(16) / 16))
        assert file["diffusivity"].shape == (20,)
        assert file.attrs["density"] == 2.0
    make(tmp_path / "two", plane_layout(("u", "v")))
    export(tmp_path / "two", tmp_path / "q.hdf5", to="pdebench")
    with h5py.File(tmp_path / "q.hdf5") as file:
        assert sorted(file) == [f"{i:04d}" for i in range(6)]
        assert file["0003/data"].shape == (3, 4, 3, 2)
        assert sorted(file["0003/grid"]) == ["t", "x", "y"]
        assert "rate" in file["0003"].attrs


@pytest.mark.parametrize("to", ["well", "pdebench"])
def test_a_steady_problem(tmp_path, to):
    shape, axes = (4, 3), ("x", "y")
    changes = {
        "inputs": (Variable("permeability", "m^2", shape, axes),),
        "outputs": (Variable("pressure", "Pa", shape, axes),),
    }
    arrays = make(tmp_path / "data", plane_layout((), **changes))
    export(tmp_path / "data", tmp_path / "file.hdf5", to=to, dtype="float64")
    with h5py.File(tmp_path / "file.hdf5") as file:
        if to == "pdebench":
            assert (file["tensor"].shape, file["permeability"].shape) == ((6, 1, 4, 3), (6, 4, 3))
        else:
            assert not file["t0_fields/pressure"].attrs["time_varying"]
    import_file(tmp_path / "file.hdf5", tmp_path / "back", splits={"train": 4, "test": 2})
    back = Dataset.open(tmp_path / "back")
    assert [v.name for v in back.layout.outputs] == ["pressure"]
    assert_identical({name: back.read([name])[name] for name in arrays}, arrays)


def test_one_split(line, tmp_path):
    assert export(line, tmp_path / "t.hdf5", to="well", split="test").samples == 5
    with h5py.File(tmp_path / "t.hdf5") as file:
        assert_identical(file["t0_fields/u"][:, 1:], Dataset.open(line).read(["u"], split="test")["u"].astype("f4"))


@pytest.fixture
def vectors(tmp_path):
    """A file of The Well as others write it: a velocity, a fixed field for all samples, a scalar that changes."""
    random = np.random.default_rng(0)
    with h5py.File(tmp_path / "vectors.hdf5", "w") as file:
        values = {"dataset_name": "flow", "grid_type": "cartesian", "n_spatial_dims": 2, "n_trajectories": 5}
        file.attrs.update(values)
        file.attrs["simulation_parameters"] = ["a"]
        file.attrs["a"] = 0.25
        file.create_group("dimensions").attrs["spatial_dims"] = ["x", "y"]
        for name, size in {"time": 3, "x": 4, "y": 2}.items():
            file[f"dimensions/{name}"] = np.linspace(0, 1, size, dtype=np.float32)
            file[f"dimensions/{name}"].attrs["sample_varying"] = False
        wall = file.create_group("boundary_conditions/x_wall")
        wall.attrs.update({"bc_type": "wall", "associated_dims": ["x"]})
        file.create_group("scalars").attrs["field_names"] = ["a", "clock"]
        file["scalars/a"], file["scalars/clock"] = np.float32(0.25), np.zeros(3, np.float32)
        arrays = {
            "t0_fields/height": ((4, 2), False, False),
            "t1_fields/velocity": ((5, 3, 4, 2, 2), True, True),
            "t2_fields/stress": ((5, 3, 4, 2, 2, 2), True, True),
        }
        for place, (shape, by_sample, by_time) in arrays.items():
            file[place] = random.normal(size=shape).astype(np.float32)
            file[place].attrs.update(
                {"dim_varying": [True, True], "sample_varying": by_sample, "time_varying": by_time}
            )
            file[place].parent.attrs["field_names"] = [place.split("/")[1]]
        for name, by_time in {"a": False, "clock": True}.items():
            file[f"scalars/{name}"].attrs.update({"sample_varying": False, "time_varying": by_time})
    return tmp_path / "vectors.hdf5"


def test_vectors_and_tensors_become_components(vectors, tmp_path):
    import_file(vectors, tmp_path / "data", splits={"train": 1.0})
    data = Dataset.open(tmp_path / "data").read()
    with h5py.File(vectors) as file:
        velocity, stress, height = (
            file[n][...] for n in ("t1_fields/velocity", "t2_fields/stress", "t0_fields/height")
        )
    assert_identical(data["velocity_y"], velocity[:, 1:, ..., 1])
    assert_identical(data["velocity_x0"], velocity[:, 0, ..., 0])
    assert_identical(data["stress_xy"], stress[:, 1:, ..., 0, 1])
    assert_identical(data["height"], np.broadcast_to(height, (5, 4, 2)))
    assert "clock" not in data and list(data["a"]) == [0.25] * 5


def test_one_time_too_many(line, tmp_path):
    """Published files of PDEBench list one time more than they have steps: said, and the steps keep their times."""
    export(line, tmp_path / "p.hdf5", to="pdebench", dtype="float64")
    with h5py.File(tmp_path / "p.hdf5", "a") as file:
        del file["t-coordinate"]
        file["t-coordinate"] = [0.0, 0.5, 1.0, 2.0, 3.0]
    with pytest.warns(UserWarning, match="5 times for 4 steps"):
        import_file(tmp_path / "p.hdf5", tmp_path / "back", splits=SAME_SPLITS)
    assert Dataset.open(tmp_path / "back").layout.coordinates["time"].values == (0.5, 1.0, 2.0)


def drop_points(file):
    del file["x-coordinate"]


def other_times(file):
    del file["t-coordinate"]
    file["t-coordinate"] = np.arange(9.0)


def not_finite(file):
    file["tensor"][7, 2, 3] = np.nan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_points, "do not fit its coordinates"),
        (other_times, "other times"),
        (not_finite, "u of sample 7 in .*p.hdf5 is not finite"),
    ],
)
def test_files_that_do_not_fit(line, tmp_path, change, message):
    export(line, tmp_path / "p.hdf5", to="pdebench")
    with h5py.File(tmp_path / "p.hdf5", "a") as file:
        change(file)
    with pytest.raises(DataError, match=message):
        import_file(tmp_path / "p.hdf5", tmp_path / "back")


@pytest.mark.parametrize("to", ["well", "pdebench"])
def test_a_field_that_starts_from_one_number(tmp_path, to):
    """As a dam break: the depth is drawn, the discharge starts from zero and is not among the inputs."""
    layout = plane_layout(("u", "v"))
    arrays = make(tmp_path / "data", Layout(**{**vars(layout), "inputs": layout.inputs[:1]}), fixed_initial={"v": 0.5})
    export(tmp_path / "data", tmp_path / "f.hdf5", to=to, dtype="float64")
    import_file(tmp_path / "f.hdf5", tmp_path / "back", splits={"train": 4, "test": 2})
    back = Dataset.open(tmp_path / "back").read()
    assert_identical(back["u0"], arrays["u0"])
    assert_identical(back["v0"], np.full_like(arrays["u0"], 0.5))
    assert_identical(back["v"], arrays["v"])


def other_points(file):
    file["0003/grid/y"][1] = 0.25


def other_time(file):
    file["0005/grid/t"][2] = 1.25


def other_shape(file):
    del file["0002/data"]
    file["0002/data"] = np.zeros((3, 4, 4, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_points, "grid/y of sample 0003"),
        (other_time, "grid/t of sample 0005"),
        (other_shape, "sample 0002 .* another shape"),
        (lambda file: None, None),
    ],
)
def test_samples_on_grids_of_their_own(tmp_path, change, message):
    make(tmp_path / "data", plane_layout(("u", "v")))
    export(tmp_path / "data", tmp_path / "p.hdf5", to="pdebench")
    with h5py.File(tmp_path / "p.hdf5", "a") as file:
        change(file)
    if message is None:
        assert import_file(tmp_path / "p.hdf5", tmp_path / "back", splits={"train": 6}).computed == 6
        return
    with pytest.raises(DataError, match=message):
        import_file(tmp_path / "p.hdf5", tmp_path / "back", splits={"train": 6})


@pytest.mark.parametrize(("stored", "kept"), [(">f8", "float64"), (">f4", "float32"), ("<i4", "float64")])
def test_other_byte_orders_lose_no_digit(line, tmp_path, stored, kept):
    export(line, tmp_path / "p.hdf5", to="pdebench", dtype="float64")
    with h5py.File(tmp_path / "p.hdf5", "a") as file:
        values = (1000 * file["tensor"][...]).astype(stored)
        del file["tensor"]
        file["tensor"] = values
    import_file(tmp_path / "p.hdf5", tmp_path / "back", splits=SAME_SPLITS)
    back = Dataset.open(tmp_path / "back")
    assert back.layout.dtype == kept
    assert_identical(back.read()["u"], values[:, 1:].astype(kept))


def test_the_splits_of_an_import_hold_in_the_merged_file(line, tmp_path):
    export(line, tmp_path / "p.hdf5", to="pdebench")
    import_file(tmp_path / "p.hdf5", tmp_path / "back", splits=SAME_SPLITS)
    merge(tmp_path / "back", tmp_path / "all.h5")
    arrays = {"input": "inputs/u0", "output": "outputs/u"}
    kept = open_arrays(tmp_path / "all.h5", **arrays, seed=3)
    for name, rows in Dataset.open(tmp_path / "back").splits.items():
        assert_identical(kept.rows(name), rows)
    drawn = open_arrays(tmp_path / "all.h5", **arrays, splits=SAME_SPLITS, seed=3)
    assert list(drawn.rows("test")) != list(kept.rows("test"))


def test_refusals(line, tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'well'"):
        export(line, tmp_path / "a.hdf5", to="wel")
    (tmp_path / "a.hdf5").write_text("mine")
    with pytest.raises(CannotCreateError, match="already there"):
        export(line, tmp_path / "a.hdf5", to="well")
    with h5py.File(tmp_path / "b.hdf5", "w") as file:
        file["numbers"] = [1.0]
    with pytest.raises(DataError, match="none of the known layouts"):
        import_file(tmp_path / "b.hdf5", tmp_path / "back")
    with pytest.raises(ConfigError, match="20 samples"):
        export(line, tmp_path / "c.hdf5", to="well")
        import_file(tmp_path / "c.hdf5", tmp_path / "back", splits={"train": 30})
