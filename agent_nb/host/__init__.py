"""The process and its folder: plug-ins, trust, imports, private files, and how the process started.

Each other room finds its plug-ins, libraries and private files through this one. Read `plugins`
first: how a room finds its plug-ins. `door` makes the `__init__` of every room.

Order of imports, lowest level first: background, diverted, door, import_places, inherited, launch,
  paths, private_file, version
< dotenv, imports
< entry_points, trust
< plugins
"""

from typing import TYPE_CHECKING

from .door import open_door

if TYPE_CHECKING:
    from .background import Background as Background
    from .diverted import DIVERTED as DIVERTED
    from .dotenv import read_dotenv as read_dotenv
    from .imports import find_library as find_library
    from .imports import import_library as import_library
    from .imports import is_from_project as is_from_project
    from .imports import mark_foreign as mark_foreign
    from .imports import verify_libraries as verify_libraries
    from .imports import without_project as without_project
    from .inherited import Inherited as Inherited
    from .launch import Launch as Launch
    from .launch import read_launch as read_launch
    from .paths import find_nearest as find_nearest
    from .paths import shorten_path as shorten_path
    from .plugins import ATTRIBUTE as ATTRIBUTE
    from .plugins import blame_plugin as blame_plugin
    from .plugins import find_faults as find_faults
    from .plugins import list_builtin as list_builtin
    from .plugins import list_plugins as list_plugins
    from .plugins import load_plugin as load_plugin
    from .private_file import hold_lock as hold_lock
    from .private_file import make_private_folder as make_private_folder
    from .private_file import write_private as write_private
    from .trust import Offer as Offer
    from .version import __version__ as __version__

# file of the room -> the names that it defines
_NAMES = {
    "background": "Background",
    "diverted": "DIVERTED",
    "dotenv": "read_dotenv",
    "imports": "find_library import_library is_from_project mark_foreign verify_libraries without_project",
    "inherited": "Inherited",
    "launch": "Launch read_launch",
    "paths": "find_nearest shorten_path",
    "plugins": "ATTRIBUTE blame_plugin find_faults list_builtin list_plugins load_plugin",
    "private_file": "hold_lock make_private_folder write_private",
    "trust": "Offer",
    "version": "__version__",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
