"""The page: a conversation, what happens in it while it happens, and what is remembered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from jinja2 import Environment, PackageLoader, select_autoescape
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from interlock.errors import ConfigError, InterlockError
from interlock_argo.page.desk import Desk, Work
from interlock_argo.page.views import drop_running, is_address, say_time, show_exchange, show_work
from interlock_argo.talk import Talk

_LARGEST_FORM = 100_000
_LONGEST_QUESTION, _LONGEST_NAME = 10_000, 200
_MOST_DIGITS = 9
_NEWEST = 30
_HITS = 8
_REASON = "forgotten on the page"


class TalkPage:
    """The handlers of one server."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._memory = talk.opened.home
        self.desk = Desk(talk)
        self._templates = Environment(loader=PackageLoader("interlock_argo.page"), autoescape=select_autoescape())
        self._templates.filters.update(is_address=is_address, say_time=say_time)

    def build(self) -> Starlette:
        """What a server serves."""
        return Starlette(
            routes=[
                Route("/", self.begin),
                Route("/talk", self.talk),
                Route("/ask", self.ask, methods=["POST"]),
                Route("/work/{number}", self.follow),
                Route("/work/{number}/stop", self.stop, methods=["POST"]),
                Route("/memory", self.memory),
                Route("/memory/{document}", self.document),
                Route("/memory/{document}/forget", self.forget, methods=["POST"]),
                Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
            ],
            exception_handlers={
                InterlockError: self._say_problem,
                404: self._say_missing,
                ClientDisconnect: _say_nothing,
            },
        )

    async def begin(self, _request: Request) -> Response:
        """A session of its own."""
        return _go_to(self._talk.name_session())

    async def talk(self, request: Request) -> Response:
        """A conversation as it stands."""
        name = request.query_params.get("session", "")
        if not name:
            return await self.begin(request)
        exchanges = await self._talk.answers.session(name).exchanges(most=_NEWEST)
        at_work = self.desk.at_work(name)  # now: what ended meanwhile is among the others
        exchanges = drop_running(exchanges, at_work)
        return self._html(
            "talk.html",
            session=name,
            shown=[show_exchange(one) for one in exchanges],
            most=_NEWEST,
            at_work=at_work,
            recent=await self._talk.answers.sessions(most=_NEWEST),
            works=self._talk.ways_of_working,
            model=self._talk.model.name,
        )

    async def ask(self, request: Request) -> Response:
        """A question: it is worked on from now, and the answer is where `follow` tells of it."""
        form = await _read_form(request)
        session, question = form.get("session", ""), form.get("question", "").strip()
        if not session or not question:
            return self._problem(request, "A question needs words.", 422)
        if len(question) > _LONGEST_QUESTION:
            return self._problem(request, f"A question has at most {_LONGEST_QUESTION:,} characters.", 422)
        if form.get("work", "") not in ("", *self._talk.ways_of_working):
            return self._problem(request, "There is no such way of working.", 422)
        if len(session) > _LONGEST_NAME:
            return self._problem(request, f"The name of a session has at most {_LONGEST_NAME} characters.", 422)
        self._talk.answers.session(session)  # which refuses a name that cannot be written down
        work = self.desk.begin(session, question, form.get("work", ""))
        if work is None:
            return self._problem(request, "This session is still at the question before; stop that, or wait.", 409)
        if "hx-request" in request.headers:
            return self._html("work.html", work=work, is_new=True)
        return _go_to(session)

    async def follow(self, request: Request) -> Response:
        """What happens with a question, as events; the last one is the answer."""
        work = self.desk.find(request.path_params["number"])
        if work is None:
            return StreamingResponse(self._past(), media_type="text/event-stream")
        seen = request.headers.get("last-event-id", "0")
        is_number = seen.isdecimal() and len(seen) <= _MOST_DIGITS
        return StreamingResponse(self._events(work, int(seen) if is_number else 0), media_type="text/event-stream")

    async def _past(self) -> AsyncIterator[str]:
        text = "This is no longer being worked on; load the page again to see what came of it."
        yield _event("result", self._render("problem.html", text=text), 0)

    async def _events(self, work: Work, after: int) -> AsyncIterator[str]:
        async for number, (kind, text) in work.follow(after):
            yield _event(kind, self._render("part.html", kind=kind, text=text), number)
        yield _event("result", self._render("exchange.html", one=show_work(work)), len(work.parts) + 1)

    async def stop(self, request: Request) -> Response:
        """No more work on a question."""
        work = self.desk.find(request.path_params["number"])
        if work is None:
            return self._problem(request, "That question is not being worked on.", 404)
        work.stop()
        await work.wait()
        return Response(status_code=204) if "hx-request" in request.headers else _go_to(work.session)

    async def memory(self, request: Request) -> Response:
        """What is remembered: found by words, or what came in last."""
        query = request.query_params.get("q", "").strip()
        memory = self._memory.memory
        found = await memory.search(query, top_k=_HITS) if query else None
        newest = () if query else await memory.documents(most=_NEWEST)
        return self._html("memory.html", query=query, found=found, newest=newest, state=await memory.state())

    async def document(self, request: Request) -> Response:
        """One document."""
        found = await self._memory.memory.documents(document=request.path_params["document"])
        if not found:
            return self._problem(
                request, "There is no such document; it may have been forgotten, or its time was up.", 404
            )
        return self._html("document.html", one=found[0])

    async def forget(self, request: Request) -> Response:
        """Remove a document for good, as `interlock argo memory forget` does."""
        document = request.path_params["document"]
        gone = await self._memory.memory.forget(document=document, reason=_REASON, runtime=self._talk.opened.runtime)
        if not gone.documents and not gone.kept:
            return self._problem(request, "There is no such document.", 404)
        return RedirectResponse("/memory", 303)

    async def _say_problem(self, request: Request, error: Exception) -> Response:
        return self._problem(request, str(error), 422)

    async def _say_missing(self, request: Request, _error: Exception) -> Response:
        return self._problem(request, "There is no such page.", 404)

    def _problem(self, request: Request, text: str, status: int) -> Response:
        """Within the conversation, or as a page with a way back."""
        whole = "hx-request" not in request.headers
        return HTMLResponse(self._render("problem_page.html" if whole else "problem.html", text=text), status)

    def _html(self, template: str, **values: Any) -> Response:
        return HTMLResponse(self._render(template, **values))

    def _render(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(**values)


async def _say_nothing(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # there is nobody to read it


def _go_to(session: str) -> Response:
    return RedirectResponse(f"/talk?session={quote(session, safe='')}", 303)


async def _read_form(request: Request) -> dict[str, str]:
    """The fields of a form, each once."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LARGEST_FORM:
            raise ConfigError(f"a form of more than {_LARGEST_FORM:,} bytes is not read; ask in fewer words")
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}


def _event(kind: str, html: str, number: int) -> str:
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"id: {number}\nevent: {kind}\n{lines}\n"
