"""Contracts between environments, agents and the loop, and the public facts of problems."""

from dpbandit.specs.bounds import *
from dpbandit.specs.choice import *
from dpbandit.specs.contract import *
from dpbandit.specs.convex import *
from dpbandit.specs.lists import *
from dpbandit.specs.models import *
from dpbandit.specs.protocols import *
from dpbandit.specs.rivals import *
from dpbandit.specs.stock import *
