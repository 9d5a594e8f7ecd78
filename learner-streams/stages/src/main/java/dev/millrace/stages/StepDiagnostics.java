package dev.millrace.stages;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.diagnostics.CorrectionInForce;
import dev.millrace.corrections.diagnostics.StepFacts;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.packed.PackedMask;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Reads the diagnostics of a step from its records. All code that diagnoses a run uses this class, so that the same run
 * gets the same diagnosis everywhere.
 *
 * <p>Stages are identified by their names. verl's rejection and every other mask by divergence (second moment, sequence
 * mask, trust region) count as rejection. Limits on staleness and age do not, since they do not depend on the distance
 * of policies.
 */
public final class StepDiagnostics {
    private static final String REJECTION = "rollout_correction";
    /** Figures that a rejection reports only if it rejects. */
    private static final String REJECTS = "rollout_rs_";

    private static final Set<String> DIVERGENCE_MASKS = Set.of(
            "m2po",
            "sequence_mask",
            "trust_region",
            "sampled_trust_region",
            "divergence_filter",
            "binary_kl",
            "batch_divergence",
            "dis",
            "ipo");
    /** Stages with weights by products over sequences; a mean over a sequence varies like a token's ratio. */
    private static final Set<String> PRODUCTS = Set.of("sequence_tis", "sequence_icepop");

    private static final Set<String> WEIGHTS = Set.of(
            "sequence_tis",
            "sequence_icepop",
            "token_tis",
            "token_icepop",
            "geometric_sequence",
            "interpolated",
            "minpro",
            "ctpo",
            "single_side_cap",
            "turn_product",
            "turn_geometric",
            "clamp",
            "shaped");
    private static final String BAND = "_icepop";

    private StepDiagnostics() {}

    /** Returns the reports in force at a step: the learner's, or the batch's if the learner decided nothing. */
    public static List<StageReport> reports(LearnerBatch batch, Optional<TrainingStep> step) {
        List<StageReport> reports = new ArrayList<>(step.map(StageReports::of).orElse(List.of()));
        batch.getStages().stream()
                .filter(report ->
                        reports.stream().noneMatch(other -> other.getStage().equals(report.getStage())))
                .forEach(reports::add);
        return reports;
    }

    /** Returns which corrections are active, from the reports of every stage. */
    public static CorrectionInForce inForce(List<StageReport> reports) {
        return new CorrectionInForce(
                reports.stream().anyMatch(StepDiagnostics::rejects),
                reports.stream().anyMatch(report -> report.getStage().endsWith(BAND)),
                reports.stream()
                        .map(StageReport::getStage)
                        .filter(WEIGHTS::contains)
                        .map(stage -> PRODUCTS.contains(stage) ? CorrectionUnit.SEQUENCE : CorrectionUnit.TOKEN)
                        .findFirst());
    }

    /** Returns whether a report is from a rejection that only measures. */
    static boolean onlyMeasures(StageReport report) {
        return report.getStage().equals(REJECTION) && !rejects(report);
    }

    private static boolean rejects(StageReport report) {
        return report.getStage().equals(REJECTION)
                ? report.getValues().keySet().stream().anyMatch(name -> name.contains(REJECTS))
                : DIVERGENCE_MASKS.contains(report.getStage());
    }

    /** Reads a step's diagnostics from its record in the training log. */
    public static StepFacts facts(TrainingStep step) {
        Map<String, Double> metrics = step.getMetrics();
        List<StageReport> reports = StageReports.of(step);
        return new StepFacts(
                number(metrics, "clip_fraction"),
                number(metrics, "clip_ratio_high"),
                number(metrics, "response_tokens_mean"),
                step.getLearningRate() > 0 ? OptionalDouble.of(step.getLearningRate()) : OptionalDouble.empty(),
                power(metrics.get("gradient_power"), metrics.get("gradient_power_unweighted")),
                rejected(reports),
                banded(reports));
    }

    /** Diagnostics of a step that was not trained in this form: response lengths and masks. */
    public static StepFacts facts(TokenBatch tokens, List<StageReport> reports) {
        OptionalDouble none = OptionalDouble.empty();
        return new StepFacts(
                none,
                none,
                tokens.sequenceCount() == 0
                        ? none
                        : OptionalDouble.of((double) tokens.tokenCount() / tokens.sequenceCount()),
                none,
                Optional.empty(),
                rejected(reports),
                banded(reports));
    }

    private static Optional<StepFacts.Power> power(@Nullable Double weighted, @Nullable Double unweighted) {
        return weighted == null || unweighted == null
                ? Optional.empty()
                : Optional.of(new StepFacts.Power(weighted, unweighted));
    }

    private static OptionalDouble number(Map<String, Double> metrics, String name) {
        Double value = metrics.get(name);
        return value == null ? OptionalDouble.empty() : OptionalDouble.of(value);
    }

    private static OptionalDouble rejected(List<StageReport> reports) {
        long seen = 0;
        long rejected = 0;
        for (StageReport report : reports) {
            if (rejects(report)) {
                seen = Math.max(seen, report.getTokensSeen()); // tokens that reached the first stage
                rejected += report.getTokensChanged();
            }
        }
        return seen == 0 ? OptionalDouble.empty() : OptionalDouble.of((double) rejected / seen);
    }

    private static OptionalDouble banded(List<StageReport> reports) {
        return reports.stream()
                .filter(report -> report.getStage().endsWith(BAND) && report.getTokensSeen() > 0)
                .mapToDouble(report -> (double) report.getTokensChanged() / report.getTokensSeen())
                .findFirst();
    }

    /**
     * Returns the mask after the batch's stages, and the step's where it masked a further whole sequence.
     *
     * @param tokens layout of the trajectories that are there, under their own masks
     * @param members index of each among the batch's entries
     */
    public static TokenBatch left(TokenBatch tokens, LearnerBatch batch, int[] members, Optional<TrainingStep> step) {
        byte[] mask = tokens.mask();
        List<StepEntry> anew = step.map(TrainingStep::getEntries).orElse(null);
        for (int s = 0; s < members.length; s++) {
            BatchEntry entry = batch.getEntries().get(members[s]);
            if (anew != null && anew.get(members[s]).getTrainedTokens() == 0 || entry.getTrainedTokens() == 0) {
                Arrays.fill(mask, tokens.start(s), tokens.end(s), (byte) 0);
            } else if (entry.getMask() != null) {
                PackedMask.copyTo(entry.getMask(), mask, tokens.start(s));
            }
        }
        return tokens.withMask(mask);
    }
}
