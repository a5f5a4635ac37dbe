"""Cubic feet by published equations, board feet by three log rules: golden values, each with its source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.records import Region, Species
from interlock_ranger.timber.species import equation_number
from interlock_ranger.timber.volume import (
    LogRule,
    board_ft,
    buck_stem,
    cubic_ft,
    deduct_defect,
    doyle,
    form_class,
    international,
    scribner,
)

# By hand from the coefficients of USFS NVEL (pnwtarif.f, fia_nw_tarif.for): DBH in inches, height in feet.
CUBIC = {
    (Species.PSME, Region.WEST): (22.0503, 86.9572, 220.9101),
    (Species.PSME, Region.EAST): (20.0789, 82.7418, 224.1351),
    (Species.PIPO, Region.WEST): (20.0205, 87.0349, 244.7193),
    (Species.TSHE, Region.WEST): (24.0933, 98.9169, 254.6395),
    (Species.THPL, Region.EAST): (21.9247, 84.7176, 218.4923),
    (Species.THPL, Region.WEST): (22.6066, 85.4164, 217.1072),
    (Species.ABGR, Region.EAST): (23.1444, 94.5023, 256.5045),
    (Species.ABLA, Region.WEST): (24.7719, 102.2510, 276.9970),
    (Species.PICO, Region.EAST): (24.0745, 101.0541, 277.7168),
    (Species.TSME, Region.WEST): (22.5526, 101.3486, 287.5680),
}


@pytest.mark.parametrize("kind", CUBIC, ids=lambda kind: "-".join(kind))
def test_cubic_volume(kind: tuple[Species, Region]) -> None:
    for (dbh, height), expected in zip(((12, 70), (20, 110), (30, 140)), CUBIC[kind], strict=True):
        assert cubic_ft(*kind, dbh, height) == pytest.approx(expected, abs=1e-4)


def test_the_equation_depends_on_the_side_of_the_cascades() -> None:
    assert (equation_number(Species.PSME, Region.WEST), equation_number(Species.PSME, Region.EAST)) == (1, 2)
    assert (equation_number(Species.ABCO, Region.WEST), equation_number(Species.ABCO, Region.EAST)) == (11, 10)


@pytest.mark.parametrize(
    ("dib", "doyles", "scribners", "internationals"),
    [  # 16-ft logs. Doyle: published tables; Scribner: USFS factors; International: section formula, unrounded
        (8, 16, 30, 38.734),
        (10, 36, 57, 64.653),
        (12, 64, 78, 96.944),
        (16, 144, 160, 180.638),
        (20, 256, 280, 289.817),
        (24, 400, 403, 424.481),
        (30, 676, 657, 674.261),
    ],
)
def test_log_rules(dib: int, doyles: float, scribners: float, internationals: float) -> None:
    assert doyle(dib, 16) == doyles
    assert scribner(dib, 16) == scribners
    assert international(dib, 16) == pytest.approx(internationals, abs=1e-3)


def test_the_rules_do_not_stand_in_a_constant_ratio() -> None:
    """The earlier system took Doyle for 0.79 and International for 1.18 of Scribner, at any size."""
    ratios = {round(doyle(dib, 16) / scribner(dib, 16), 2) for dib in (8, 12, 16, 24, 30)}
    assert len(ratios) == 5
    assert doyle(8, 16) < scribner(8, 16)
    assert doyle(30, 16) > scribner(30, 16)


@pytest.mark.parametrize(
    ("dbh", "height", "form", "dibs", "totals"),
    [  # Girard form class and Behre's hyperbola, worked out step by step
        (20, 110, 76, [15, 14, 13, 11, 8, 6], (459, 369, 534.692)),
        (12, 70, 76, [9, 8, 6], (89, 45, 108.817)),
        (30, 140, 75, [23, 21, 20, 18, 16, 13, 9, 6], (1478, 1354, 1585.940)),
    ],
)
def test_a_stem_is_bucked_into_logs(
    dbh: float, height: float, form: int, dibs: list[int], totals: tuple[float, ...]
) -> None:
    logs = buck_stem(dbh, height, form)
    assert [log.dib_in for log in logs] == dibs
    found = [sum(rule(*log) for log in logs) for rule in (scribner, doyle, international)]
    assert found == pytest.approx(totals, abs=1e-3)


def test_form_classes_are_those_of_the_species_and_size() -> None:
    assert form_class(Species.PSME, 20) == 76
    assert form_class(Species.PIPO, 25) == 81
    assert form_class(Species.TSME, 45) == 80


def test_what_gives_no_log_gives_no_board_feet() -> None:
    assert buck_stem(7, 60, 76) == ()
    assert buck_stem(20, 30, 76) == ()
    assert scribner(1, 16) == doyle(4, 16) == international(3, 16) == 0


@given(
    st.sampled_from(Species),
    st.floats(5, 60),
    st.floats(40, 250),
    st.floats(0.1, 20),
    st.sampled_from(Region),
)
def test_a_thicker_tree_has_more_wood(kind: Species, dbh: float, height: float, more: float, region: Region) -> None:
    assert cubic_ft(kind, region, dbh + more, height) > cubic_ft(kind, region, dbh, height) > 0


@given(st.sampled_from(LogRule), st.integers(6, 59), st.sampled_from([8.0, 16.0]))
def test_a_thicker_log_scales_no_less(rule: LogRule, dib: int, length: float) -> None:
    scale = {LogRule.SCRIBNER: scribner, LogRule.DOYLE: doyle, LogRule.INTERNATIONAL: international}[rule]
    assert scale(dib + 1, length) >= scale(dib, length) >= 0


@given(st.sampled_from(Species), st.floats(9, 60), st.floats(40, 200), st.sampled_from(LogRule))
def test_board_feet_are_never_more_than_twelve_for_a_cubic_foot(
    kind: Species, dbh: float, height: float, rule: LogRule
) -> None:
    """But for stubs of western hemlock, where the published equations of logs and of wood part: by 12 % at most."""
    stub = kind is Species.TSHE and height < 1.75 * dbh
    assert board_ft(kind, dbh, height, rule) <= 12 * cubic_ft(kind, Region.WEST, dbh, height) * (1.15 if stub else 1)


def test_defect_is_taken_off() -> None:
    assert deduct_defect(459, 15) == pytest.approx(390.15)  # additive, as USFS CruiseProcessing does
    assert deduct_defect(100, 0) == 100
    assert deduct_defect(100, 100) == 0
