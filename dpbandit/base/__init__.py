"""What everything stands on: arrays, sentences for bad input, random streams.

Files, fields of dataclasses and progress bars are in modules of their own.
"""

from dpbandit.base.arrays import (
    AnyArray as AnyArray,
    Bools as Bools,
    Floats as Floats,
    Ints as Ints,
    clip_norm as clip_norm,
    clip_range as clip_range,
    norms as norms,
    pick as pick,
    predictions as predictions,
    rows as rows,
)
from dpbandit.base.inputs import (
    MOST_ACTIONS as MOST_ACTIONS,
    MOST_DIM as MOST_DIM,
    MOST_JOBS as MOST_JOBS,
    MOST_REPLICAS as MOST_REPLICAS,
    MOST_ROUNDS as MOST_ROUNDS,
    MOST_RUNS as MOST_RUNS,
    InputError as InputError,
    at_least as at_least,
    flag as flag,
    gaussian_target as gaussian_target,
    inside as inside,
    named as named,
    noise_target as noise_target,
    one_number as one_number,
    one_of as one_of,
    positive as positive,
    printed_target as printed_target,
    privacy_target as privacy_target,
    reals as reals,
    shaped as shaped,
    share as share,
    shown as shown,
    two_numbers as two_numbers,
    vector as vector,
    whole as whole,
)
from dpbandit.base.random_streams import (
    FIRST as FIRST,
    Draws as Draws,
    Seed as Seed,
    Source as Source,
    Streams as Streams,
)
