"""Is dead timber worth taking? What the law allows, what products are left, what they fetch, what taking it costs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

from interlock import Result
from interlock.errors import InvalidInput, NotFound
from interlock_ranger.evidence import Finding, Part, Recommendation, Step, Today, confidence, finding
from interlock_ranger.fires import Fire, Stand
from interlock_ranger.rules import rule
from interlock_ranger.timber.cruise import Cruised, cruise
from interlock_ranger.timber.species import NAMES, Species
from interlock_ranger.timber.volume import LogRule

DAYS_A_MONTH = 30.4375


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


_SOLD = (Viability.VIABLE, Viability.MARGINAL)


class SpeciesLeft(Part):
    """What is left of one species."""

    species: Species
    name: str
    dead_mbf_per_acre: float
    product: Product
    months_left: float
    volume_loss_pct: float | None
    price_usd_per_mbf: float
    rule: str = "timber.salvage-window"


class StandSalvage(Part):
    """Whether one stand is worth salvaging."""

    stand_id: str
    name: str
    acres: float
    viability: Viability
    dead_mbf_per_acre: float
    value_usd_per_acre: float
    cost_usd_per_acre: float
    net_usd_per_acre: float
    net_usd: float
    window_ends_in_months: float
    because: str
    species: tuple[SpeciesLeft, ...]
    rule: str


class Salvage(Finding):
    """Whether dead timber is worth taking."""

    fire_id: str
    name: str
    assessed_on: date
    assessed_on_from: str
    months_since_containment: float
    viable_count: int
    stands: tuple[StandSalvage, ...]
    draft: str


def product(species: Species, months: float) -> Product:
    """What it can still become."""
    windows: list[float] = rule("timber.salvage-window").values[species.value]
    return next((kind for kind, end in zip(Product, windows, strict=False) if months <= end), Product.NONE)


def volume_loss_pct(species: Species, months: float) -> float | None:
    """Published loss of volume; None where nothing is published. Between years it is drawn straight."""
    years: list[float] = rule("timber.volume-loss").values[species.value]
    if not years:
        return None
    at = months / 12
    known = [0.0, *years]
    low = min(int(at), len(known) - 1)
    high = min(low + 1, len(known) - 1)
    return round(known[low] + (known[high] - known[low]) * min(1.0, at - low), 1)


def cost_usd_per_mbf(stand: Stand) -> float:
    """Logging and hauling."""
    values = rule("timber.costs").values
    return float(values[stand.terrain] + values[stand.access] + values["haul"])


def assessed(fire: Fire, stand_id: str | None, day: date | None, today: Today) -> Result[Salvage]:
    """The salvage of one stand or all."""
    on = day or today()
    origin = "named" if day is not None else "today, as none was named"
    facts = fire.facts
    if on < facts.containment_date:
        raise InvalidInput(f"{facts.name} was contained on {facts.containment_date.isoformat()}; give a later date")
    months = (on - facts.containment_date).days / DAYS_A_MONTH
    stands = (fire.stands[stand_id],) if stand_id is not None else tuple(fire.stands.values())
    cruised = cruise(fire, stands, LogRule.SCRIBNER)
    if not cruised:
        raise NotFound(f"{facts.name} has no cruise on file there")
    found = sorted(
        (_stand(item, months) for item in cruised), key=lambda s: (s.viability is Viability.NOT_ALLOWED, -s.net_usd)
    )
    viable = [s for s in found if s.viability is Viability.VIABLE]
    sources = tuple(fire.source(name, facts.cruise_date) for name in ("trees.csv", "plots.csv", "stands.json"))
    value = {
        "fire_id": fire.id,
        "name": facts.name,
        "assessed_on": on,
        "assessed_on_from": origin,
        "months_since_containment": round(months, 1),
        "viable_count": len(viable),
        "stands": tuple(found),
        "draft": "Draft for the responsible official; prices, costs and windows are scenarios to be replaced.",
        "reasoning": (
            Step(
                rule="timber.salvage-window",
                said=f"{months:.1f} months since containment on {on.isoformat()} ({origin})",
            ),
            Step(rule="timber.volume-loss", said=_losses(found)),
            Step(rule="timber.prices", said="value by species and product"),
            Step(rule="timber.costs", said="costs by terrain and access"),
            Step(rule="timber.salvage", said=f"{len(viable)} of {len(found)} stands viable"),
        ),
        "recommendations": tuple(
            Recommendation(rule=s.rule, text=f"{s.name}: {s.viability.value}, {s.because}") for s in found[:10]
        ),
    }
    published = sum(kind.volume_loss_pct is not None for s in found for kind in s.species)
    wanted = sum(len(s.species) for s in found)
    return finding(
        Salvage, _said(value, found), value, sources, confidence(today(), sources, published, max(1, wanted))
    )


def _stand(item: Cruised, months: float) -> StandSalvage:
    stand = item.stand
    left = tuple(_species(item, kind, months) for kind in item.species() if item.mean(kind).dead_net_bf)
    sold = [k for k in left if k.product is not Product.NONE]
    kept = [(k, k.dead_mbf_per_acre * (1 - (k.volume_loss_pct or 0.0) / 100)) for k in sold]
    worth = sum(mbf * k.price_usd_per_mbf for k, mbf in kept)
    cost = sum(mbf for _, mbf in kept) * cost_usd_per_mbf(stand)
    verdict, why, by = _verdict(stand, worth, cost, bool(sold))
    return StandSalvage(
        stand_id=stand.stand_id,
        name=stand.name,
        acres=stand.acres,
        viability=verdict,
        dead_mbf_per_acre=round(sum(k.dead_mbf_per_acre for k in left), 2),
        value_usd_per_acre=round(worth),
        cost_usd_per_acre=round(cost),
        net_usd_per_acre=round(worth - cost),
        net_usd=round((worth - cost) * stand.acres),
        window_ends_in_months=round(max((k.months_left for k in left), default=0.0), 1),
        because=why,
        species=left,
        rule=by,
    )


def _species(item: Cruised, kind: Species, months: float) -> SpeciesLeft:
    now = product(kind, months)
    prices: list[float] = rule("timber.prices").values[kind.value]
    last: float = rule("timber.salvage-window").values[kind.value][-1]
    return SpeciesLeft(
        species=kind,
        name=NAMES[kind],
        dead_mbf_per_acre=round(item.mean(kind).dead_net_bf / 1000, 2),
        product=now,
        months_left=round(max(0.0, last - months), 1),
        volume_loss_pct=volume_loss_pct(kind, months),
        price_usd_per_mbf=0.0 if now is Product.NONE else prices[tuple(Product).index(now)],
    )


def _verdict(stand: Stand, worth: float, cost: float, any_left: bool) -> tuple[Viability, str, str]:
    if stand.designation == "wilderness":
        return Viability.NOT_ALLOWED, "wilderness: commercial harvest is not allowed", "land.wilderness"
    if stand.designation == "roadless":
        said = "roadless area: timber cutting is barred but for narrow exceptions"
        return Viability.NOT_ALLOWED, said, "land.roadless"
    if not any_left or worth <= 0:
        return Viability.NOT_VIABLE, "every window of its species has ended", "timber.salvage-window"
    margin = (worth - cost) / worth
    said = f"${worth:,.0f} an acre against ${cost:,.0f} of cost"
    if margin >= rule("timber.salvage").values["viable_margin"]:
        return Viability.VIABLE, said, "timber.salvage"
    return (Viability.MARGINAL if margin > 0 else Viability.NOT_VIABLE), said, "timber.salvage"


def _losses(found: Sequence[StandSalvage]) -> str:
    unknown = sorted({k.name for s in found for k in s.species if k.volume_loss_pct is None})
    return "published losses of volume taken off" + (f"; none is published for {', '.join(unknown)}" if unknown else "")


def _said(value: dict[str, object], found: Sequence[StandSalvage]) -> str:
    today = " (today, as no date was named)" if value["assessed_on_from"] != "named" else ""
    parts = "; ".join(
        f"{s.name} {s.viability.value} ({s.because}" + (f", net ${s.net_usd:,.0f})" if s.viability in _SOLD else ")")
        for s in found[:8]
    )
    return (
        f"{value['name']} on {value['assessed_on']}{today}, {value['months_since_containment']} months after"
        f" containment: {value['viable_count']} of"
        f" {len(found)} stands viable for salvage; {parts}"
    )
