"""Privacy mechanisms, through which all data passes, and ledgers that add up their cost.

Authors of agents import from here; the modules behind these names are internal and may move.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from dpbandit.shelf import face as _face

if _TYPE_CHECKING:
    from dpbandit.privacy.batches import BatchSum as BatchSum, LocalValues as LocalValues
    from dpbandit.privacy.calibrated import (
        Target as Target,
        certified_sum as certified_sum,
        exact_prefix_sum as exact_prefix_sum,
    )
    from dpbandit.privacy.certificate import Certificate as Certificate
    from dpbandit.privacy.choices import OneShotTopK as OneShotTopK
    from dpbandit.privacy.curves import (
        delta_of as delta_of,
        epsilon_of as epsilon_of,
        mu_of as mu_of,
    )
    from dpbandit.privacy.factors import Window as Window
    from dpbandit.privacy.fading import (
        FadingSum as FadingSum,
        certified_fading_sum as certified_fading_sum,
    )
    from dpbandit.privacy.ledger import (
        Ledger as Ledger,
        least_noise as least_noise,
        ledger_of as ledger_of,
        no_data as no_data,
        no_privacy as no_privacy,
    )
    from dpbandit.privacy.mechanism import (
        BudgetExceededError as BudgetExceededError,
        Mechanism as Mechanism,
        Statistic as Statistic,
    )
    from dpbandit.privacy.moments import (
        ArmSums as ArmSums,
        ClippedVectors as ClippedVectors,
        Moments as Moments,
        SecondMoments as SecondMoments,
    )
    from dpbandit.privacy.noise import (
        Gaussian as Gaussian,
        Gumbel as Gumbel,
        KNorm as KNorm,
        Laplace as Laplace,
    )
    from dpbandit.privacy.notion import Notion as Notion, Trust as Trust, Visits as Visits
    from dpbandit.privacy.prefix_sums import (
        BLT as BLT,
        Banded as Banded,
        PrefixSum as PrefixSum,
        SquareRoot as SquareRoot,
        Tree as Tree,
    )
    from dpbandit.privacy.premises import (
        ALL_FACTS as ALL_FACTS,
        NO_FACTS as NO_FACTS,
        SUMMED as SUMMED,
        Fact as Fact,
    )
    from dpbandit.privacy.pure import BoundedRangeSpend as BoundedRangeSpend, PureSpend as PureSpend
    from dpbandit.privacy.residuals import SignedDirections as SignedDirections
    from dpbandit.privacy.sparse_vector import SegmentAboveThreshold as SegmentAboveThreshold
    from dpbandit.privacy.spends import GaussianSpend as GaussianSpend, Parallel as Parallel

# An environment needs few of these modules, and all of them take as long to import as NumPy.
__getattr__, __dir__ = _face(__name__)
