package dev.millrace.cli.run;

import dev.millrace.cli.audit.NotFoundException;
import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionStretch;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;
import java.util.function.LongPredicate;

/** Resolves {@code --version best}; refuses if its weights are gone. */
public final class BestVersion {
    private BestVersion() {}

    /** @throws NotFoundException if none was evaluated */
    public static VersionEvaluation of(Evaluations evaluations) {
        return evaluations
                .best()
                .orElseThrow(() -> new NotFoundException(
                        "no version of the run was evaluated on held-out prompts, so the best is unknown; give"
                                + " --version a number, or last"));
    }

    /**
     * Message that it is gone, with the best remaining version.
     *
     * @param isKept whether a version's weights still exist
     */
    public static NotFoundException gone(Evaluations evaluations, String reason, LongPredicate isKept) {
        VersionEvaluation best = of(evaluations);
        Optional<VersionEvaluation> next = evaluations.onSamePrompts().stream()
                .filter(each -> each.getVersion() != best.getVersion())
                .sorted(Comparator.comparingDouble(VersionEvaluation::getRewardMean)
                        .reversed()
                        .thenComparing(VersionEvaluation::getVersion))
                .filter(each -> isKept.test(each.getVersion()))
                .findFirst();
        return new NotFoundException("the best version on held-out prompts, " + said(best) + ", is not available: "
                + reason
                + "; "
                + next.map(left -> "the best with kept weights is " + said(left) + ": --version " + left.getVersion())
                        .orElse("no other evaluated version is kept"));
    }

    /** Returns whether the log has a version's whole chain; object stores are not checked. */
    public static boolean isKept(LogConnection connection, WeightsConfig config, long version) {
        try (PolicyFeed feed = PolicyFeed.reaching(version, connection, config)) {
            return feed.stretch(version).map(VersionStretch::isKept).orElse(true);
        } catch (VersionUnavailableException e) {
            return false;
        }
    }

    private static String said(VersionEvaluation of) {
        return String.format(Locale.ROOT, "%d (reward %.3f)", of.getVersion(), of.getRewardMean());
    }
}
