"""A generator to run with `millrace generate` or instead of it: the environment fixed-answer, tasks inc and sort. For torch or, as last
argument, numpy.

    python3 clients/python/examples/generate.py kafka:9092 my-run python-1
"""
import importlib
import sys
import numpy as np
import millrace_rl


def sample(model, prompt, count, length, temperature):
    """Tokens and log-probs, [count, length]; the model is called as transformers' are."""
    tokens, log_probs = np.tile(prompt.astype(np.int64), (count, 1)), []
    for _ in range(length):
        logits = np.asarray(model(tokens).logits)[:, -1] / np.float32(temperature)
        log_all = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        drawn = (log_all + np.random.gumbel(size=log_all.shape)).argmax(axis=1)[:, None]
        tokens, log_probs = np.append(tokens, drawn, 1), [*log_probs, np.take_along_axis(log_all, drawn, 1)]
    return tokens[:, len(prompt):], np.concatenate(log_probs, 1)


def main(bootstrap, run, name, library="torch"):
    run = millrace_rl.Run(bootstrap, run, wait_s=60)
    model = importlib.import_module({"torch": "millrace_rl.torch", "numpy": "numpy_decoder"}[library]).Decoder(run.shape)
    if library == "torch":
        model.requires_grad_(False)
    with run.generator(name, on_version=lambda version, weights: model.load(weights)) as generator:
        for requests in generator.requests():
            for request in requests:
                answer = [3 + int(digit) for digit in request.environment_state]  # token 3 is the digit 0
                tokens, log_probs = sample(model, request.prompt_tokens, request.samples, len(answer), request.temperature)
                for i, response in enumerate(tokens):
                    generator.submit(request, i, response, log_probs[i], (response == answer).mean(), finish_reason="ENVIRONMENT")
            print(f"version {generator.version}  rollouts {sum(request.samples for request in requests)}", flush=True)


try:
    main(*sys.argv[1:])
except millrace_rl.MillraceError as e:
    sys.exit(f"{type(e).__name__}: {e}")
