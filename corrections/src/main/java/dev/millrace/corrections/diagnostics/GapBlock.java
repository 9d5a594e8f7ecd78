package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.BlockExp;
import dev.millrace.corrections.ratio.BlockSums;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;

/**
 * The sums of one block of tokens that {@link GapSums} are made of: computed once, however many of them the block goes into.
 *
 * <p>Sums of products are of differences to the first token of all: probabilities near 1 that differ in the sixth digit would
 * lose their variance in plain sums of squares. Overwritten from block to block; confined to one call.
 */
final class GapBlock {
    private final boolean withProbabilities;
    private final TokenBlock block = new TokenBlock();
    private final double[] p = new double[TokenBlock.CAPACITY];
    private final double[] q = new double[TokenBlock.CAPACITY];
    private final double[] scratch = new double[TokenBlock.CAPACITY];
    private boolean isFirst = true;

    /** The probabilities of the first token, and how far they are apart. */
    double firstP;

    double firstQ;
    double firstDifference;

    int tokens;
    double logRatios;
    double k3;
    double ratios;
    double ratioSquares;
    /** The block's own first probabilities, and whether others of it are other ones. */
    double startP;

    double startQ;
    boolean variesP;
    boolean variesQ;
    double sumP;
    double sumQ;
    double squaresP;
    double squaresQ;
    double products;
    double differences;
    double differenceSquares;
    double maxDifference;

    /** @param withProbabilities whether the two probabilities are compared, which is half of the work */
    GapBlock(boolean withProbabilities) {
        this.withProbabilities = withProbabilities;
    }

    boolean withProbabilities() {
        return withProbabilities;
    }

    /**
     * Takes in the packed tokens {@code [from, to)} of a sequence, at most {@link TokenBlock#CAPACITY}.
     *
     * @return whether one of them is trained
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
     */
    boolean load(TokenBatch batch, LogRatio ratio, int sequence, int from, int to) {
        block.load(batch, ratio, sequence, from, to);
        tokens = block.size();
        if (tokens == 0) {
            return false;
        }
        addRatios();
        if (withProbabilities) {
            addProbabilities();
        }
        return true;
    }

    private void addRatios() {
        logRatios = block.logRatioSum();
        k3 = BlockSums.sum(block.k3, tokens);
        ratios = block.ratioSum();
        ratioSquares = block.ratioSquares();
    }

    private void addProbabilities() {
        BlockExp.expOfAny(block.target, scratch, p, tokens);
        BlockExp.expOfAny(block.sampler, scratch, q, tokens);
        startP = p[0];
        startQ = q[0];
        variesP = BlockSums.varies(p, tokens);
        variesQ = BlockSums.varies(q, tokens);
        for (int i = 0; i < tokens; i++) {
            scratch[i] = Math.abs(p[i] - q[i]);
        }
        maxDifference = BlockSums.max(scratch, tokens);
        if (isFirst) {
            isFirst = false;
            firstP = p[0];
            firstQ = q[0];
            firstDifference = scratch[0];
        }
        move(scratch, firstDifference);
        differences = BlockSums.sum(scratch, tokens);
        differenceSquares = BlockSums.sumOfSquares(scratch, tokens);
        move(p, firstP);
        move(q, firstQ);
        sumP = BlockSums.sum(p, tokens);
        sumQ = BlockSums.sum(q, tokens);
        squaresP = BlockSums.sumOfSquares(p, tokens);
        squaresQ = BlockSums.sumOfSquares(q, tokens);
        products = BlockSums.sumOfProducts(p, q, tokens);
    }

    private void move(double[] values, double by) {
        for (int i = 0; i < tokens; i++) {
            values[i] -= by;
        }
    }
}
