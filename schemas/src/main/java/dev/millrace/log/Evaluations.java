package dev.millrace.log;

import dev.millrace.schemas.VersionEvaluation;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * Evaluations of one run that can be compared: those on the prompts of the one that ended last, by version. On other prompts another
 * reward is not another policy.
 *
 * @param onSamePrompts oldest version first
 */
public record Evaluations(List<VersionEvaluation> onSamePrompts) {
    public static final Evaluations NONE = new Evaluations(List.of());

    /** @param onSamePrompts all there are, in any order and of any prompts; those that can be compared stay */
    public Evaluations {
        onSamePrompts = comparable(onSamePrompts);
    }

    private static List<VersionEvaluation> comparable(Collection<VersionEvaluation> all) {
        Optional<String> newest = all.stream()
                .max(Comparator.comparingLong(VersionEvaluation::getFinishedAtMs)
                        .thenComparingLong(VersionEvaluation::getVersion))
                .map(VersionEvaluation::getDataSha256);
        return all.stream()
                .filter(evaluation ->
                        newest.filter(evaluation.getDataSha256()::equals).isPresent())
                .sorted(Comparator.comparingLong(VersionEvaluation::getVersion))
                .toList();
    }

    /** The one with the highest mean reward, of several the earliest; empty without any. */
    public Optional<VersionEvaluation> best() {
        return onSamePrompts.stream()
                .max(Comparator.comparingDouble(VersionEvaluation::getRewardMean)
                        .thenComparing(VersionEvaluation::getVersion, Comparator.reverseOrder()));
    }

    /** That of the newest version; empty without any. */
    public Optional<VersionEvaluation> last() {
        return onSamePrompts.isEmpty() ? Optional.empty() : Optional.of(onSamePrompts.get(onSamePrompts.size() - 1));
    }

    public boolean isEmpty() {
        return onSamePrompts.isEmpty();
    }
}
