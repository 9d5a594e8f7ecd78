package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.List;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Samples from the likeliest tokens only: first the {@code k} likeliest (top-k), then of these, renormalised, the fewest
 * whose probabilities reach {@code p} (top-p, Holtzman et al., 2020), and of these those that have at least {@code m} times the
 * probability of the likeliest (min-p, Nguyen et al., 2024). What remains is renormalised again; ties go to the smaller id.
 *
 * <p>A forced token outside of what remains has a log-prob of minus infinity, which is the truth about it.
 */
final class TruncatedChoice implements TokenChoice {
    static final Dim KEPT_OF_A_STEP = Dim.symbol("K_of_a_step");

    private final Value topK;
    private final Value topP;
    private final Value minP;
    private final @Nullable Value records;
    private final int top;

    /**
     * @param topK    [slots, 1], the vocabulary's size or more to keep all
     * @param topP    [slots, 1], above 1 to keep all: at exactly 1 the running sum's rounding would cut a tail
     * @param minP    [slots, 1], 0 to keep all
     * @param records [slots, 1], 1 for a slot whose kept tokens are recorded, else 0; null if there is none
     * @param top     how many of the likeliest tokens are recorded; 0 records none
     */
    TruncatedChoice(Value topK, Value topP, Value minP, @Nullable Value records, int top) {
        this.topK = topK;
        this.topP = topP;
        this.minP = minP;
        this.records = records;
        this.top = top;
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
        Value nucleus = ops.where(ops.less(reached, enough), amongK, zero);
        Value least = ops.mul(minP, ops.slice(sortedProbs, 1, 0, 1));
        Value kept = ops.where(ops.lessOrEqual(least, nucleus), nucleus, zero);

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
                entropy,
                new Notes(kept(ops, sorted.get(1), kept, wanted), top(ops, sorted, sortedProbs, kept, total, ranks)));
    }

    /** Of the slots that draw in this step; a forced token was kept by nobody. */
    private @Nullable Kept kept(Operators ops, Value sortedIds, Value kept, Value wanted) {
        if (records == null) {
            return null;
        }
        Value zero = ops.graph().scalar(0f);
        Value drawn = ops.where(ops.less(wanted, ops.graph().scalar(0L)), ops.mul(kept, records), zero);
        Value isKept = ops.less(zero, drawn);
        Value counts = ops.cast(ops.reduceSum(ops.cast(isKept, ElementType.FLOAT), false, 1), ElementType.INT64);
        return new Kept(ops.compress(sortedIds, isKept, KEPT_OF_A_STEP), counts);
    }

    /** Of the distribution that is compared: what was kept where that is recorded, else the one before truncation. */
    private @Nullable Top top(
            Operators ops, List<Value> sorted, Value sortedProbs, Value kept, Value total, Value ranks) {
        if (top == 0) {
            return null;
        }
        Value probs = sortedProbs;
        Value logProbs = sorted.get(0);
        if (records != null) {
            Value cut = ops.less(ops.graph().scalar(0f), records);
            Value renormalised = ops.div(kept, ops.unsqueeze(total, 1));
            probs = ops.where(cut, renormalised, probs);
            logProbs = ops.where(cut, ops.log(renormalised), logProbs);
        }
        Value zero = ops.graph().scalar(0f);
        Value rest = ops.where(ops.less(ranks, ops.graph().scalar((float) top)), zero, probs);
        return new Top(
                ops.slice(sorted.get(1), 1, 0, top),
                ops.slice(logProbs, 1, 0, top),
                ops.log(ops.reduceSum(rest, false, 1)));
    }
}
