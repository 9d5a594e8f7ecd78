package dev.millrace.generator.staleness;

import dev.millrace.schemas.ComparedLogProbs;
import java.util.Locale;
import java.util.Optional;

/**
 * By how much the log-probs that one generator sends differ from the scorer's under the version that it names: decided once there
 * are tokens enough, then counted anew.
 *
 * <p>An honest engine differs by rounding, in the mean by some hundredths of a nat. Log-probs of another policy, constants and
 * shuffled ones differ by tenths and more; where a policy is so sure of most tokens that they do not, they explain nothing of what
 * is left: their squared differences are no smaller than the variance of the scorer's own. Confined to admission's thread.
 */
final class LogProbDifference {
    private final QuarantineConfig config;
    private long tokens;
    private double absolute;
    private double squared;
    private double scored;
    private double squaredScored;

    LogProbDifference(QuarantineConfig config) {
        this.config = config;
    }

    /** More was compared; sums that cannot be are left out. */
    void add(ComparedLogProbs sums) {
        if (sums.getTokens() < 1
                || !(sums.getSumAbsolute() >= 0 && sums.getSumSquared() >= 0 && sums.getSumSquaredScored() >= 0)
                || !Double.isFinite(sums.getSumAbsolute()
                        + sums.getSumSquared()
                        + sums.getSumScored()
                        + sums.getSumSquaredScored())) {
            return;
        }
        tokens += sums.getTokens();
        absolute += sums.getSumAbsolute();
        squared += sums.getSumSquared();
        scored += sums.getSumScored();
        squaredScored += sums.getSumSquaredScored();
    }

    /** Whether it can be decided. */
    boolean isEnough() {
        return tokens >= config.differenceTokens();
    }

    /** What is too much of it, as a sentence; empty if nothing is. */
    Optional<String> tooMuch() {
        double mean = absolute / tokens;
        double variance = squaredScored - scored * scored / tokens; // of all, not of one
        String difference = String.format(
                Locale.ROOT,
                "its log-probs differ by %.3f nats in the mean from those of the versions that it names, over %d tokens",
                mean,
                tokens);
        if (mean > config.maxDifference()) {
            return Optional.of(difference + ", and may by " + config.maxDifference());
        }
        double bound = config.maxDifference() / 3;
        return mean > bound && squared >= variance
                ? Optional.of(String.format(
                        Locale.ROOT,
                        "%s, and may by %.3f where they say no more of the tokens than a constant would",
                        difference,
                        bound))
                : Optional.empty();
    }
}
