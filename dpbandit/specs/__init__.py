"""Public facts of problems, and the protocols of problems, agents and configs."""

from dpbandit.privacy.notion import Visits as Visits
from dpbandit.shelf import face as _face
from dpbandit.specs.bounds import *
from dpbandit.specs.contract import *
from dpbandit.specs.convex import *
from dpbandit.specs.models import *
from dpbandit.specs.protocols import *
from dpbandit.specs.selling import *

__getattr__, __dir__ = _face(__name__)
