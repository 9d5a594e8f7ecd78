package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/** How a step of the decode loop comes to its token: forced, or sampled by inverse CDF from one uniform number. */
interface TokenChoice {
    /** Running sums in blocks of so many. */
    long BLOCK = 64;

    /**
     * What one step says about each slot, all [slots].
     *
     * @param token              int64, the forced or the sampled one
     * @param logProb            of the token under the distribution that is sampled from
     * @param temperatureLogProb of the token after temperature, before truncation
     * @param entropy            of the distribution after temperature, before truncation
     * @param notes              what else is to be recorded of the step
     */
    record Chosen(Value token, Value logProb, Value temperatureLogProb, Value entropy, Notes notes) {}

    /**
     * What a step records beyond its token.
     *
     * @param kept null where it is not recorded
     * @param top  null where it is not recorded
     */
    record Notes(@Nullable Kept kept, @Nullable Top top) {
        static final Notes NONE = new Notes(null, null);
    }

    /**
     * What was left to be drawn from, of the slots that draw and record it.
     *
     * @param ids    int64 [count], slot after slot, the likeliest of a slot first
     * @param counts int64 [slots]
     */
    record Kept(Value ids, Value counts) {}

    /**
     * The likeliest tokens.
     *
     * @param ids       int64 [slots, k]
     * @param logProbs  [slots, k]
     * @param remainder [slots], the log of the probability of all others together
     */
    record Top(Value ids, Value logProbs, Value remainder) {}

    /**
     * @param logits  after temperature, [slots, vocab]
     * @param forced  int64 [slots]; negative to sample
     * @param uniform [slots], in [0, 1)
     */
    Chosen choose(Operators ops, Value logits, Value forced, Value uniform);

    /**
     * The place in the vocabulary's order at which the running sum of the probabilities first exceeds
     * {@code uniform * total}: int64 [slots, 1].
     *
     * <p>A place of probability 0 is never chosen, not even by a uniform of 0: the running sum does not rise there, and where
     * sums in blocks may, by rounding, it is left out. {@code uniform * total} stays below the total in float arithmetic for every
     * uniform below 1, so that there is always a place.
     */
    static Value inverseCdf(Operators ops, Value probs, Value uniform, boolean inBlocks) {
        Value running = runningSums(ops, probs, false, inBlocks);
        long vocab = probs.dim(1).length();
        if (!inBlocks) {
            Value threshold = ops.mul(ops.unsqueeze(uniform, 1), ops.slice(running, 1, vocab - 1, vocab));
            Value passed = ops.cast(ops.lessOrEqual(running, threshold), ElementType.FLOAT);
            return ops.cast(ops.reduceSum(passed, true, 1), ElementType.INT64);
        }
        Value zero = ops.graph().scalar(0f);
        Value reached = ops.where(ops.less(zero, probs), running, zero);
        Value threshold = ops.mul(ops.unsqueeze(uniform, 1), ops.reduceMax(reached, true, 1));
        Value downwards = ops.cast(
                ops.reshape(
                        ops.graph()
                                .constant(LongStream.iterate(vocab, n -> n - 1)
                                        .limit(vocab)
                                        .toArray()),
                        Shape.of(1, vocab)),
                ElementType.FLOAT);
        Value first = ops.reduceMax(ops.where(ops.less(threshold, reached), downwards, zero), true, 1);
        return ops.cast(ops.sub(ops.graph().scalar((float) vocab), first), ElementType.INT64);
    }

    /**
     * Sums along axis 1. In blocks they are sums within a block, and of the blocks before it: a device adds up every sum from its
     * start, which takes as many additions as the square of the length.
     */
    static Value runningSums(Operators ops, Value x, boolean exclusive, boolean inBlocks) {
        long length = x.dim(1).length();
        if (!inBlocks || length <= 4 * BLOCK) {
            return ops.cumSum(x, 1, exclusive);
        }
        long blocks = (length + BLOCK - 1) / BLOCK;
        Dim rows = x.dim(0);
        Value padded = length == blocks * BLOCK ? x : ops.pad(x, 1, 0, blocks * BLOCK - length);
        Value cut = ops.reshape(padded, Shape.of(rows, Dim.of(blocks), Dim.of(BLOCK)));
        Value within = ops.cumSum(cut, 2, false);
        Value sums = ops.reshape(ops.slice(within, 2, BLOCK - 1, BLOCK), Shape.of(rows, Dim.of(blocks)));
        Value before = ops.unsqueeze(runningSums(ops, sums, true, true), 2);
        Value all = ops.add(exclusive ? ops.cumSum(cut, 2, true) : within, before);
        Value flat = ops.reshape(all, Shape.of(rows, Dim.of(blocks * BLOCK)));
        return length == blocks * BLOCK ? flat : ops.slice(flat, 1, 0, length);
    }

    static Value entropy(Operators ops, Value probs, Value logProbs) {
        return ops.neg(ops.reduceSum(ops.mul(probs, logProbs), false, 1));
    }

    static Value pick(Operators ops, Value perToken, Value index) {
        return ops.squeeze(ops.gatherElements(perToken, index, 1), 1);
    }
}
