"""NEPA: the level of review by rule and date, documents, times; drafts all of them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.nepa.pathway import Project, choose_pathway
from interlock_ranger.nepa.terms import Action, Degree, LandDesignation, Pathway, Resource, ScreenedResource
from interlock_ranger.nepa.timeline import Consultation, anniversary, consultation_days
from interlock_ranger.rules import get_rule, load_rules
from ranger_parts import Call, problem

CLEAR = [{"resource": resource.value, "degree": "absent"} for resource in Resource]
SALVAGE: dict[str, Any] = {
    "action": "salvage_harvest", "acres": 240.0, "temp_road_miles": 0.3, "permanent_road_miles": 0.0, "land": ["none"], "screened": CLEAR,
}  # fmt: skip


def with_degree(resource: str, degree: str) -> list[dict[str, str]]:
    return [{**item, "degree": degree if item["resource"] == resource else "absent"} for item in CLEAR]


async def test_salvage_of_250_acres_is_an_exclusion_and_one_more_is_an_assessment(call: Call) -> None:
    """The earlier system allowed 4,200 acres, and jumped to an impact statement at 4,201."""
    fits = (await call("decide_pathway", **{**SALVAGE, "acres": 250.0})).value
    assert (fits["pathway"], fits["record"]) == ("CE", "FANEC")
    assert fits["candidates"][0]["citation"] == "7 CFR 1b.4(d)(36)"
    over = (await call("decide_pathway", **{**SALVAGE, "acres": 250.1})).value
    assert (over["pathway"], over["page_limit"], over["years_limit"]) == ("EA", 75, 1)
    assert "250.1 acres are over 250" in over["reason"]
    assert "adopted exclusions were not checked" in over["reason"]
    huge = (await call("decide_pathway", **{**SALVAGE, "acres": 100_000.0})).value
    assert huge["pathway"] == "EA"  # acreage never calls for an impact statement


async def test_an_impact_statement_needs_significance(call: Call) -> None:
    likely = (await call("decide_pathway", **SALVAGE, significance="likely")).value
    assert (likely["pathway"], likely["page_limit"], likely["years_limit"]) == ("EIS", 150, 2)
    for acres in (200.0, 600.0):
        found = await call(
            "decide_pathway", **{**SALVAGE, "acres": acres, "screened": with_degree("listed_species", "significant")}
        )
        assert found.value["pathway"] == "EIS"


async def test_presence_is_no_extraordinary_circumstance_but_uncertainty_is(call: Call) -> None:
    """The earlier system sent every mention of a resource to an assessment."""
    present = await call(
        "decide_pathway", **{**SALVAGE, "screened": with_degree("cultural_site", "present_not_significant")}
    )
    assert present.value["pathway"] == "CE"
    unsure = await call("decide_pathway", **{**SALVAGE, "screened": with_degree("cultural_site", "uncertain")})
    assert unsure.value["pathway"] == "EA"
    assert "cultural site (uncertain)" in unsure.value["reason"]


@pytest.mark.parametrize("left_out", ["screened", "land", "temp_road_miles", "permanent_road_miles"])
async def test_what_nobody_said_is_asked_for_and_not_taken_as_none(call: Call, left_out: str) -> None:
    found = (await call("decide_pathway", **{k: v for k, v in SALVAGE.items() if k != left_out})).value
    assert found["pathway"] == "ASK"
    assert found["questions"]
    partly = await call("decide_pathway", **{**SALVAGE, "screened": CLEAR[:3]})
    assert partly.value["pathway"] == "ASK"
    assert "cultural site" in partly.value["questions"][-1]


async def test_wilderness_and_roadless_land_forbid(call: Call) -> None:
    for land, rule_id in (("wilderness", "land.wilderness"), ("roadless", "land.roadless")):
        found = (await call("decide_pathway", **{**SALVAGE, "land": [land]})).value
        assert (found["pathway"], found["rests_on"][0]["rule"]) == ("PROHIBITED", rule_id)
        road = await call(
            "decide_pathway",
            action="road_construction",
            acres=1.0,
            permanent_road_miles=1.0,
            land=[land],
            screened=CLEAR,
        )
        assert road.value["pathway"] == "PROHIBITED"
        trees = await call("decide_pathway", action="hazard_tree_removal", acres=1.0, land=[land], screened=CLEAR)
        assert trees.value["pathway"] == "PROHIBITED"
    trail = await call("decide_pathway", action="trail_repair", acres=1.0, land=["wilderness"], screened=CLEAR)
    assert trail.value["pathway"] == "CE"


async def test_the_rescinded_rule_is_refused_after_its_end_and_used_before(call: Call) -> None:
    named = await call("decide_pathway", **SALVAGE, category="36 CFR 220.6(e)(13)")
    assert named.value["refused"] == [
        "36 CFR 220.6(e)(13) does not apply to a decision of 2026-11-15: rescinded after 2025-07-02; see 7 CFR 1b.4(d)(36)"
    ]
    assert named.value["candidates"][0]["citation"] == "7 CFR 1b.4(d)(36)"
    last = (await call("decide_pathway", **SALVAGE, decision_date="2025-07-02")).value
    assert (last["candidates"][0]["citation"], last["record"]) == ("36 CFR 220.6(e)(13)", "decision memo")
    first = (await call("decide_pathway", **SALVAGE, decision_date="2025-07-03")).value
    assert (first["candidates"][0]["citation"], first["record"]) == ("7 CFR 1b.4(d)(36)", "FANEC")


async def test_a_category_that_a_court_set_aside_is_not_offered(call: Call) -> None:
    found = (
        await call(
            "decide_pathway", action="stand_improvement", acres=50.0, road_miles=0.0, land=["none"], screened=CLEAR
        )
    ).value
    assert found["pathway"] == "EA"
    assert "set aside by a court" in found["reason"]
    before = await call(
        "decide_pathway",
        action="stand_improvement",
        acres=50.0,
        road_miles=0.0,
        land=["none"],
        screened=CLEAR,
        decision_date="2025-10-01",
    )
    assert before.value["pathway"] == "CE"


async def test_limits_of_2023_bind_only_since_2023(call: Call) -> None:
    early = (await call("decide_pathway", **{**SALVAGE, "acres": 900.0}, decision_date="2022-06-01")).value
    assert (early["pathway"], early["page_limit"]) == ("EA", None)
    timeline = await call("estimate_compliance_timeline", pathway="EIS", start_date="2020-02-29")
    assert timeline.value["statutory_deadline"] is None


async def test_rehabilitation_ends_three_years_after_the_fire(call: Call) -> None:
    late = await call(
        "decide_pathway",
        action="post_fire_rehabilitation",
        acres=500.0,
        fire_id="bootleg-2021",
        permanent_road_miles=0.0,
        screened=CLEAR,
    )
    assert late.value["pathway"] == "EA"
    soon = await call(
        "decide_pathway", action="post_fire_rehabilitation", acres=500.0, fire_id="bootleg-2021", permanent_road_miles=0.0,
        screened=CLEAR, decision_date="2023-05-01",
    )  # fmt: skip
    assert soon.value["candidates"][0]["fits"] is True
    wrong = await call("decide_pathway", **SALVAGE, fire_id="bootleg-2021", decision_date="2020-01-01")
    assert "began on 2021-07-06" in problem(wrong).message


async def test_every_decision_is_a_draft_and_says_that_its_rules_are_unverified(call: Call) -> None:
    for given_ in (SALVAGE, {**SALVAGE, "acres": 9000.0}, {**SALVAGE, "land": ["wilderness"]}):
        found = await call("decide_pathway", **given_)
        assert found.said.startswith("DRAFT")
        assert "responsible official" in found.value["draft"]
        assert found.value["unverified"] is True
        assert "unverified" in found.said
        assert all(item["verified_against"] == "unverified" for item in found.value["rests_on"])


@given(st.sampled_from(Action), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 20))
def test_a_larger_action_never_needs_less_review(action: Action, a: float, b: float, road: float) -> None:
    order = [Pathway.CE, Pathway.ASK, Pathway.EA, Pathway.EIS]
    screened = tuple(ScreenedResource(resource=r, degree=Degree.ABSENT) for r in Resource)
    found = []
    day = date(2026, 11, 15)
    for acres in sorted((a, b)):
        project = Project(
            action=action, acres=acres, temp_road_mi=road, perm_road_mi=0.0, road_mi=road, years_after_fire=1.0,
            land=(LandDesignation.NONE,), screened=screened,
        )  # fmt: skip
        decision = choose_pathway(project, None, day, lambda: day).value
        assert decision is not None
        found.append(order.index(decision.pathway))
    assert found[0] <= found[1]


def test_every_exclusion_has_dates_and_successors_that_exist() -> None:
    for entry in load_rules().values():
        if not entry.id.startswith("ce."):
            continue
        assert entry.effective_from is not None, entry.id
        if entry.status == "rescinded":
            assert entry.effective_to is not None
            assert get_rule(entry.values["successor"]).status != "rescinded"
    named = {action for entry in load_rules().values() for action in entry.actions}
    assert named == set(Action)


async def test_documents_follow_the_level_and_the_effect(call: Call) -> None:
    species = [{"species": "bull_trout", "effect": "likely_adverse"}, {"species": "steelhead", "effect": "not_likely_adverse"},
               {"species": "northern_spotted_owl", "effect": "no_effect"}]  # fmt: skip
    found = (
        await call(
            "generate_documentation_checklist",
            pathway="EA",
            action="salvage_harvest",
            listed_species=species,
            ground="disturbed",
        )
    ).value
    told = [item["item"] for item in found["consultations"]]
    assert told[0] == "formal consultation with the Fish and Wildlife Service for bull trout: 135 days"
    assert told[1] == "informal consultation with NOAA Fisheries for steelhead: written concurrence, 60 days"
    assert told[2].startswith("no consultation for northern spotted owl")
    assert any("historic preservation" in item for item in told)
    assert "silviculture" in found["specialists"]
    asks = (await call("generate_documentation_checklist", pathway="CE", action="salvage_harvest")).value
    assert len(asks["questions"]) == 2
    assert "FANEC" in asks["items"][0]["item"]
    free = (await call("generate_documentation_checklist", pathway="CE", action="trail_repair")).value
    assert "no document under 7 CFR 1b.4(c)(22)" in free["items"][0]["item"]


async def test_times_keep_law_and_estimate_apart(call: Call) -> None:
    found = (await call(
        "estimate_compliance_timeline", pathway="EA", start_date="2026-12-01", consultations=["esa_formal"], objections="expected"
    )).value  # fmt: skip
    assert {s["stage"]: (s["days"], s["basis"]) for s in found["stages"]} == {
        "prepare the EA": (240, "planning estimate"),
        "esa formal from day 45": (135, "law"),
        "comment": (30, "law"),
        "objection and response": (90, "law"),
    }
    assert found["estimated_days"] == 240 + 30 + 90
    assert found["statutory_deadline"] == "2027-12-01"
    assert found["fits_deadline"] is True
    ce = await call("estimate_compliance_timeline", pathway="CE", objections="expected")
    assert "not open to objection" in ce.said
    assert consultation_days(Consultation.ESA_FORMAL) == 135
    assert anniversary(date(2024, 2, 29), 1).isoformat() == "2025-02-28"


@pytest.mark.parametrize("day", ["30.9.2026", "2026-13-01", "next week", "", "09/30/2026"])
async def test_a_date_in_the_wrong_format_is_refused(call: Call, day: str) -> None:
    """The earlier system silently took today."""
    found = await call("estimate_compliance_timeline", pathway="EA", start_date=day)
    assert found.status == "denied"
    assert "YYYY-MM-DD" in problem(found).message or "valid date" in problem(found).message


@pytest.mark.parametrize("day", ["2010-01-04", "2021-06-30", "2025-04-10", "2025-04-11", "2025-07-02", "2025-07-03"])
async def test_every_rule_that_a_decision_names_was_in_force_on_its_day(call: Call, day: str) -> None:
    on = date.fromisoformat(day)
    for more in ({}, {"significance": "likely"}, {"acres": 9000.0}):
        found = (await call("decide_pathway", **{**SALVAGE, **more}, decision_date=day)).value
        evidence = found["evidence"]
        named = {item["rule"] for key in ("reasoning", "recommendations") for item in evidence[key]}
        named |= {item["rule"] for item in found["rests_on"]}
        assert all(get_rule(name).applies_on(on) for name in named), named
        citations = " ".join(get_rule(name).citation for name in named)
        assert ("7 CFR 1b" in citations) == (day >= "2025-07-03")
        assert ("36 CFR 220" in citations) == (day < "2025-07-03")
        assert ("40 CFR 1500" in citations) <= (day < "2025-04-11")


async def test_a_day_before_all_rules_and_a_category_before_its_own_are_told(call: Call) -> None:
    early = await call("decide_pathway", **SALVAGE, decision_date="2005-05-05")
    assert "there is no rule on file for 2005-05-05: those on file begin with 2008-07-24" in problem(early).message
    named = await call("decide_pathway", **SALVAGE, category="USDA-36d-USFS", decision_date="2024-05-05")
    (refused,) = named.value["refused"]
    assert refused.endswith("it is in force from 2025-07-03; see 36 CFR 220.6(e)(13)")


async def test_a_timeline_of_an_earlier_year_cites_the_statute_alone(call: Call) -> None:
    for day, citation in (("2024-01-08", "42 U.S.C. 4336a(e)(2), (g)(1)(B)"), ("2020-01-08", None)):
        found = (await call("estimate_compliance_timeline", pathway="EA", start_date=day)).value
        cited = [item["citation"] for item in found["rests_on"] if item["rule"].startswith("nepa.ea")]
        assert cited == ([] if citation is None else [citation])
        assert (found["statutory_deadline"] is None) == (citation is None)
