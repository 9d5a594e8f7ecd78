package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;

/** Samples from {@code softmax(logits / temperature)} itself. */
final class PlainChoice implements TokenChoice {

    @Override
    public Chosen choose(Operators ops, Value logits, Value forced, Value uniform) {
        Value logProbs = ops.logSoftmax(logits, -1);
        Value probs = ops.exp(logProbs);
        Value wanted = ops.unsqueeze(forced, 1);
        Value sampled = TokenChoice.inverseCdf(ops, probs, uniform);
        Value token = ops.where(ops.less(wanted, ops.graph().scalar(0L)), sampled, wanted);
        Value logProb = TokenChoice.pick(ops, logProbs, token);
        return new Chosen(
                ops.squeeze(token, 1), logProb, ops.identity(logProb), TokenChoice.entropy(ops, probs, logProbs));
    }
}
