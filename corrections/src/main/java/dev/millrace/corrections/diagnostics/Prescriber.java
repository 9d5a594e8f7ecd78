package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.diagnostics.AlgorithmPatch.Effect;
import dev.millrace.corrections.diagnostics.Diagnosis.Branch;
import dev.millrace.corrections.diagnostics.Prescription.Elsewhere;
import dev.millrace.corrections.stage.LengthGuardConfig;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.None;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Turns a branch of the decision tree into a prescription for an algorithm. A patch replaces the settings that it names
 * and leaves all others unchanged. The algorithm validates the result and rejects a patch that does not fit.
 */
final class Prescriber {
    /** The survey's for the geometric mean. */
    private static final String NARROW = "0.99_1.01";
    /** For answers of a few tokens, whose mean ratio the narrow one rejects nearly always. */
    private static final String WIDE = "0.9_1.1";

    private static final String TRUNCATED = "2.0";
    private static final String BAND = "0.5_5.0";

    private static final Elsewhere FRESHER =
            new Elsewhere("admission.eta", "lower it, so that fewer versions pass between a token and its step");
    private static final Elsewhere PRECISION = new Elsewhere(
            "generator.precision",
            "the precision of the scorer's engine; './millrace doctor mismatch' measures the gap of each");
    private static final Elsewhere ROUTING =
            new Elsewhere("algorithm.routing_replay", "generator, for a mixture of experts; a replay cannot try it");
    private static final Elsewhere HALF_RATE = new Elsewhere("learner.step.optimizer.learning_rate", "half of it");

    private final Algorithm inForce;

    private Prescriber(Algorithm inForce) {
        this.inForce = inForce;
    }

    static Prescription of(Branch branch, Algorithm inForce) {
        Prescriber prescriber = new Prescriber(inForce);
        return switch (branch.fix()) {
            case NONE -> Prescription.NOTHING;
            case ALIGN_TOKENS ->
                only(new Elsewhere(
                        "the tokens that are scored",
                        "the sampled ids, in their own context and mask; do not re-render and re-tokenize"));
            case ALIGN_SAMPLING ->
                only(new Elsewhere(
                        "the log-probs of the engine that samples",
                        "those of the sampled distribution, after temperature and top-p, at the scoring engine's"
                                + " temperature and support"));
            case ALIGN_ENGINES -> only(PRECISION, ROUTING);
            case LOWER_STALENESS -> prescriber.lowerStaleness();
            case REJECT -> prescriber.reject();
            case REJECT_AND_WEIGH -> prescriber.rejectAndWeigh();
            case MASK_BAND -> prescriber.maskBand();
            case MEND_SYSTEMS -> only(FRESHER, PRECISION, ROUTING);
            case LOWER_PRESSURE -> prescriber.lowerPressure();
            case SLOW_DOWN -> prescriber.slowDown();
        };
    }

    private static Prescription only(Elsewhere... elsewhere) {
        return new Prescription(List.of(), List.of(elsewhere));
    }

    /** No correction removes the lag itself, only its remaining effect. */
    private Prescription lowerStaleness() {
        boolean isCorrected = !(inForce.weights() instanceof None)
                || inForce.rejection().rejects()
                || !inForce.masks().isEmpty();
        return new Prescription(
                List.of(
                        isCorrected
                                ? decision(rejecting(WIDE), weighing("sequence", TRUNCATED))
                                : decision(weighing("token", TRUNCATED))),
                List.of(FRESHER));
    }

    private Prescription reject() {
        return new Prescription(
                List.of(
                        decision(rejecting(NARROW)),
                        decision(rejecting(WIDE)),
                        decision(rejecting(WIDE), weighing("token", TRUNCATED))),
                List.of());
    }

    private Prescription rejectAndWeigh() {
        return new Prescription(
                List.of(
                        decision(rejecting(NARROW), weighing("token", TRUNCATED)),
                        decision(rejecting(WIDE), weighing("token", TRUNCATED))),
                List.of(FRESHER));
    }

    private Prescription maskBand() {
        return new Prescription(
                List.of(decision(weighing("token", BAND)), decision(rejecting(WIDE), weighing("token", BAND))),
                List.of(FRESHER));
    }

    private Prescription lowerPressure() {
        List<AlgorithmPatch> patches = new ArrayList<>();
        if (inForce.epochs() > 1) {
            patches.add(new AlgorithmPatch(Map.of("epochs", 1), Effect.UPDATES));
        }
        if (inForce.minibatches() > 1) {
            Map<String, Object> fewer = new LinkedHashMap<>();
            if (inForce.epochs() > 1) {
                fewer.put("epochs", 1);
            }
            fewer.put("minibatches", inForce.minibatches() / 2);
            patches.add(new AlgorithmPatch(fewer, Effect.UPDATES));
        }
        return new Prescription(
                patches,
                List.of(
                        HALF_RATE,
                        new Elsewhere(
                                "algorithm.objective",
                                "one whose ratio does not grow with length, gspo or gmpo, if that is not enough")));
    }

    private Prescription slowDown() {
        List<AlgorithmPatch> patches = new ArrayList<>();
        if (inForce.lengthGuard() instanceof LengthGuardConfig.Off) {
            patches.add(new AlgorithmPatch(Map.of("length_guard", Map.of("kind", "surge")), Effect.STEP_SIZE));
        } else if (!inForce.rejection().rejects()) {
            patches.add(decision(rejecting(NARROW)));
        }
        return new Prescription(
                patches,
                List.of(
                        HALF_RATE,
                        new Elsewhere("the reward", "does it pay for length, or for answers that never end?")));
    }

    private static Map<String, Object> rejecting(String band) {
        Map<String, Object> keys = new LinkedHashMap<>();
        keys.put("rollout_rs", "seq_mean_k1");
        keys.put("rollout_rs_threshold", band);
        return Map.of("rejection", keys);
    }

    private Map<String, Object> weighing(String kind, String threshold) {
        Map<String, Object> keys = new LinkedHashMap<>();
        keys.put("kind", kind);
        keys.put("threshold", threshold);
        Map<String, Object> patch = new LinkedHashMap<>();
        patch.put("weights", keys);
        boolean isTruncated = !threshold.contains("_");
        if (!isTruncated && inForce.ess().weights() == Ess.Weights.TRUNCATED) {
            patch.put("ess", Map.of("weights", "raw")); // a band truncates nothing that a step could be scaled by
        }
        return patch;
    }

    @SafeVarargs
    private static AlgorithmPatch decision(Map<String, Object>... parts) {
        Map<String, Object> keys = new LinkedHashMap<>();
        for (Map<String, Object> part : parts) {
            keys.putAll(part);
        }
        return new AlgorithmPatch(keys, Effect.DECISION);
    }
}
