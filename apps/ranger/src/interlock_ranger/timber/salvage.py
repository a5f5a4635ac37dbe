"""Is dead timber worth taking? What the law allows, what products are left, what they fetch, what taking it costs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

import msgspec

from interlock import Result
from interlock.errors import InvalidInput
from interlock_ranger.evidence import (
    Evidence,
    Finding,
    Part,
    Recommendation,
    Step,
    Today,
    build_result,
    compute_confidence,
)
from interlock_ranger.records import Fire, Species, Stand
from interlock_ranger.rules import get_rule
from interlock_ranger.timber.cruise import StandCruise, check_on_file, cruise_stands, list_uncruised
from interlock_ranger.timber.sampling import SampledPart, SampleMean, plots_needed, precision_of_sum
from interlock_ranger.timber.species import NAMES
from interlock_ranger.timber.volume import LogRule

DAYS_A_MONTH = 30.4375
"""365.25 / 12."""
NAMED = 8
"""So many stands are named in the summary."""


class Product(StrEnum):
    """What dead timber can still become."""

    PREMIUM = "premium"
    COMMERCIAL = "commercial"
    UTILITY = "utility"
    NONE = "none"


class Viability(StrEnum):
    """Whether to take it."""

    VIABLE = "VIABLE"
    MARGINAL = "MARGINAL"
    NOT_VIABLE = "NOT_VIABLE"
    NOT_ALLOWED = "NOT_ALLOWED"
    UNDECIDED = "UNDECIDED"
    """Its plots differ too much, or are too few, to say either."""


_WITHOUT_NET_VALUE = (Viability.NOT_ALLOWED, Viability.UNDECIDED)
_WITH_NET_VALUE = (Viability.VIABLE, Viability.MARGINAL)


class SpeciesSalvage(Part):
    species: Species
    name: str
    dead_mbf_per_acre: float
    product: Product
    months_left: float
    volume_loss_pct: float | None
    price_usd_per_mbf: float
    rule: str = "timber.salvage-window"


class StandSalvage(Part):
    stand_id: str
    name: str
    acres: float
    viability: Viability
    dead_mbf_per_acre: float
    value_usd_per_acre: float
    cost_usd_per_acre: float
    net_usd_per_acre: float
    net_usd: float | None
    """None where the law lets nobody earn it, and where the plots cannot carry a verdict."""
    sampling_error_pct: float | None
    """Of the dead timber, at 95 %; None if its plots cannot tell."""
    window_ends_in_months: float
    reason: str
    species: tuple[SpeciesSalvage, ...]
    rule: str


class SalvageAssessment(Finding):
    fire_id: str
    name: str
    assessed_on: date
    assessed_on_from: str
    months_since_containment: float
    viable_count: int
    stands: tuple[StandSalvage, ...]
    not_cruised: tuple[str, ...]
    """Stands without a plot; nothing is said of them."""
    draft: str


class _Verdict(msgspec.Struct, frozen=True):
    viability: Viability
    reason: str
    rule: str


def product_after(species: Species, months: float) -> Product:
    """What dead timber of a species can still become."""
    windows: list[float] = get_rule("timber.salvage-window").values[species.value]
    # Not strict: there are three windows for four products, as the last, none, never ends.
    return next((kind for kind, end in zip(Product, windows, strict=False) if months <= end), Product.NONE)


def volume_loss_pct(species: Species, months: float) -> float | None:
    """Published loss of volume; None where nothing is published.

    Between years it is a straight line; beyond the last published year, its figure stands.
    """
    years: list[float] = get_rule("timber.volume-loss").values[species.value]
    if not years:
        return None
    at = months / 12
    # Nothing is lost on the day of death, so the first published year is reached on a straight line, too.
    known = [0.0, *years]
    low = min(int(at), len(known) - 1)
    high = min(low + 1, len(known) - 1)
    return round(known[low] + (known[high] - known[low]) * min(1.0, at - low), 1)


def cost_usd_per_mbf(stand: Stand) -> float:
    """Logging and hauling."""
    values = get_rule("timber.costs").values
    return float(values[stand.terrain] + values[stand.access] + values["haul"])


def assess_stands(fire: Fire, stand_id: str | None, day: date | None, today: Today) -> Result[SalvageAssessment]:
    """The salvage of one stand or all on a day; without one, today."""
    on, facts = day or today(), fire.facts
    # Months count from containment: before it they would be negative, and every window open.
    if on < facts.containment_date:
        raise InvalidInput(f"{facts.name} was contained on {facts.containment_date.isoformat()}; give a later date")
    months = (on - facts.containment_date).days / DAYS_A_MONTH
    stands = (fire.stands[stand_id],) if stand_id is not None else tuple(fire.stands.values())
    check_on_file(fire, stands)
    cruised = cruise_stands(fire, stands, LogRule.SCRIBNER)
    found = sorted(
        (_assess_stand(item, months) for item in cruised),
        # What the law forbids comes last, however much it would fetch; what nobody can tell earns nothing yet.
        key=lambda s: (s.viability is Viability.NOT_ALLOWED, -(s.net_usd or 0.0)),
    )
    sources = tuple(map(fire.source, ("trees.csv", "plots.csv", "stands.json")))
    published = sum(kind.volume_loss_pct is not None for s in found for kind in s.species)
    wanted = max(1, sum(len(s.species) for s in found))
    viable_count = sum(s.viability is Viability.VIABLE for s in found)
    day_from = "named" if day is not None else "today, as none was named"
    since = f"{months:.1f} months since containment on {on.isoformat()} ({day_from})"
    evidence = Evidence(
        reasoning=(
            Step(rule="timber.salvage-window", text=since),
            *_reasoning(found, months),
            Step(rule="timber.salvage", text=f"{viable_count} of {len(found)} stands viable"),
        ),
        recommendations=tuple(
            Recommendation(rule=s.rule, text=f"{s.name}: {s.viability.value}, {s.reason}") for s in found[:10]
        ),
        confidence=compute_confidence(today(), sources, published, wanted, precision_of_sum(_dead_totals(cruised))),
        data_sources=sources,
    )
    assessment = SalvageAssessment(
        fire_id=fire.id,
        name=facts.name,
        assessed_on=on,
        assessed_on_from=day_from,
        months_since_containment=round(months, 1),
        viable_count=viable_count,
        stands=tuple(found),
        not_cruised=list_uncruised(fire, stands),
        draft="Draft for the responsible official; prices, costs and windows are scenarios to be replaced.",
        synthetic=evidence.is_synthetic,
        evidence=evidence,
    )
    return build_result(assessment, _summarise(assessment, day_named=day is not None))


def _reasoning(found: Sequence[StandSalvage], months: float) -> tuple[Step, ...]:
    return (
        Step(rule="timber.volume-loss", text=_describe_losses(found, months)),
        Step(rule="timber.sampling-error", text="dead timber is a mean of plots; its error lowers the confidence"),
        Step(rule="timber.prices", text="value by species and product"),
        Step(rule="timber.costs", text="costs by terrain and access"),
    )


def _dead_totals(cruised: Sequence[StandCruise]) -> list[SampledPart]:
    return [
        SampledPart(total=item.dead_bf.mean * item.stand.acres, error_pct=item.dead_bf.error_pct) for item in cruised
    ]


def _assess_stand(item: StandCruise, months: float) -> StandSalvage:
    stand = item.stand
    left = tuple(_assess_species(item, kind, months) for kind in item.species() if item.mean(kind).dead_net_bf)
    sold = [k for k in left if k.product is not Product.NONE]
    # Where no loss is published none is taken off, and `_describe_losses` names the species.
    kept = [(k, k.dead_mbf_per_acre * (1 - (k.volume_loss_pct or 0.0) / 100)) for k in sold]
    worth = sum(mbf * k.price_usd_per_mbf for k, mbf in kept)
    # What makes no product is not logged, and costs nothing.
    cost = sum(mbf for _, mbf in kept) * cost_usd_per_mbf(stand)
    verdict = _judge(stand, worth, cost, item.dead_bf, has_dead=bool(left))
    has_net_value = verdict.viability not in _WITHOUT_NET_VALUE
    error_pct = item.dead_bf.error_pct
    return StandSalvage(
        stand_id=stand.stand_id,
        name=stand.name,
        acres=stand.acres,
        viability=verdict.viability,
        dead_mbf_per_acre=round(sum(k.dead_mbf_per_acre for k in left), 2),
        value_usd_per_acre=round(worth),
        cost_usd_per_acre=round(cost),
        net_usd_per_acre=round(worth - cost),
        net_usd=round((worth - cost) * stand.acres) if has_net_value else None,
        sampling_error_pct=None if error_pct is None else round(error_pct, 1),
        # The last window to end: until then something of the stand can be sold.
        window_ends_in_months=round(max((k.months_left for k in left), default=0.0), 1),
        reason=verdict.reason,
        species=left,
        rule=verdict.rule,
    )


def _assess_species(item: StandCruise, species: Species, months: float) -> SpeciesSalvage:
    product = product_after(species, months)
    prices: list[float] = get_rule("timber.prices").values[species.value]
    window_end: float = get_rule("timber.salvage-window").values[species.value][-1]
    return SpeciesSalvage(
        species=species,
        name=NAMES[species],
        dead_mbf_per_acre=round(item.mean(species).dead_net_bf / 1000, 2),
        product=product,
        months_left=round(max(0.0, window_end - months), 1),
        volume_loss_pct=volume_loss_pct(species, months),
        price_usd_per_mbf=0.0 if product is Product.NONE else prices[tuple(Product).index(product)],
    )


def _judge(stand: Stand, worth: float, cost: float, dead_bf: SampleMean, *, has_dead: bool) -> _Verdict:
    """What the law allows comes first; then whether anything is left to sell, and surely enough; then the margin."""
    if stand.designation == "wilderness":
        return _Verdict(Viability.NOT_ALLOWED, "wilderness: commercial harvest is not allowed", "land.wilderness")
    if stand.designation == "roadless":
        reason = "roadless area: timber cutting is barred but for narrow exceptions"
        return _Verdict(Viability.NOT_ALLOWED, reason, "land.roadless")
    if not has_dead:
        return _Verdict(Viability.NOT_VIABLE, "no dead timber was tallied on its plots", "timber.salvage")
    if worth <= 0:
        return _Verdict(Viability.NOT_VIABLE, "every window of its species has ended", "timber.salvage-window")
    doubt = _find_doubt(dead_bf)
    if doubt is not None:
        return _Verdict(Viability.UNDECIDED, doubt, "timber.salvage-error")
    margin = (worth - cost) / worth
    reason = f"${worth:,.0f} an acre against ${cost:,.0f} of cost"
    if margin >= get_rule("timber.salvage").values["viable_margin"]:
        return _Verdict(Viability.VIABLE, reason, "timber.salvage")
    return _Verdict(Viability.MARGINAL if margin > 0 else Viability.NOT_VIABLE, reason, "timber.salvage")


def _find_doubt(dead_bf: SampleMean) -> str | None:
    """Why the plots of a stand cannot carry a verdict about its dead timber; None if they can."""
    most: float = get_rule("timber.salvage-error").values["most_error_pct"]
    if dead_bf.error_pct is None or dead_bf.cv_pct is None:
        return "the sampling error of its dead timber is not known from one plot; more plots are needed"
    if dead_bf.error_pct < most:
        return None
    return (
        f"the sampling error of its dead timber, {dead_bf.error_pct:,.0f} %, is not under {most:g} %; more plots are"
        f" needed, {plots_needed(dead_bf.cv_pct, most)} or more if they vary as these {dead_bf.n} do"
    )


def _describe_losses(found: Sequence[StandSalvage], months: float) -> str:
    """What was taken off, of which species nothing could be, and for which the last published year had to stand in."""
    kinds = {k.species: k for s in found for k in s.species if k.product is not Product.NONE}
    years = {kind: len(get_rule("timber.volume-loss").values[kind.value]) for kind in kinds}
    known = sorted(k.name for k in kinds.values() if k.volume_loss_pct is not None)
    unknown = sorted(k.name for k in kinds.values() if k.volume_loss_pct is None)
    late = sorted(f"{NAMES[kind]} (year {count})" for kind, count in years.items() if 0 < count < months / 12)
    parts = [f"published losses of volume taken off for {', '.join(known)}" if known else "no loss of volume taken off"]
    parts += [f"none is published for {', '.join(unknown)}"] if unknown else []
    parts += [f"the last published year stands for later ones: {', '.join(late)}"] if late else []
    return "; ".join(parts)


def _summarise(assessment: SalvageAssessment, *, day_named: bool) -> str:
    today = "" if day_named else " (today, as no date was named)"
    stands = "; ".join(_summarise_stand(s) for s in assessment.stands[:NAMED])
    left_out = f"; not judged, as they have no plot: {', '.join(assessment.not_cruised)}"
    left_out = left_out if assessment.not_cruised else ""
    return (
        f"{assessment.name} on {assessment.assessed_on}{today}, {assessment.months_since_containment} months after"
        f" containment: {assessment.viable_count} of"
        f" {len(assessment.stands)} stand{'s' * (len(assessment.stands) != 1)} viable for salvage; {stands}{left_out}"
    )


def _summarise_stand(s: StandSalvage) -> str:
    if s.net_usd is None or s.viability not in _WITH_NET_VALUE:
        return f"{s.name} {s.viability.value} ({s.reason})"
    error = "not known" if s.sampling_error_pct is None else f"{s.sampling_error_pct} %"
    return f"{s.name} {s.viability.value} ({s.reason}, net ${s.net_usd:,.0f}, sampling error {error})"
