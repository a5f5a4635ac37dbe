import sys; sys.path.insert(0,'/tmp/wt-core/benchmarks')
import grounding as g
from interlock.answers.grounding import Source, ground
n=0
for item in g.rows():
    src=[Source(e["id"], e["value"]) for e in item["evidence"]]
    gr=ground(item["answer"],[*src,Source("question",item["question"],echo=True)])
    held=gr.unsupported; wanted=item["unsupported"]
    if bool(held) and not wanted:
        n+=1; print(f"[{item['kind']}] {item['answer'][:260]!r}")
        for u in held: print("     -",u.kind,repr(u.text),u.why)
        if "-v" in sys.argv: print("     ", str(item["evidence"])[:500])
    if wanted and not held: print(f"LEFT [{item['kind']}] {item['answer'][:260]!r} WANTED {wanted}")
print(n)
