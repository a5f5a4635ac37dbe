"""tune.py FOLDER [kind|all|sum] [n]: fast look at drafts."""
import asyncio, sys, collections, os
sys.path.insert(0, os.environ.get("WT","/tmp/wt-core"))
from pathlib import Path
from benchmarks.drafts import *
from benchmarks.drafts import _policy,_Replay
from interlock.answers.asked import ModelState
from interlock.answers.ladder import next_step, Pass, Stop
async def main(folder, kind, only):
    tot=collections.defaultdict(collections.Counter)
    for d in read_domains(Path(folder)):
        by=collections.defaultdict(list)
        for x in d.drafts: by[x["scenario"]].append(x)
        for sid, xs in by.items():
            sc=d.scenarios[sid]; calls=sc["calls"]; replay=_Replay(calls)
            tools=[replay.make_tool(o) for o in d.tools]
            async with Runtime.open("memory://", policy=parse_policy(_policy(calls)), tools=tools) as rt:
                reads={o["name"] for o in d.tools if o["effect"]=="read"}
                done=[c["tool"] for c in calls if c["tool"] in reads and c["status"]=="ok"]
                mode="dry_run" if any(c["status"]=="planned" for c in calls) else "apply"
                async with Answers(rt).turn(sc["question"], agent=d.agent(), requires=need(done[-1] if done else calls[-1]["tool"],no_data=True), mode=mode, given=previews(calls)) as turn:
                    for n,c in enumerate(calls):
                        await turn.propose([Proposal(tool=c["tool"], arguments=c["args"], id=f"c{n}")])
                    h=await turn.recall()
                    for x in xs:
                        got=await turn._state(h, x["text"], ModelState("",False,""))
                        st=got[0]
                        step=next_step(st)
                        left=isinstance(step,Pass)
                        wait=st.ticket is not None or isinstance(step,Stop) or (st.missing is not None and not done)
                        end="waits" if wait else "left" if left else "held"
                        tot[x["kind"]][end]+=1
                        wrong=(end=="held") if x["kind"]=="right" else end=="left"
                        if wrong and kind in (x["kind"],"all") and (not only or only in (sid,d.name)):
                            print(f"[{d.name} {sid}] {x['kind']}: {x['text']!r}" + (f"  WHY {x.get('why')}" if 'why' in x else ''))
                            if x["kind"]!="right" and os.environ.get("SHOW"):
                                for u in got[1].claims: print("      +",u.kind,repr(u.text),u.how,u.source,u.path)
                            if x["kind"]=="right":
                                for u in got[1].unsupported: print("      -",u.kind,repr(u.text),u.why)
                                for u in getattr(st,"disagreements",()) or (): print("      =",u)
                                print("      ", type(step).__name__, getattr(step,"reason","")or"", "IRR" if st.irrelevant else "", st.unchecked)
    for k,c in sorted(tot.items(), key=lambda i:i[0]!="right"): print(f"{k:16} {c.total():5} left {c['left']:4} held {c['held']:4} waits {c['waits']:4}")
    w=sum((c for k,c in tot.items() if k!="right"), collections.Counter()); r=tot["right"]
    print(f"right held {r['held']}/{r.total()}, wrong left {w['left']}/{w.total()}")
a=sys.argv[1:]
asyncio.run(main(a[0], a[1] if len(a)>1 else "", a[2] if len(a)>2 else ""))
