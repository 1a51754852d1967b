"""Teaching labs: numbered notebooks with exercises, kept as text. See README.md."""

from dpbandit.experiments.labs.catalogue import Lab, find, labs
from dpbandit.experiments.labs.notebook import notebook, write

__all__ = ["Lab", "find", "labs", "notebook", "write"]
