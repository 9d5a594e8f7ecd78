"""Compares the published adapters of a run, loaded into PEFT, with its merged versions, loaded into transformers.

    ./millrace model publish --run-dir runs/lora --adapter --to adapters
    ./millrace model publish --run-dir runs/lora --from-version 0 --dtype float32 --to merged
    PYTHONPATH=clients/python python3 policy/src/test/python/peft_check.py adapters merged

Needs torch and peft. Exits with 1 if a log-prob of an adapter is off by more than 1e-4 nats, or if there is no adapter to compare.
"""
import pathlib
import sys

import peft
import torch
import transformers

from millrace_rl.published import PublishedVersions

TOLERANCE = 1e-4


def model(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


adapters, merged = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
versions, compared = PublishedVersions(merged), model(merged / "0").eval()
tokens = torch.arange(2, 2 + min(64, compared.config.vocab_size - 2))[None]
worst = -1.0
for version in sorted(int(each.stem) for each in adapters.glob("[0-9]*.json")):
    compared.load_state_dict({name: torch.tensor(tensor) for name, tensor in versions.load(version).items()}, strict=False)
    adapted = peft.PeftModel.from_pretrained(model(merged / "0"), adapters / str(version)).eval()
    with torch.no_grad():
        difference = (compared(tokens).logits.log_softmax(-1) - adapted(tokens).logits.log_softmax(-1)).abs().max().item()
        with adapted.disable_adapter():
            learned = (compared(tokens).logits.log_softmax(-1) - adapted(tokens).logits.log_softmax(-1)).abs().max().item()
    print(f"version {version}: log-probs differ by at most {difference:.1e} nats, without the adapter by {learned:.1e}")
    worst = max(worst, difference)
sys.exit(0 if 0 <= worst <= TOLERANCE else 1)
