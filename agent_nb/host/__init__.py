"""The process and its folder: plug-ins, trust, imports, and how the process was launched.

Order: background, door, file_owner, import_places, launch, nearest, open_files, paths, presenter,
  private_file, version
< dotenv, imports
< plugins, trust
"""
