"""What the page costs a live run: page_cost.py RUN_DIR [STEPS]

Starts ./millrace train --view, asks what an open page asks, and says how much processor time the page's threads took between step 20 and the end.
Linux alone: it reads /proc.
"""

import http.client
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request

OF_THE_PAGE = ("view-", "HTTP-Disp", "kafka-admin")
FROM_STEP = 20


class Run:
    def __init__(self, folder, steps, options=(), seconds=300):
        self.step = 0
        self.page = None
        self.process = subprocess.Popen(
            ["./millrace", "train", "--plain", "--view", "0", "--run-dir", folder, "--max-steps", str(steps + 20)]
            + ["--set", "goal.mean_reward=0", "--set", "goal.max_seconds=%d" % seconds] + list(options),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        start(self.read)

    def read(self):
        for line in self.process.stdout:
            page = re.search(r"view at (http://\S+?/)#/(\S+?)/now", line)
            step = re.search(r"  step (\d+)  ", line)
            self.page = page.group(1) + "api/runs/" + page.group(2) + "/" if page else self.page
            if step:
                self.step = int(step.group(1))
                self.at_step(self.step)

    def at_step(self, step):
        """Hears of each step."""

    def goes_on(self):
        return self.process.poll() is None

    def await_step(self, least):
        while self.goes_on() and (self.page is None or self.step < least):
            time.sleep(0.1)
        if not self.goes_on():
            sys.exit("the run ended before step %d" % least)

    def ask(self, question):
        try:
            with urllib.request.urlopen(self.page + question, timeout=60) as answer:
                return answer.read()
        except OSError:
            return b""  # the run has ended

    def follow(self):
        """As the page does: new steps when there are some, what is drawn of the index every fourth time."""
        last, told = -1, 0
        try:
            with urllib.request.urlopen(self.page + "events", timeout=60) as events:
                for line in events:
                    if line.startswith(b"event: steps"):
                        last, told = self.answer(last, told)
        except (OSError, http.client.HTTPException):
            pass  # the run has ended

    def answer(self, last, told):
        batches = re.findall(rb'"batch":(\d+)', self.ask("steps?after=%d" % last))
        if told % 4 == 3:
            self.ask("evaluations")
            self.ask("staleness")
        return int(batches[-1]) if batches else last, told + 1

    def every(self, seconds, question):
        while self.goes_on():
            time.sleep(seconds)
            self.ask(question)

    def threads(self):
        """Processor time by thread, in seconds."""
        times = {}
        tasks = "/proc/%d/task" % self.process.pid
        for task in os.listdir(tasks):
            try:
                with open(os.path.join(tasks, task, "stat")) as stat:
                    name, rest = re.match(r"\d+ \((.*)\) (.*)", stat.read()).groups()
            except OSError:
                continue  # the thread has ended
            fields = rest.split()
            times[task] = (name, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))
        return times


def start(what, *arguments):
    threading.Thread(target=what, args=arguments, daemon=True).start()


def main(folder, steps):
    run = Run(folder, steps)
    run.await_step(0)
    start(run.follow)
    start(run.every, 4, "now")
    start(run.every, 12, "lags")
    run.await_step(FROM_STEP)
    before, began, first = run.threads(), time.monotonic(), run.step
    run.await_step(steps)
    after, seconds = run.threads(), time.monotonic() - began
    spent = {}
    for task, (name, total) in after.items():
        spent[name] = spent.get(name, 0) + total - before.get(task, (name, 0))[1]
    page = {name: time for name, time in spent.items() if name.startswith(OF_THE_PAGE)}
    whole = sum(spent.values())
    print("load average %.1f; steps %d to %d in %.1f s" % (os.getloadavg()[0], first, run.step, seconds))
    print("process %.1f s of processor time, the page's threads %.2f s: %.2f %%" % (whole, sum(page.values()), 100 * sum(page.values()) / whole))
    for name, time_of in sorted(page.items(), key=lambda each: -each[1]):
        print("  %-16s %.2f s" % (name, time_of))
    run.process.terminate()
    run.process.wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 140)
