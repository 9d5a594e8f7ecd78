package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Samples from {@code softmax(logits / temperature)} itself. */
final class PlainChoice implements TokenChoice {
    private final int top;

    /** @param top how many of the likeliest tokens are recorded; 0 records none */
    PlainChoice(int top) {
        this.top = top;
    }

    @Override
    public Chosen choose(Operators ops, Value logits, Value forced, Value uniform) {
        Value logProbs = ops.logSoftmax(logits, -1);
        Value probs = ops.exp(logProbs);
        Value wanted = ops.unsqueeze(forced, 1);
        Value sampled = TokenChoice.inverseCdf(ops, probs, uniform);
        Value token = ops.where(ops.less(wanted, ops.graph().scalar(0L)), sampled, wanted);
        Value logProb = TokenChoice.pick(ops, logProbs, token);
        return new Chosen(
                ops.squeeze(token, 1),
                logProb,
                ops.identity(logProb),
                TokenChoice.entropy(ops, probs, logProbs),
                new Notes(null, top(ops, logProbs, probs)));
    }

    /** The remainder is a sum of what is left, since a difference to 1 would be nothing but rounding where little is. */
    private @Nullable Top top(Operators ops, Value logProbs, Value probs) {
        if (top == 0) {
            return null;
        }
        List<Value> largest = ops.top(logProbs, top);
        Value ids = largest.get(1);
        Value taken = ops.neg(ops.gatherElements(probs, ids, 1));
        Value rest = ops.scatterElementsAdd(probs, ids, taken, 1); // p - p is exactly 0
        return new Top(ids, largest.get(0), ops.log(ops.reduceSum(rest, false, 1)));
    }
}
