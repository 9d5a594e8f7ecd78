"""How long until the newest steps of a run are on the page: newest_steps.py RUN_DIR INDEX_DIR [whole]

Starts ./millrace view and asks for the newest steps, as the page does first, until there are some; with 'whole' also until the index is whole.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request


def main(run, index, until_whole):
    print("load average %.1f" % os.getloadavg()[0])
    begun = time.monotonic()
    view = subprocess.Popen(
        ["./millrace", "view", "--run-dir", run, "--port", "0", "--index", index], stdout=subprocess.PIPE, text=True
    )
    try:
        line = view.stdout.readline()
        told(begun, line.strip())
        page = re.search(r"(http://\S+?/)#", line).group(1) + "api/runs/" + os.path.basename(run) + "/"
        steps = []
        while not steps:
            steps = asked(page, "steps?newest=1").get("steps", [])
            time.sleep(0.02)
        told(begun, "newest steps: %d, the last of batch %d" % (len(steps), steps[-1]["batch"]))
        while until_whole and not asked(page, "facts")["index"]["whole"]:
            time.sleep(0.2)
        if until_whole:
            told(begun, "the index is whole, with %d steps" % asked(page, "steps")["all"])
            asking = time.monotonic()
            rows = asked(page, "rollouts?state=masked&sort=reward&down=1&limit=50")
            told(asking, "for 50 of %d masked rollouts" % rows["count"])
    finally:
        view.terminate()
        view.wait()


def asked(page, question):
    try:
        with urllib.request.urlopen(page + question, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        return json.load(refused)


def told(since, what):
    print("%.2f s  %s" % (time.monotonic() - since, what))


if __name__ == "__main__":
    main(os.path.normpath(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["whole"])
