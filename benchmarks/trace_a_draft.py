import asyncio, sys, os
sys.path.insert(0,"/tmp/wt-core")
from pathlib import Path
from benchmarks.drafts import *
from benchmarks.drafts import _policy,_Replay
from interlock.answers.grounding import match as M, default_vocabulary
from interlock.answers.grounding.normal_text import normalise
from interlock.answers.grounding.meaning import meaning_of
from interlock.answers.grounding.evidence import read_evidence, Source
from interlock.answers.staleness import mark_stale
async def main(dom,sid,frag):
    d=Domain(Path("/tmp/wt-core/benchmarks/drafts")/dom); sc=d.scenarios[sid]; calls=sc["calls"]; r=_Replay(calls)
    tools=[r.make_tool(o) for o in d.tools]
    async with Runtime.open("memory://", policy=parse_policy(_policy(calls)), tools=tools) as rt:
        async with Answers(rt).turn(sc["question"], agent=d.agent(), requires=calls[0]["tool"], mode="dry_run" if any(c["status"]=="planned" for c in calls) else "apply") as turn:
            for n,c in enumerate(calls): await turn.propose([Proposal(tool=c["tool"], arguments=c["args"], id=f"c{n}")])
            h=await turn.recall()
            v=default_vocabulary(); ms={t.name:meaning_of(t) for t in tools}
            src=[*mark_stale(h.sources,h.calls,v.words),*h.asked,*previews(calls),Source("question",sc["question"],echo=True)]
            for x in d.drafts:
                if x["scenario"]==sid and frag in x["text"]:
                    text=normalise(x["text"]).text; said=v.claims(text); ev=read_evidence(src,v,10**6,ms)
                    t=M._Tracer(text,said,ev,v,ms)
                    for m in t._mentions: print("M",repr(text[m.start:m.end]),dict(m.names),"soft" if m.soft else "")
                    for n,c in enumerate(said):
                        b=t._binder.bind(n)
                        print("C",c.kind,repr(c.text),[{k:set(w) for k,w in tp.items()} for tp in b.topics], "noun",b.noun_text)
                        for f,how in t._candidates(c): print("     ",how,f.place.path,f.source,"fit",b.fit(f.place.row),"speaks",round(b.speaks_of(f),2),"stale" if f.stale else "", "use",t._may_be_used(f,c,b), {k:set(v) for rr in f.place.row.chain() for k,v in rr.names.items()})
                    for s in t.run(): print("  =",s.kind,s.text,s.how,s.why,s.path)
asyncio.run(main(*sys.argv[1:]))
