package dev.millrace.workloads.closed;

/**
 * How far an engine's log-probs of the tokens that it drew are from another engine's of the same tokens, in nats.
 *
 * @param mean of the absolute differences
 * @param most the largest of them
 * @param kl   divergence of what was drawn from what scored it, estimated as the mean of {@code r - 1 - log r} with r the ratio of
 *     the scorer's probability to the sampler's (Schulman's k3)
 * @param ess  effective share of the tokens under weights r: {@code (sum r)^2 / (n sum r^2)}
 */
public record LogProbGap(double mean, double most, double kl, double ess) {
    static final LogProbGap NONE = new LogProbGap(0, 0, 0, 1);

    /** Of as many log-probs on either side, at least one. */
    static LogProbGap between(float[] sampler, float[] scorer) {
        if (sampler.length != scorer.length || sampler.length == 0) {
            throw new IllegalArgumentException(
                    "as many log-probs on either side, at least one: " + sampler.length + " and " + scorer.length);
        }
        double absolute = 0;
        double most = 0;
        double kl = 0;
        double ratios = 0;
        double squares = 0;
        for (int i = 0; i < sampler.length; i++) {
            double log = (double) scorer[i] - sampler[i];
            double ratio = Math.exp(log);
            absolute += Math.abs(log);
            most = Math.max(most, Math.abs(log));
            kl += ratio - 1 - log;
            ratios += ratio;
            squares += ratio * ratio;
        }
        int count = sampler.length;
        return new LogProbGap(absolute / count, most, kl / count, ratios * ratios / (count * squares));
    }

    /** The worse of each figure. */
    LogProbGap worst(LogProbGap other) {
        return new LogProbGap(
                Math.max(mean, other.mean),
                Math.max(most, other.most),
                Math.max(kl, other.kl),
                Math.min(ess, other.ess));
    }
}
