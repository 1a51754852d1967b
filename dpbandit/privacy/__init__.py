"""Privacy: data reaches the future through mechanisms alone, and ledgers say what that costs.

What the author of an agent needs is here; where it comes from is internal, and may move.
"""

from dpbandit.privacy.batches import BatchSum as BatchSum
from dpbandit.privacy.batches import LocalValues as LocalValues
from dpbandit.privacy.calibrated import Target as Target
from dpbandit.privacy.calibrated import certified_sum as certified_sum
from dpbandit.privacy.calibrated import exact_prefix_sum as exact_prefix_sum
from dpbandit.privacy.certificate import Certificate as Certificate
from dpbandit.privacy.choices import OneShotTopK as OneShotTopK
from dpbandit.privacy.curves import delta_of as delta_of
from dpbandit.privacy.curves import epsilon_of as epsilon_of
from dpbandit.privacy.curves import mu_of as mu_of
from dpbandit.privacy.factors import Window as Window
from dpbandit.privacy.fading import FadingSum as FadingSum
from dpbandit.privacy.fading import certified_fading_sum as certified_fading_sum
from dpbandit.privacy.ledger import Ledger as Ledger
from dpbandit.privacy.ledger import least_noise as least_noise
from dpbandit.privacy.ledger import ledger_of as ledger_of
from dpbandit.privacy.ledger import no_data as no_data
from dpbandit.privacy.ledger import no_privacy as no_privacy
from dpbandit.privacy.mechanism import BudgetExceededError as BudgetExceededError
from dpbandit.privacy.mechanism import Mechanism as Mechanism
from dpbandit.privacy.moments import ArmSums as ArmSums
from dpbandit.privacy.moments import ClippedVectors as ClippedVectors
from dpbandit.privacy.moments import Moments as Moments
from dpbandit.privacy.moments import SecondMoments as SecondMoments
from dpbandit.privacy.moments import Statistic as Statistic
from dpbandit.privacy.noise import Gaussian as Gaussian
from dpbandit.privacy.noise import Gumbel as Gumbel
from dpbandit.privacy.noise import KNorm as KNorm
from dpbandit.privacy.noise import Laplace as Laplace
from dpbandit.privacy.peeling import NoisyHardThresholding as NoisyHardThresholding
from dpbandit.privacy.prefix_sums import BLT as BLT
from dpbandit.privacy.prefix_sums import Banded as Banded
from dpbandit.privacy.prefix_sums import PrefixSum as PrefixSum
from dpbandit.privacy.prefix_sums import SquareRoot as SquareRoot
from dpbandit.privacy.prefix_sums import Tree as Tree
from dpbandit.privacy.pure import BoundedRangeSpend as BoundedRangeSpend
from dpbandit.privacy.pure import PureSpend as PureSpend
from dpbandit.privacy.residuals import SignedDirections as SignedDirections
from dpbandit.privacy.sparse_vector import SegmentAboveThreshold as SegmentAboveThreshold
from dpbandit.privacy.spends import GaussianSpend as GaussianSpend
from dpbandit.privacy.spends import Parallel as Parallel
from dpbandit.privacy.vertices import NoisyVertex as NoisyVertex
