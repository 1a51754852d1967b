"""Teaching labs: numbered notebooks with exercises, kept as text. See README.md."""

from dpbandit.experiments.labs.notebook import Lab, check, find, labs, notebook, write

__all__ = ["Lab", "check", "find", "labs", "notebook", "write"]
