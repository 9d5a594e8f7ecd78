package dev.millrace.generator.sampling;

/** When a generator takes up new weights. */
public enum WeightUpdate {
    /** Between two calls of the engine, with sequences in flight; version spans say which tokens are whose. */
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
    GROUP_END
}
