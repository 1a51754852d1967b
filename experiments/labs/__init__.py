"""Teaching labs: numbered notebooks with exercises, kept as text. See README.md."""

from dpbandit.experiments.labs.catalogue import Lab, find, labs
from dpbandit.experiments.labs.notebook import notebook, write
from dpbandit.experiments.labs.selfcheck import check

__all__ = ["Lab", "check", "find", "labs", "notebook", "write"]
