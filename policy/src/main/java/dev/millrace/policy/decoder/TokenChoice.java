package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import org.jspecify.annotations.Nullable;

/** How a step of the decode loop comes to its token: forced, or sampled by inverse CDF from one uniform number. */
interface TokenChoice {
    /** Places of a block. */
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
     * <p>A place of probability 0 is never chosen, not even by a uniform of 0, because the running sum does not rise there;
     * and {@code uniform * total} stays below the total in float arithmetic for every uniform below 1, so that there is
     * always a place.
     */
    static Value inverseCdf(Operators ops, Value probs, Value uniform) {
        long vocab = probs.dim(1).length();
        if (vocab > 4 * BLOCK) {
            return inverseCdfInBlocks(ops, probs, uniform);
        }
        Value running = ops.cumSum(probs, 1, false);
        Value threshold = ops.mul(ops.unsqueeze(uniform, 1), ops.slice(running, 1, vocab - 1, vocab));
        return ops.cast(countUpTo(ops, running, threshold), ElementType.INT64);
    }

    /** First the block, by the sums of the blocks, then the place in it, by the running sums within it; each as above. */
    private static Value inverseCdfInBlocks(Operators ops, Value probs, Value uniform) {
        Value cut = cut(ops, probs);
        Dim slots = cut.dim(0);
        long blocks = cut.dim(1).length();
        Value sums = ops.reduceSum(cut, false, 2);
        Value running = ops.cumSum(sums, 1, false);
        Value threshold = ops.mul(ops.unsqueeze(uniform, 1), ops.slice(running, 1, blocks - 1, blocks));
        Value block = ops.cast(countUpTo(ops, running, threshold), ElementType.INT64);
        Value before = ops.gatherElements(ops.cumSum(sums, 1, true), block, 1);
        Value inBlock = ops.expand(ops.unsqueeze(block, 2), Shape.of(slots, Dim.ONE, Dim.of(BLOCK)));
        Value within =
                ops.cumSum(ops.reshape(ops.gatherElements(cut, inBlock, 1), Shape.of(slots, Dim.of(BLOCK))), 1, false);
        // below the block's sum, whatever was rounded: the block was chosen because its sum is not 0
        Value most = ops.mul(ops.slice(within, 1, BLOCK - 1, BLOCK), Math.nextDown(1f));
        Value left = ops.sub(threshold, before);
        Value place = countUpTo(ops, within, ops.where(ops.less(left, most), left, most));
        return ops.add(ops.mul(block, ops.graph().scalar(BLOCK)), ops.cast(place, ElementType.INT64));
    }

    private static Value countUpTo(Operators ops, Value running, Value threshold) {
        return ops.reduceSum(ops.cast(ops.lessOrEqual(running, threshold), ElementType.FLOAT), true, 1);
    }

    /**
     * Running sums along axis 1, without each place's own. On a device they are sums within a block, and of the blocks before it:
     * it adds up every sum from its start, which takes as many additions as the square of the length.
     */
    static Value sumsBefore(Operators ops, Value x) {
        long length = x.dim(1).length();
        if (!ops.graph().onDevice() || length <= 4 * BLOCK) {
            return ops.cumSum(x, 1, true);
        }
        Value cut = cut(ops, x);
        Value within = ops.cumSum(cut, 2, true);
        Value sums =
                ops.squeeze(ops.add(ops.slice(within, 2, BLOCK - 1, BLOCK), ops.slice(cut, 2, BLOCK - 1, BLOCK)), 2);
        Value all = ops.add(within, ops.unsqueeze(ops.cumSum(sums, 1, true), 2));
        Value flat = ops.reshape(all, Shape.of(x.dim(0), Dim.of(cut.dim(1).length() * BLOCK)));
        return flat.dim(1).length() == length ? flat : ops.slice(flat, 1, 0, length);
    }

    private static Value cut(Operators ops, Value x) {
        long length = x.dim(1).length();
        long blocks = (length + BLOCK - 1) / BLOCK;
        Value padded = length == blocks * BLOCK ? x : ops.pad(x, 1, 0, blocks * BLOCK - length);
        return ops.reshape(padded, Shape.of(x.dim(0), Dim.of(blocks), Dim.of(BLOCK)));
    }

    static Value entropy(Operators ops, Value probs, Value logProbs) {
        return ops.neg(ops.reduceSum(ops.mul(probs, logProbs), false, 1));
    }

    static Value pick(Operators ops, Value perToken, Value index) {
        return ops.squeeze(ops.gatherElements(perToken, index, 1), 1);
    }
}
