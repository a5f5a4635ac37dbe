import time, json
from interlock.answers.grounding import ground, Source, default_vocabulary
from interlock.answers.grounding import match as M
v=default_vocabulary()
rows=[{"id":f"item-{i:05}","name":f"Thing {i}","count":i*7%991,"price":round(i*1.37,2),"status":"open" if i%3 else "closed","note":"short text about it"} for i in range(9000)]
src=[Source("record 1",{"value":{"rows":rows}})]
print("evidence chars",len(json.dumps(rows)))
draft="".join(f"Thing {i} has a count of {i*7%991} and costs ${round(i*1.37,2)}. " for i in range(330))
print("draft",len(draft))
for name,d,s in (("small",draft[:300],src[:0]),("draft only",draft,[]),("evidence only","It is 7.",src),("both",draft,src)):
    t=time.process_time(); g=ground(d,s); print(name,round(time.process_time()-t,3),len(g.claims),len(g.unsupported),g.unchecked[:80])
