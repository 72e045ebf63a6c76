"""The notebook's folder: what stands in it is a stranger's until the user says otherwise."""
