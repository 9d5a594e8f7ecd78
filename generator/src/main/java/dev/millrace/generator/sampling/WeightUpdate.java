package dev.millrace.generator.sampling;

/** When a generator takes up new weights. */
public enum WeightUpdate {
    /**
     * Between two engine calls, with sequences in flight; version spans tell the tokens apart. While a spare slot recomputes keys and
     * values ({@link CacheOnSwap#RECOMPUTE}), two versions are held, and no third one is loaded.
     */
    IN_FLIGHT,
    /**
     * When every sequence in flight is finished: none is begun once new weights are there, so that all tokens of a sample are
     * of one version, while the samples of a group need not be. The slots run empty before each update, as long as the
     * slowest sequence takes.
     */
    DRAIN,
    /**
     * When every group that was begun is finished: no new one is begun once new weights are there, so that all samples of a
     * group, and all tokens of a sample, are of one version. The slots run empty before each update, as long as the slowest
     * sequence takes.
     */
    GROUP_END,
    /**
     * At once for sequences that are begun from then on, while those in flight are finished with the version that they began
     * with: all tokens of a sample are of one version, and the slots never run empty. Two versions are held at most. A third one
     * is neither taken up nor read before the last sequence of the oldest is finished; of those that came meanwhile the newest is
     * taken. Costs a second copy of the weights, and two calls of the engine in the place of one while both sample.
     */
    MULTI_VERSION
}
