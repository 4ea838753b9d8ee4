"""A worker of the adapters' protocol, for tests: what it does stands in the sub-query."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request


def ask(there: dict, text: str, token: str | None = None) -> str:
    body = json.dumps(
        {
            "model": there["model"],
            "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": text}],
        }
    )
    request = urllib.request.Request(
        f"{there['url']}/chat/completions",
        body.encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {token or there['token']}"},
    )
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


order = json.loads(sys.stdin.readline())
task = order["subquery"]
if task == "sleep":
    time.sleep(60)
elif task == "die":
    sys.exit("a library is missing")
elif task == "noise":
    print("this is no JSON")
elif task == "deep":
    print("[" * 200_000)
elif task == "environment":
    print(json.dumps({"text": ",".join(sorted(os.environ)), "value": os.environ["HOME"]}))
elif task == "sources":
    print(json.dumps({"text": "seen", "value": order["sources"]}))
elif task == "refused":
    try:
        ask(order["endpoint"], "hello", "wrong")
    except urllib.error.HTTPError as error:
        print(json.dumps({"text": str(error.code)}))
elif task == "twice":
    try:
        said = [ask(order["endpoint"], f"question {i}") for i in range(2)]
        print(json.dumps({"text": "; ".join(said), "sources": ["teams", "nowhere"], "confidence": 0.5}))
    except urllib.error.HTTPError as error:
        print(json.dumps({"text": "", "problem": f"{error.code}: {json.load(error)['error']['code']}"}))
