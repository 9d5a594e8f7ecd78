package dev.millrace.generator.staleness;

import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.rollout.VectorCheck;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * By how much the log-probs that one generator sends differ from the scorer's under the version that it names: decided once there
 * are tokens enough, then counted anew.
 *
 * <p>An honest engine differs by rounding, in the mean by some hundredths of a nat. Log-probs of another policy, constants and
 * shuffled ones differ by tenths and more; where a policy is so sure of most tokens that they do not, they explain nothing of what
 * is left: their squared differences are no smaller than the variance of the scorer's own.
 *
 * <p>What scorers say is divided into {@value #LOTS} lots in the order in which it came, each judged by itself, and most of them
 * decide (a median of means): however many tokens a single record speaks of, it is in one lot. Confined to admission's thread.
 */
final class LogProbDifference {
    static final int LOTS = 7;

    /** What rounding may do to sums that are equal. */
    private static final double ROUNDING = 1 - 1e-6;

    private final QuarantineConfig config;
    private final List<Lot> full = new ArrayList<>();
    private Lot open = Lot.EMPTY;

    LogProbDifference(QuarantineConfig config) {
        this.config = config;
    }

    /** More was compared. */
    void add(ComparedLogProbs sums) {
        open = open.and(sums);
        if (LOTS * open.tokens >= config.differenceTokens()) {
            full.add(open);
            open = Lot.EMPTY;
        }
    }

    /**
     * Whether there can be log-probs with these sums: each between {@link VectorCheck#LEAST_LOG_PROB} and 0, and squares
     * no smaller than those of their mean.
     */
    static boolean arePossible(ComparedLogProbs sums) {
        double tokens = sums.getTokens();
        double absolute = sums.getSumAbsolute();
        double scored = sums.getSumScored();
        double furthest = -VectorCheck.LEAST_LOG_PROB * tokens;
        return tokens >= 1
                && tokens <= Integer.MAX_VALUE
                && absolute >= 0
                && absolute <= furthest
                && scored <= 0
                && scored >= -furthest
                && sums.getSumSquared() >= absolute / tokens * absolute * ROUNDING
                && sums.getSumSquared() <= furthest * -VectorCheck.LEAST_LOG_PROB
                && sums.getSumSquaredScored() >= scored / tokens * scored * ROUNDING
                && sums.getSumSquaredScored() <= furthest * -VectorCheck.LEAST_LOG_PROB;
    }

    /** Whether it can be decided. */
    boolean isEnough() {
        return full.size() >= LOTS;
    }

    /** What is too much of it, as a sentence; empty if nothing is. */
    Optional<String> tooMuch() {
        List<Lot> over = full.stream()
                .filter(lot -> lot.isTooMuch(config.maxDifference()))
                .sorted(Comparator.comparingDouble(Lot::mean))
                .toList();
        if (2 * over.size() <= full.size()) {
            return Optional.empty();
        }
        Lot middle = over.get(over.size() / 2);
        String difference = String.format(
                Locale.ROOT,
                "its log-probs differ by %.3f nats in the mean from those of the versions that it names, in %d of %d lots of %d tokens"
                        + " in all",
                middle.mean(),
                over.size(),
                full.size(),
                full.stream().mapToLong(Lot::tokens).sum());
        return Optional.of(
                middle.mean() > config.maxDifference()
                        ? difference + ", and may by " + config.maxDifference()
                        : String.format(
                                Locale.ROOT,
                                "%s, and may by %.3f where they say no more of the tokens than a constant would",
                                difference,
                                config.maxDifference() / 3));
    }

    /** Sums over some tokens. */
    private record Lot(long tokens, double absolute, double squared, double scored, double squaredScored) {
        static final Lot EMPTY = new Lot(0, 0, 0, 0, 0);

        Lot and(ComparedLogProbs sums) {
            return new Lot(
                    tokens + sums.getTokens(),
                    absolute + sums.getSumAbsolute(),
                    squared + sums.getSumSquared(),
                    scored + sums.getSumScored(),
                    squaredScored + sums.getSumSquaredScored());
        }

        double mean() {
            return absolute / tokens;
        }

        boolean isTooMuch(double bound) {
            double variance = squaredScored - scored * scored / tokens; // of all, not of one
            return mean() > bound || mean() > bound / 3 && squared >= variance;
        }
    }
}
