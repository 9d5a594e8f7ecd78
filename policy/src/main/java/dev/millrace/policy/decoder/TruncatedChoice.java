package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Samples from the likeliest tokens only: first the {@code k} likeliest (top-k), then of these, renormalised, the fewest
 * whose probabilities reach {@code p} (top-p, Holtzman et al., 2020). What remains is renormalised again; ties go to the
 * smaller id.
 *
 * <p>A forced token outside of what remains has a log-prob of minus infinity, which is the truth about it.
 */
final class TruncatedChoice implements TokenChoice {
    private final Value topK;
    private final Value topP;

    /**
     * @param topK [slots, 1], the vocabulary's size or more to keep all
     * @param topP [slots, 1], above 1 to keep all: at exactly 1 the running sum's rounding would cut a tail
     */
    TruncatedChoice(Value topK, Value topP) {
        this.topK = topK;
        this.topP = topP;
    }

    @Override
    public Chosen choose(Operators ops, Value logits, Value forced, Value uniform) {
        Value zero = ops.graph().scalar(0f);
        Value logProbs = ops.logSoftmax(logits, -1);
        Value entropy = TokenChoice.entropy(ops, ops.exp(logProbs), logProbs);
        List<Value> sorted = ops.sortDescending(logProbs);
        Value sortedProbs = ops.exp(sorted.get(0));
        long vocab = logits.dim(1).length();
        Value ranks = ops.cast(
                ops.reshape(ops.graph().constant(LongStream.range(0, vocab).toArray()), Shape.of(1, vocab)),
                ElementType.FLOAT);

        Value amongK = ops.where(ops.less(ranks, topK), sortedProbs, zero);
        Value reached = ops.cumSum(amongK, 1, true);
        Value enough = ops.mul(topP, ops.reduceSum(amongK, true, 1));
        Value kept = ops.where(ops.less(reached, enough), amongK, zero);

        Value wanted = ops.unsqueeze(forced, 1);
        Value wantedRank = ops.cast(
                ops.reduceSum(ops.where(ops.equal(sorted.get(1), wanted), ranks, zero), true, 1), ElementType.INT64);
        Value rank = ops.where(
                ops.less(wanted, ops.graph().scalar(0L)), TokenChoice.inverseCdf(ops, kept, uniform), wantedRank);
        Value total = ops.reduceSum(kept, false, 1);
        return new Chosen(
                TokenChoice.pick(ops, sorted.get(1), rank),
                ops.log(ops.div(TokenChoice.pick(ops, kept, rank), total)),
                TokenChoice.pick(ops, sorted.get(0), rank),
                entropy);
    }
}
