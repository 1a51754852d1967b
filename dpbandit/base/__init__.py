"""Shared helpers: arrays, input errors, random streams, files, settings, progress bars."""

from dpbandit.base.arrays import *
from dpbandit.base.contents import *
from dpbandit.base.fields import *
from dpbandit.base.files import *
from dpbandit.base.foreign import *
from dpbandit.base.inputs import *
from dpbandit.base.labels import *
from dpbandit.base.processes import *
from dpbandit.base.progress import *
from dpbandit.base.random_streams import *
