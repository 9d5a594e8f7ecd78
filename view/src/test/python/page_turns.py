"""What the page costs a run, by looking and not looking at it in turn: page_turns.py RUN_DIR [TURNS [SECONDS]]

Starts ./millrace train --view, asks for SECONDS what an open page asks and scrapes the meters, then asks nothing for as long, and so on. Every time that
somebody looks is held against the mean of those before and after. Linux alone: it reads /proc.
"""

import http.client
import statistics
import sys
import time
import urllib.request

from page_cost import OF_THE_PAGE, Run, start

FROM_STEP = 60
CHANGE_SECONDS = 9  # a run is read for some seconds after the last question
METRICS_PORT = 9791


class Turns(Run):
    def __init__(self, folder, seconds):
        self.looks = False
        self.came = []
        super().__init__(folder, 10**6, ["--metrics-port", str(METRICS_PORT)], seconds)

    def at_step(self, step):
        self.came.append((time.monotonic(), step))

    def ask(self, question):
        return super().ask(question) if self.looks else b""

    def follow(self):
        last, told = -1, 0
        while self.goes_on():
            if not self.looks:
                time.sleep(0.05)
                continue
            try:
                with urllib.request.urlopen(self.page + "events", timeout=60) as events:
                    for line in events:
                        if not self.looks:
                            break
                        if line.startswith(b"event: steps"):
                            last, told = self.answer(last, told)
            except (OSError, http.client.HTTPException):
                pass  # the run has ended

    def scrape(self):
        while self.goes_on():
            time.sleep(5)
            if self.looks:
                try:
                    urllib.request.urlopen("http://127.0.0.1:%d/metrics" % METRICS_PORT, timeout=20).read()
                except OSError:
                    pass

    def measured(self, seconds):
        """Steps a second, and seconds of processor time a step by thread."""
        time.sleep(CHANGE_SECONDS)
        begun, before = time.monotonic(), self.threads()
        time.sleep(seconds - CHANGE_SECONDS)
        ended, after = time.monotonic(), self.threads()
        came = [each for each in self.came if begun <= each[0] <= ended]
        rate = (came[-1][1] - came[0][1]) / (came[-1][0] - came[0][0])
        spent = {}
        for task, (name, total) in after.items():
            spent[name] = spent.get(name, 0) + total - before.get(task, (name, 0))[1]
        steps = rate * (ended - begun)
        return rate, {name: time_of / steps for name, time_of in spent.items()}


def page(spent):
    return sum(each for name, each in spent.items() if name.startswith(OF_THE_PAGE))


def said(what, shares):
    ordered = sorted(shares)
    print("%s: mean %+.2f %% +- %.2f, median %+.2f, middle half %+.2f to %+.2f" % (
        what, 100 * statistics.mean(shares), 100 * statistics.stdev(shares) / len(shares) ** 0.5, 100 * statistics.median(shares),
        100 * ordered[len(shares) // 4], 100 * ordered[3 * len(shares) // 4]))


def main(folder, turns, seconds):
    if turns < 2 or seconds <= CHANGE_SECONDS:
        sys.exit("TURNS must be at least 2 and SECONDS more than %d: %d, %g" % (CHANGE_SECONDS, turns, seconds))
    run = Turns(folder, int(2 * (turns + 1) * seconds) + 300)
    run.await_step(FROM_STEP)
    start(run.follow)
    start(run.every, 4, "now")
    start(run.every, 12, "lags")
    start(run.scrape)
    rows = []
    for turn in range(2 * turns + 1):
        run.looks = turn % 2 == 1
        rows.append(run.measured(seconds))
        rate, spent = rows[-1]
        print("%s %.2f steps/s, %.1f ms of processor time a step, %.2f of it the page's" % (
            "seen  " if run.looks else "unseen", rate, 1e3 * sum(spent.values()), 1e3 * page(spent)), flush=True)
    rates, times, pages, threads = [], [], [], {}
    for before, seen, after in zip(rows[::2], rows[1::2], rows[2::2]):
        whole = (sum(before[1].values()) + sum(after[1].values())) / 2
        rates.append(2 * seen[0] / (before[0] + after[0]) - 1)
        times.append(sum(seen[1].values()) / whole - 1)
        pages.append((page(seen[1]) - (page(before[1]) + page(after[1])) / 2) / whole)
        for name in {*before[1], *seen[1], *after[1]}:
            more = seen[1].get(name, 0) - (before[1].get(name, 0) + after[1].get(name, 0)) / 2
            threads.setdefault(name, []).append(more / whole)
    said("steps a second", rates)
    said("processor time a step", times)
    said("the page's threads, of all processor time", pages)
    for name, shares in sorted(threads.items(), key=lambda each: -abs(sum(each[1])))[:12]:
        print("  %-16s %+.2f %%" % (name, 100 * sum(shares) / turns))
    run.process.terminate()
    run.process.wait()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7, float(sys.argv[3]) if len(sys.argv) > 3 else 26)
