"""The server: roles, ETags, idempotency, fencing, odd requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from catalog_testing import (
    PRESS,
    TOKENS,
    clean_families,
    fill_catalog,
    prepare_home,
)
from interlock_catalog.server.app import build_server
from interlock_catalog.server.tokens import TokenHolder, create_token, digest_token, read_tokens


@pytest.fixture
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    app = build_server(url, TOKENS)
    async with app.router.lifespan_context(app):
        headers = {"Authorization": "Bearer admin"}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://catalog", headers=headers
        ) as made:
            yield made


async def exercise(client: httpx.AsyncClient, identity: str = PRESS) -> tuple[dict[str, Any], str]:
    answer = await client.get("/getExercise", params={"id": identity})
    return answer.json()["exercise"], answer.headers["etag"]


FUNCTIONS = {
    "reader": [("GET", "/getExercises"), ("GET", "/listFamilies"), ("GET", "/searchAliases"), ("GET", "/listSearches"),
               ("GET", "/searchExercises?q=press"), ("GET", f"/getExercise?id={PRESS}"), ("GET", "/resolveExercise?name=bench press"),
               ("GET", "/suggestFamilyVariant?name=incline bench press"), ("GET", f"/suggestAliases?id={PRESS}"), ("GET", "/findByName?slugs=x")],
    "editor": [("POST", name) for name in ("/upsertExercise", "/ensureExerciseExists", "/approveExercise", "/mergeExercises",
               "/normalizeCatalogPage", "/backfillNormalizeFamily", "/normalizeCatalog", "/refineExercise", "/upsertAlias", "/deleteAlias",
               "/repointAlias", "/repointShorthandAliases", "/writeDocuments")],
    "admin": [("POST", "/backupExercises"), ("POST", "/duplicateCatalog")],
}  # fmt: skip


async def test_every_function_needs_its_role(client: httpx.AsyncClient) -> None:
    roles = ["reader", "editor", "admin"]
    for needed, functions in FUNCTIONS.items():
        for method, path in functions:
            for token in (None, "stranger", *roles):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                del client.headers["Authorization"]
                answer = await client.request(method, path, headers=headers, json={} if method == "POST" else None)
                client.headers["Authorization"] = "Bearer admin"
                if token not in roles:
                    assert answer.status_code == 401, (path, token)
                elif roles.index(token) < roles.index(needed):
                    assert answer.status_code == 403, (path, token)
                else:
                    assert answer.status_code in (200, 422), (path, token, answer.text)


async def test_all_functions_of_the_old_api_are_there(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    named = [
        "getExercises",
        "getExercise",
        "searchExercises",
        "resolveExercise",
        "ensureExerciseExists",
        "upsertExercise",
        "approveExercise",
        "mergeExercises",
        "listFamilies",
        "normalizeCatalog",
        "normalizeCatalogPage",
        "backfillNormalizeFamily",
        "refineExercise",
        "suggestAliases",
        "suggestFamilyVariant",
        "searchAliases",
        "upsertAlias",
        "deleteAlias",
        "repointAlias",
        "repointShorthandAliases",
        "backupExercises",
        "duplicateCatalog",
    ]
    assert {f"/{name}" for name in named} <= set(paths)


async def test_an_etag_saves_a_transfer_and_guards_a_write(client: httpx.AsyncClient) -> None:
    doc, etag = await exercise(client)
    again = await client.get("/getExercise", params={"id": PRESS}, headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")
    body = {"exercise": {**doc, "category": "isolation"}}
    assert (await client.post("/upsertExercise", json=body, headers={"If-Match": '"99"'})).status_code == 412
    assert (await client.post("/upsertExercise", json=body, headers={"If-Match": etag})).status_code == 200
    assert (await client.post("/upsertExercise", json=body, headers={"If-Match": etag})).status_code == 412
    _doc, now = await exercise(client)
    assert now != etag


async def test_an_idempotency_key_is_one_effect(client: httpx.AsyncClient) -> None:
    doc, _etag = await exercise(client)
    body, key = {"exercise": {**doc, "category": "core"}}, {"Idempotency-Key": "k.1"}
    answers = await asyncio.gather(*(client.post("/upsertExercise", json=body, headers=key) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    _doc, etag = await exercise(client)
    assert etag == '"2"'
    other = await client.post("/upsertExercise", json={"exercise": {**doc, "category": "cardio"}}, headers=key)
    assert other.status_code == 422
    assert "another request" in other.text


async def test_no_update_is_lost_and_old_tokens_are_fenced_off(client: httpx.AsyncClient) -> None:
    doc, _etag = await exercise(client)

    async def bump() -> None:
        while True:
            now, tag = await exercise(client)
            now["merge_lineage"] = [*now["merge_lineage"], "x"]
            if (
                await client.post("/upsertExercise", json={"exercise": now}, headers={"If-Match": tag})
            ).status_code == 200:
                return

    await asyncio.gather(*(bump() for _ in range(8)))
    assert len((await exercise(client))[0]["merge_lineage"]) == 8

    def fence(token: int, ledger: str = "one") -> dict[str, str]:
        return {"X-Fencing-Tokens": f"lease:bench-press={token}", "X-Fencing-Ledger": ledger}

    body = {"exercise": doc}
    assert (await client.post("/upsertExercise", json=body, headers=fence(7))).status_code == 200
    late = await client.post("/upsertExercise", json=body, headers=fence(6))
    raised = await client.post("/fence", json={}, headers=fence(9))
    assert (raised.status_code, raised.json()) == (200, {"fenced": ["lease:bench-press"]})
    assert (await client.post("/upsertExercise", json=body, headers=fence(8))).status_code == 409
    assert (await client.post("/fence", json={}, headers=fence(3))).status_code == 409
    assert late.status_code == 409
    assert "too old" in late.text
    assert (await client.post("/upsertExercise", json=body, headers=fence(1, "two"))).status_code == 200


async def test_a_merge_is_whole_or_not_at_all(client: httpx.AsyncClient) -> None:
    source, target = "bench-press-bench-press-dumbbell", PRESS
    body = {"source_id": source, "target_id": target, "family_slug": "bench-press", "aliases": ["flat-dumbbells"]}
    fenced = {"X-Fencing-Tokens": "lease:bench-press=1", "X-Fencing-Ledger": "x"}
    await client.post(
        "/upsertAlias",
        json={"alias_slug": "z", "exercise_id": target},
        headers={**fenced, "X-Fencing-Tokens": "lease:bench-press=9"},
    )
    assert (await client.post("/mergeExercises", json=body, headers=fenced)).status_code == 409
    assert (await exercise(client, source))[0]["status"] == "approved"
    assert (await client.post("/mergeExercises", json=body)).status_code == 200
    assert (await exercise(client, source))[0]["merged_into"] == target
    found = (await client.get("/searchAliases", params={"exercise_ids": source})).json()["documents"]
    assert found == {}
    assert (await client.post("/mergeExercises", json=body)).status_code == 422
    other = {**body, "source_id": PRESS, "family_slug": "elsewhere"}
    assert (await client.post("/mergeExercises", json=other)).status_code == 422


async def test_the_other_functions_do_what_they_say(client: httpx.AsyncClient) -> None:
    async def post(function: str, /, **body: Any) -> httpx.Response:
        return await client.post(f"/{function}", json=body)

    made = await post("ensureExerciseExists", name="Larsen Bench Press (Barbell)", family_slug="bench-press")
    assert made.status_code == 200
    again = (await post("ensureExerciseExists", name="Larsen Bench Press (Barbell)", family_slug="bench-press")).json()
    assert again["created"] is False
    identity = again["id"]
    empty, _etag = await exercise(client, identity)
    assert (await post("approveExercise", id=identity)).status_code == 422
    own = {field: empty[field] for field in ("id", "name", "name_slug", "status")}
    whole = {**(await exercise(client))[0], **own, "variant_key": "variant:larsen"}
    assert (await post("upsertExercise", exercise=whole)).status_code == 200
    assert (await post("approveExercise", id=identity)).status_code == 200
    assert (await exercise(client, identity))[0]["status"] == "approved"
    assert (await post("approveExercise", id="nobody")).status_code == 404
    doc, _etag = await exercise(client)
    await post("upsertExercise", exercise={**doc, "name": "bench press (barbell)"})
    assert (await post("refineExercise", id=PRESS)).status_code == 200
    assert (await exercise(client))[0]["name"] == "Bench Press (Barbell)"
    await post("writeDocuments", documents={f"exercise:{PRESS}": {**doc, "equipment": ["Olympic Barbell"]}})
    assert (await post("backfillNormalizeFamily", family_slug="bench-press")).status_code == 200
    assert (await exercise(client))[0]["equipment"] == ["barbell"]
    assert (await post("normalizeCatalog", limit=5)).json()["next"] == ""
    assert (await post("upsertAlias", alias_slug="bp", exercise_id=PRESS)).status_code == 200
    assert (await post("upsertAlias", alias_slug="bp2", exercise_id="nobody")).status_code == 404
    assert (await post("upsertAlias", alias_slug="bp2")).status_code == 422
    assert (await post("repointAlias", alias_slug="bp", exercise_id=identity)).status_code == 200
    assert (await client.get("/resolveExercise", params={"name": "BP"})).json()["exercise_id"] == identity
    assert (
        await post("deleteAlias", alias_slug="bp", replacement={"alias_slug": "bench-p", "exercise_id": PRESS})
    ).status_code == 200
    assert (await client.get("/resolveExercise", params={"name": "bp"})).status_code == 404
    assert (await post("repointShorthandAliases", family_slug="bench-press")).status_code == 200
    names = (await client.get("/suggestAliases", params={"id": PRESS})).json()["aliases"]
    assert "barbell-bench-press" in names
    found = (await client.get("/suggestFamilyVariant", params={"name": "Spoto Bench Press"})).json()
    assert found == {"family_slug": "bench-press", "variant": "spoto"}
    hits = (await client.get("/searchExercises", params={"q": "incline press"})).json()["hits"]
    assert all("Incline" in hit["name"] for hit in hits)
    assert len(hits) == 2
    page = (await post("backupExercises", limit=200)).json()
    assert {key.split(":")[0] for key in page["documents"]} == {"exercise", "alias", "family"}
    assert (await post("duplicateCatalog", target="copy_1")).json()["documents"] > 20
    assert (await post("duplicateCatalog", target="copy_1")).status_code == 422


async def test_an_idempotency_key_belongs_to_the_token_that_sent_it(client: httpx.AsyncClient) -> None:
    doc, _etag = await exercise(client)
    key = {"Idempotency-Key": "k.1"}
    mine, theirs = ({"exercise": {**doc, "category": category}} for category in ("core", "isolation"))
    assert (await client.post("/upsertExercise", json=mine, headers=key)).status_code == 200
    assert (await client.post("/upsertExercise", json=theirs, headers=key)).status_code == 422
    other = {**key, "Authorization": "Bearer editor"}
    assert (await client.post("/upsertExercise", json=theirs, headers=other)).status_code == 200
    assert (await exercise(client))[0]["category"] == "isolation"
    # Sent again by the first, it is answered, and not done again.
    assert (await client.post("/upsertExercise", json=mine, headers=key)).status_code == 200
    assert (await exercise(client))[0]["category"] == "isolation"


async def test_fencing_tokens_belong_to_a_ledger_and_are_bounded(client: httpx.AsyncClient) -> None:
    def fence(tokens: str, ledger: str | None = "one", who: str = "editor") -> dict[str, str]:
        named = {} if ledger is None else {"X-Fencing-Ledger": ledger}
        return {"X-Fencing-Tokens": tokens, "Authorization": f"Bearer {who}", **named}

    async def post(headers: dict[str, str]) -> int:
        return (await client.post("/fence", json={}, headers=headers)).status_code

    assert await post(fence("lease:bench-press=5")) == 200
    for ledger in (None, "", "x" * 201):
        assert await post(fence("lease:bench-press=5", ledger)) == 400
    # Two names that only differ late are two ledgers.
    long = "x" * 150
    assert [
        await post(fence("lease:bench-press=9", f"{long}1")),
        await post(fence("lease:bench-press=1", f"{long}2")),
    ] == [200, 200]
    # Whoever else has a token could fence off the workers of the ledger for ever.
    doc, _etag = await exercise(client)
    for function, body in (("fence", {}), ("upsertExercise", {"exercise": doc})):
        headers = fence("lease:bench-press=999999999999999999", who="admin")
        answer = await client.post(f"/{function}", json=body, headers=headers)
        assert (answer.status_code, "another token" in answer.text) == (403, True)
    assert await post(fence("lease:bench-press=6")) == 200
    assert await post(fence(",".join(f"lease:f{n}=1" for n in range(200)))) == 200
    assert await post(fence(",".join(f"lease:f{n}=1" for n in range(201)))) == 400
    copied = await client.post("/duplicateCatalog", json={"target": "copy_2"})
    page = await client.post("/backupExercises", json={"limit": 200})
    assert copied.json()["documents"] == len(page.json()["documents"])


async def test_an_upsert_keeps_the_contract_where_it_was_kept(client: httpx.AsyncClient) -> None:
    async def upsert(doc: dict[str, Any]) -> httpx.Response:
        return await client.post("/upsertExercise", json={"exercise": doc})

    doc, etag = await exercise(client)
    for wrong in (
        {"equipment": ["laser"]},
        {"muscles": {**doc["muscles"], "contribution": {"chest": 3}}},
        {"description": "Too short."},
        {"surprise": 1},
        {"status": "merged"},
    ):
        answer = await upsert({**doc, **wrong})
        assert answer.status_code == 422, wrong
        assert next(iter(wrong)).split(".")[0] in answer.text or "merged_into" in answer.text
    assert (await exercise(client)) == (doc, etag)
    bare = {"id": "bench-press-new", "family_slug": "bench-press", "name": "New", "name_slug": "new", "status": "draft"}
    assert "muscles: Field required" in (await upsert(bare)).json()["detail"]
    # What is broken already may be fixed field by field, and does not become worse.
    broken = {**doc, "description": "", "stimulus_tags": []}
    restored = await client.post("/writeDocuments", json={"documents": {f"exercise:{PRESS}": broken}})
    assert restored.status_code == 200
    assert (await upsert({**broken, "stimulus_tags": doc["stimulus_tags"]})).status_code == 200
    assert (await upsert({**broken, "stimulus_tags": doc["stimulus_tags"], "category": "x"})).status_code == 422
    for slug in ("Bench", "bench_press", "弯举"):
        answer = await client.post("/upsertAlias", json={"alias_slug": slug, "exercise_id": PRESS})
        assert (answer.status_code, "alias_slug" in answer.text) == (422, True)


async def test_what_was_read_has_not_moved_when_it_is_written(client: httpx.AsyncClient) -> None:
    """Two merges of one exercise, a merge and an alias to what is merged, an approval beside an edit: one of them wins."""
    ids = [f"bench-press-{name}-bench-press-dumbbell" for name in ("incline", "decline")]
    source = "bench-press-bench-press-dumbbell"
    for _ in range(5):
        body = {"source_id": source, "family_slug": "bench-press"}
        answers = await asyncio.gather(
            *(client.post("/mergeExercises", json={**body, "target_id": target}) for target in ids)
        )
        assert sorted(answer.status_code for answer in answers) in ([200, 409], [200, 422])
        doc, _etag = await exercise(client, source)
        lineages = [source in (await exercise(client, target))[0]["merge_lineage"] for target in ids]
        assert lineages.count(True) == 1
        assert lineages[ids.index(doc["merged_into"])]
        for target in ids:
            other, _tag = await exercise(client, target)
            await client.post("/upsertExercise", json={"exercise": {**other, "merge_lineage": []}})
        await client.post("/upsertExercise", json={"exercise": {**doc, "status": "draft", "merged_into": None}})
        merging = client.post("/mergeExercises", json={**body, "target_id": PRESS})
        naming = client.post("/upsertAlias", json={"alias_slug": "racing", "exercise_id": source})
        await asyncio.gather(merging, naming)
        aliases = (await client.get("/searchAliases", params={"slugs": "racing"})).json()["documents"]
        doc, _etag = await exercise(client, source)
        if doc["status"] == "merged" and aliases:
            assert aliases["alias:racing"]["state"]["exercise_id"] == PRESS
        press, _etag = await exercise(client)
        await client.post("/upsertExercise", json={"exercise": {**press, "merge_lineage": []}})
        await client.post("/writeDocuments", json={"documents": {"alias:racing": None}})
        await client.post("/upsertExercise", json={"exercise": {**doc, "status": "draft", "merged_into": None}})


async def test_nothing_is_made_over_what_is_there_under_another_name(client: httpx.AsyncClient) -> None:
    doc, _etag = await exercise(client)
    await client.post(
        "/upsertExercise", json={"exercise": {**doc, "name": "Flat Press (Barbell)", "name_slug": "flat-press-barbell"}}
    )
    again = await client.post(
        "/ensureExerciseExists", json={"name": "Bench Press (Barbell)", "family_slug": "bench-press"}
    )
    assert again.status_code == 409
    assert (await exercise(client))[0]["description"] == doc["description"]
    merged = {**doc, "status": "merged", "merged_into": "x"}
    await client.post("/upsertExercise", json={"exercise": merged})
    assert (await client.post("/approveExercise", json={"id": PRESS})).status_code == 422
    many = await client.post(
        "/writeDocuments", json={"documents": {"alias:a": None, "alias:b": None}}, headers={"If-Match": '"1"'}
    )
    assert many.status_code == 400
    wrong = {"family_slug": "elsewhere", "items": [{"exercise_id": PRESS, "family_name": "X", "qualified": True}]}
    assert (await client.post("/normalizeCatalogPage", json=wrong)).status_code == 422


async def test_a_lost_answer_is_given_again_as_it_was(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "again"}
    body = {"alias_slug": "press-it", "exercise_id": PRESS}
    first = await client.post("/upsertAlias", json=body, headers=key)
    assert (
        first.json()
        == (await client.post("/upsertAlias", json=body, headers=key)).json()
        == {"written": ["alias:press-it"]}
    )
    key = {"Idempotency-Key": "gone"}
    moved = {"alias_slug": "press-it", "replacement": {"alias_slug": "press-me", "exercise_id": PRESS}}
    answers = [await client.post("/deleteAlias", json=moved, headers=key) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    pages = [
        await client.post("/normalizeCatalog", json={"limit": 1}, headers={"Idempotency-Key": "page"}) for _ in range(2)
    ]
    assert pages[0].json() == pages[1].json()
    assert pages[0].json()["next"] == "family:bench-press"


ODD: list[tuple[str, str, Any]] = [
    ("GET", "/getExercise?id=../../etc/passwd", None),
    ("GET", "/getExercise?id=%00", None),
    ("GET", "/%2e%2e/%2e%2e/etc/passwd", None),
    ("GET", "/getExercises?limit=100000", None),
    ("GET", "/getExercises?after=" + "x" * 5000, None),
    ("POST", "/upsertExercise", {"exercise": {"id": "a/b", "family_slug": "x"}}),
    ("POST", "/upsertExercise", {"exercise": {"id": "x\x00y", "family_slug": "x"}}),
    ("POST", "/upsertExercise", {"exercise": {"id": "ok", "family_slug": "x", "description": "a\x00b"}}),
    ("POST", "/upsertExercise", {"exercise": {"id": 7}}),
    ("POST", "/upsertExercise", {"exercise": []}),
    ("POST", "/upsertExercise", {"exercise": {"id": "ok", "family_slug": "x", "n": 2**70}}),
    ("POST", "/writeDocuments", {"documents": {"secret:x": {}}}),
    ("POST", "/writeDocuments", {"documents": {"exercise:x": {"id": "y"}}}),
    ("POST", "/writeDocuments", {"documents": {}}),
    ("POST", "/writeDocuments", {"documents": {"exercise:x": {"id": "x", "equipment": 5}}}),
    ("POST", "/writeDocuments", {"documents": {"exercise:x": {"id": "x", "family_slug": "y" * 300}}}),
    ("POST", "/deleteAlias", {"alias_slug": "bench-press", "replacement": {"alias_slug": "a/b", "exercise_id": PRESS}}),
    ("POST", "/duplicateCatalog", {"target": "x; DROP TABLE y"}),
    ("POST", "/mergeExercises", {"source_id": "x", "target_id": "x", "family_slug": "x", "extra": 1}),
]


@pytest.mark.parametrize(("method", "path", "body"), ODD)
async def test_odd_requests_are_refused_and_nothing_breaks(
    client: httpx.AsyncClient, method: str, path: str, body: Any
) -> None:
    answer = await client.request(method, path, json=body)
    assert 400 <= answer.status_code < 500, answer.text


@pytest.mark.parametrize(
    "headers",
    [{"X-Fencing-Tokens": "nonsense"}, {"X-Fencing-Tokens": "a=99999999999999999999"}, {"Idempotency-Key": "x" * 500}],
)
async def test_odd_headers_are_refused(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    doc, _etag = await exercise(client)
    assert (await client.post("/upsertExercise", json={"exercise": doc}, headers=headers)).status_code == 400


async def test_bodies_that_are_too_large_or_no_json_are_refused(client: httpx.AsyncClient) -> None:
    big = b'{"exercise": {"id": "x", "family_slug": "y", "d": "' + b"x" * 1_100_000 + b'"}}'
    assert (await client.post("/upsertExercise", content=big)).status_code == 413

    async def trickle() -> AsyncIterator[bytes]:
        for start in range(0, len(big), 100_000):
            yield big[start : start + 100_000]

    assert (await client.post("/upsertExercise", content=trickle())).status_code == 413
    for text in (
        b"{",
        b"\xff\xfe",
        b'{"exercise": NaN}',
        b"[" * 10_000,
        b'{"exercise": {"id": "\\ud800", "family_slug": "x"}}',
        b'{"exercise": {"id": "x", "family_slug": "y"}, "\\ud800": 1}',
    ):
        assert (
            400
            <= (
                await client.post("/upsertExercise", content=text, headers={"Content-Type": "application/json"})
            ).status_code
            < 500
        )


async def test_a_request_that_takes_for_ever_is_ended(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, clean_families("t-bar-row"))
    app = build_server(loaded.settings.backend, TOKENS, max_s=0.3)

    async def stuck() -> None:
        await asyncio.Event().wait()

    app.add_api_route("/stuck", stuck)

    async def dripping() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    headers = {"Authorization": "Bearer admin"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://catalog", headers=headers
    ) as client:
        assert (await client.get("/stuck")).status_code == 504
        answer = await client.post("/upsertExercise", content=dripping())
        assert answer.status_code == 408
        assert "send it again" in answer.json()["detail"]
    app = build_server(loaded.settings.backend, TOKENS)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://catalog", headers=headers
    ) as client:
        assert (await client.get("/listFamilies")).status_code == 200


def test_tokens_are_kept_as_digests(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    token = create_token(file, "ann", "editor")
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_tokens(file) == {digest_token(token): TokenHolder("ann", "editor")}
    with pytest.raises(Exception, match="already"):
        create_token(file, "ann", "reader")
    for name in ("é", "a b", "", "a.b", 'x"'):
        with pytest.raises(Exception, match="plain name"):
            create_token(file, name, "reader")
    assert [holder.name for holder in read_tokens(file).values()] == ["ann"]


@pytest.mark.parametrize(
    ("function", "body"),
    [
        ("backfillNormalizeFamily", {"family_slug": "bench-press"}),
        ("normalizeCatalog", {"limit": 5}),
        ("refineExercise", {"id": PRESS}),
    ],
)
async def test_the_server_renames_nothing_without_keeping_the_old_name(
    client: httpx.AsyncClient, function: str, body: dict[str, Any]
) -> None:
    doc, _etag = await exercise(client)
    renamed = {**doc, "name": "Barbell Bench Press", "name_slug": "barbell-bench-press"}
    await client.post(
        "/writeDocuments", json={"documents": {f"exercise:{PRESS}": renamed, "alias:barbell-bench-press": None}}
    )
    assert (await client.post(f"/{function}", json=body)).status_code == 200
    assert (await exercise(client))[0]["name_slug"] == "bench-press-barbell"
    found = await client.get("/resolveExercise", params={"name": "Barbell Bench Press"})
    assert (found.status_code, found.json().get("exercise_id")) == (200, PRESS)


@pytest.mark.parametrize("holder", ["alias", "namesake"])
async def test_a_name_that_leads_elsewhere_too_stays_where_the_server_normalises(
    client: httpx.AsyncClient, holder: str
) -> None:
    """It could not become an alias, so the exercise would be found by it no more."""
    doc, _etag = await exercise(client)
    renamed = {**doc, "name": "Barbell Bench Press", "name_slug": "barbell-bench-press", "category": "Compound"}
    other: dict[str, Any] = {"alias_slug": "barbell-bench-press", "family_slug": "bench-press"}
    if holder == "namesake":
        other = {**renamed, "id": "x", "family_slug": "elsewhere"}
    key = "alias:barbell-bench-press" if holder == "alias" else "exercise:x"
    documents = {"alias:barbell-bench-press": None, f"exercise:{PRESS}": renamed, key: other}
    assert (await client.post("/writeDocuments", json={"documents": documents})).status_code == 200
    assert (await client.post("/backfillNormalizeFamily", json={"family_slug": "bench-press"})).status_code == 200
    after = (await exercise(client))[0]
    assert after["name_slug"] == "barbell-bench-press"
    assert after["category"] == "compound"
