"""The notebooks of the corpus as recipes: short texts, each about one behaviour."""

from . import agents, answers, code, edges, files, kernel, tools
from .making import Recipe, png

RECIPES = {
    recipe.name: recipe
    for room in (answers, tools, kernel, code, agents, files, edges)
    for recipe in room.RECIPES
}
__all__ = ["RECIPES", "Recipe", "png"]
