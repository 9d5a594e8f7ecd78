#!/usr/bin/env python3
"""A verifier for Millrace: says what a response is worth. Standard library only.

    python3 verify.py                 answers lines on its input, one for each (reward.command)
    python3 verify.py --http 8070     answers POST on 127.0.0.1:8070 (reward.url)

Replace verify() by your own; the rest may stay.
"""
import argparse
import http.server
import json
import re
import sys


def verify(prompt, response, metadata):
    """The default task: each digit of the prompt, plus one. Returns the reward and what it is made of."""
    digits = re.findall(r"\d", prompt)
    said = re.findall(r"<[a-z]+>|.", response)  # a symbol that is no digit, such as <sep>, takes a place too
    right = sum(r == str((int(d) + 1) % 10) for d, r in zip(digits, said))
    return right / max(1, len(digits)), {"right": right}


def answer(question):
    try:
        reward, components = verify(question["prompt"], question["response"], question.get("metadata"))
        return {"id": question["id"], "reward": reward, "reward_components": components}
    except Exception as e:  # costs this rollout, and no other
        return {"id": question["id"], "error": f"{type(e).__name__}: {e}"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(question)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *ignored):
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, metavar="PORT")
    port = parser.parse_args().http
    if port is not None:
        http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
    for line in sys.stdin:  # print for people goes to stderr: stdout is for answers
        print(json.dumps(answer(json.loads(line))), flush=True)
