"""Contracts between environments, agents and the loop, and the public facts of problems."""

from dpbandit.base import reached as reached
from dpbandit.specs.choice import (
    MOST_PRODUCTS as MOST_PRODUCTS,
    AssortmentSpec as AssortmentSpec,
    ChoiceSpec as ChoiceSpec,
    FreelyPricedSpec as FreelyPricedSpec,
    PricedAssortmentSpec as PricedAssortmentSpec,
    best_levels as best_levels,
    best_prices as best_prices,
)
from dpbandit.specs.contract import (
    CLIPPED as CLIPPED,
    Agent as Agent,
    AgentConfig as AgentConfig,
    Bounds as Bounds,
    Clips as Clips,
    Hindsight as Hindsight,
    Outside as Outside,
    Problem as Problem,
    ScoringAgent as ScoringAgent,
    Watch as Watch,
    acted as acted,
    begin as begin,
    check_config as check_config,
    checked_problem as checked_problem,
    gaussian as gaussian,
    is_running as is_running,
    made_agent as made_agent,
    scaled as scaled,
)
from dpbandit.specs.convex import (
    ConvexSpec as ConvexSpec,
    ExpertsSpec as ExpertsSpec,
    Feedback as Feedback,
    StreamSpec as StreamSpec,
)
from dpbandit.specs.lists import (
    MOST_ITEMS as MOST_ITEMS,
    MOST_PEOPLE as MOST_PEOPLE,
    NOBODY as NOBODY,
    Catalogue as Catalogue,
    ListSpec as ListSpec,
    ReturningSpec as ReturningSpec,
)
from dpbandit.specs.models import (
    LINKS as LINKS,
    Link as Link,
    LinkName as LinkName,
    Prior as Prior,
    link_of as link_of,
    posterior as posterior,
    second_moment as second_moment,
)
from dpbandit.specs.protocols import (
    MOST_OUTSIDE as MOST_OUTSIDE,
    ArmsSpec as ArmsSpec,
    BanditSpec as BanditSpec,
    ContextualSpec as ContextualSpec,
    Masks as Masks,
    PriceListSpec as PriceListSpec,
    PriceSpec as PriceSpec,
    Spec as Spec,
    Step as Step,
    check_available as check_available,
    check_mask as check_mask,
    finite_array as finite_array,
    fits as fits,
    spec_of_kind as spec_of_kind,
)
from dpbandit.specs.rivals import (
    OwnLogitSpec as OwnLogitSpec,
    RivalsSpec as RivalsSpec,
    TastesSpec as TastesSpec,
)
from dpbandit.specs.stock import (
    BidPrices as BidPrices,
    Oversold as Oversold,
    PublicDemand as PublicDemand,
    StockSpec as StockSpec,
    best_price as best_price,
    fluid_bound as fluid_bound,
)
