#!/usr/bin/env python3
"""An environment for Millrace: a number to be guessed, in several turns. Standard library only.

    python3 guess.py                 answers lines on its input, one for each (task.environment.command)
    python3 guess.py --http 8071     answers POST on 127.0.0.1:8071 (task.environment.url)

Replace Game by your own; the rest may stay. A question that is asked again has its old id and gets its old answer: a turn whose answer was
lost is not taken twice.
"""
import argparse
import http.server
import json
import re
import sys
import threading


class Game:
    """One episode. metadata is the row of your data without its prompt: here {"number": 42}."""

    def __init__(self, prompt, metadata):
        self.number = int(metadata["number"])

    def opening(self):
        return ""  # what the policy reads before its first turn, behind the prompt

    def step(self, text):
        """The policy's turn: what it reads next, the reward of the turn, and whether the game is over."""
        found = re.search(r"\d+", text)
        if not found:
            return " Say a number.\n", 0.0, False
        guess = int(found.group())
        if guess == self.number:
            return " Right.\n", 1.0, True
        return " higher\n" if guess < self.number else " lower\n", 0.0, False

    def state(self):
        """What it is worth where the token limit ended it; None for the rewards of its turns so far."""
        return None


class Episode:
    def __init__(self, game):
        self.game, self.steps, self.answers, self.lock = game, 0, {}, threading.Lock()


episodes = {}
episodes_lock = threading.Lock()


def answer(question):
    try:
        return {"id": question["id"], **handle(question)}
    except Exception as e:  # costs this rollout, and no other
        return {"id": question["id"], "error": f"{type(e).__name__}: {e}"}


def handle(question):
    op, name = question["op"], question["episode"]
    if op == "close":
        with episodes_lock:
            episodes.pop(name, None)
        return {}
    with episodes_lock:
        if op == "reset" and name not in episodes:
            episodes[name] = Episode(Game(question["prompt"], question["metadata"]))
        if name not in episodes:
            raise KeyError(f"there is no episode {name}; was this environment started again?")
        episode = episodes[name]
    with episode.lock:
        if question["id"] not in episode.answers:
            episode.answers[question["id"]] = play(episode, op, question)
        return episode.answers[question["id"]]


def play(episode, op, question):
    if op == "reset":
        return {"step": 0, "text": episode.game.opening()}
    if op == "step":
        text, reward, done = episode.game.step(question["text"])
        episode.steps += 1
        return {"step": episode.steps, "text": text, "reward": reward, "done": done}
    if op == "state":
        return {"step": episode.steps, "reward": episode.game.state()}
    raise ValueError(f"unknown op {op}")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.dumps(answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))).encode()
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
