"""The recipe: one YAML file that says what to solve, which data to make, which models to train.

`read(path, overrides)` gives a frozen `Recipe`; `schema()` describes the file to an editor. Importing this
package and reading a recipe load no jax.
"""

from sciml.recipe.components import Component
from sciml.recipe.json_schema import schema
from sciml.recipe.layout import PlanSection
from sciml.recipe.messages import RecipeError
from sciml.recipe.reading import read, read_text
from sciml.recipe.recipe import Recipe
from sciml.recipe.sections import FileData, GeneratedData, ModelSection, ProblemSection, TrainSection
from sciml.recipe.site import Site, read_site
from sciml.recipe.sweeping import Point, points

__all__ = [
    "Component",
    "FileData",
    "GeneratedData",
    "ModelSection",
    "PlanSection",
    "Point",
    "ProblemSection",
    "Recipe",
    "RecipeError",
    "Site",
    "TrainSection",
    "points",
    "read",
    "read_site",
    "read_text",
    "schema",
]
