package dev.millrace.docs.reference;

import dev.millrace.api.catalogue.Door;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.stages.AlgorithmParts;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** The method catalogue: what each class of the corrections library says of itself, and the key that chooses it. */
final class MethodsPage {
    private static final String ROOT = "dev.millrace.corrections.";
    private static final String OBJECTIVE = "algorithm.objective.kind=";
    private static final String WEIGHTS = "algorithm.weights.kind=";
    private static final String MASKS = "algorithm.masks.kind=";
    private static final String REWARDS = "algorithm.rewards.kind=";
    private static final AlgorithmParts PARTS_OF_ALGORITHM = new AlgorithmParts();

    /** Title and package of a section. */
    private static final Map<String, String> SECTIONS = sections();

    /** What chooses a method in a configuration. */
    private static final Map<String, String> KEYS = keys();

    private MethodsPage() {}

    static String text() {
        StringBuilder page = new StringBuilder(
                "# Method catalogue\n\nThe methods of the `corrections` library, from their Javadoc, with the "
                        + "key that chooses each in a run.\n\nA advantage; r, ρ a ratio of two policies; w a weight; sg stop-gradient; *proximal*, "
                        + "*current*, *behavior*: [three policies](../concepts/three-policies.md).\n\n");
        Set<String> used = new HashSet<>();
        SECTIONS.forEach((title, name) -> {
            page.append("## ")
                    .append(title)
                    .append("\n\n")
                    .append(Tables.head("method", "what", "unit", "source", "key"));
            for (SourceFile source : SourceFile.inPackage(ROOT + name)) {
                if (source.isPublic() && KEYS.containsKey(source.simpleName())) {
                    used.add(source.simpleName());
                    page.append(entry(source));
                }
            }
            page.append('\n');
        });
        presets(page);
        KEYS.keySet().stream().filter(key -> !used.contains(key)).findFirst().ifPresent(stranger -> {
            throw new AssertionError("a key is given for " + stranger + ", which is no method of a section");
        });
        return page.toString().stripTrailing() + "\n";
    }

    private static String entry(SourceFile source) {
        Javadoc doc = Javadoc.ofType(source);
        return Tables.row(
                "[" + source.simpleName() + "](" + source.link() + ")",
                Tables.firstSentence(doc.first()),
                doc.after("Unit of correction")
                        .or(() -> doc.after("Unit"))
                        .map(unit -> unit.replaceAll("(?s)[.;:](\\s.*|$)", ""))
                        .orElse(""),
                doc.after("Source").map(Tables::firstSentence).orElse(""),
                "`" + String.valueOf(KEYS.get(source.simpleName())).replace(", ", "`, `") + "`");
    }

    private static void presets(StringBuilder page) {
        page.append("## Presets\n\nverl's names, with its thresholds. `algorithm.variant` takes each by its "
                + "name, and other thresholds in brackets behind it:\n`decoupled_geo_rs(0.99_1.01)`. "
                + "`./millrace correct --preset NAME` takes them too.\n\n");
        page.append(Tables.head("preset", "parameters"));
        for (Preset preset : Preset.values()) {
            page.append(Tables.row(
                    Tables.code(preset.label()),
                    preset.parameters().entrySet().stream()
                            .map(parameter -> Tables.code(parameter.getKey() + "=" + parameter.getValue()))
                            .collect(Collectors.joining(", "))));
        }
    }

    private static Map<String, String> sections() {
        Map<String, String> sections = new LinkedHashMap<>();
        sections.put("Objectives", "objective");
        sections.put("Advantages", "advantage");
        sections.put("Importance weights", "weights");
        sections.put("Rejection", "rollout");
        sections.put("Second-moment mask (M2PO)", "m2po");
        sections.put("Trust region masking", "trm");
        sections.put("Staleness", "staleness");
        sections.put("Effective sample size, step scale, baseline (VCPO)", "vcpo");
        sections.put("Proximal policy without a forward pass", "ratio");
        sections.put("Filters by divergence, by advantage, at random", "filter");
        sections.put("KL divergence", "kl");
        sections.put("Length", "length");
        sections.put("Diagnostics", "diagnostics");
        return sections;
    }

    /** A class that comes through a door has its kind as key; what is chosen otherwise, or is part of a kind, is named here. */
    private static Map<String, String> keys() {
        Map<String, String> keys = new LinkedHashMap<>();
        Map<Class<?>, String> doors =
                PARTS_OF_ALGORITHM.doors().stream().collect(Collectors.toMap(Door::type, Door::key));
        PARTS_OF_ALGORITHM
                .kinds()
                .forEach(
                        kind -> keys.put(kind.type().getSimpleName(), doors.get(kind.door()) + ".kind=" + kind.name()));
        keys.put("LossAggregation", "algorithm.loss_agg_mode");
        keys.put("TokenTruncatedWeights", WEIGHTS + "token");
        keys.put("SequenceTruncatedWeights", WEIGHTS + "sequence");
        keys.put("TokenBandWeights", WEIGHTS + "token, algorithm.weights.threshold=lower_upper");
        keys.put("SequenceBandWeights", WEIGHTS + "sequence, algorithm.weights.threshold=lower_upper");
        keys.put("BatchNormalizedWeights", "algorithm.weights.batch_normalize");
        keys.put("ToprWeights", OBJECTIVE + "topr");
        keys.put("AspoWeights", OBJECTIVE + "aspo");
        keys.put("DispoWeights", OBJECTIVE + "dispo");
        keys.put("RejectionMode", "algorithm.rejection.rollout_rs");
        keys.put("RejectionRule", "algorithm.rejection.rollout_rs_threshold");
        keys.put("SecondMomentMask", MASKS + "m2po");
        keys.put("SecondMomentFigure", "always");
        keys.put("StalenessLimit", "algorithm.staleness.max_versions");
        keys.put("AgeLimit", "algorithm.staleness.max_age_ms");
        keys.put("StalenessDamping", "algorithm.staleness.half_life_versions");
        keys.put("AdmissionCapacity", "./millrace conformance");
        keys.put("TrustRegionBounds", MASKS + "trust_region, " + MASKS + "sampled_trust_region");
        keys.put("DivergenceFilter", MASKS + "divergence_filter, " + WEIGHTS + "clamp");
        keys.put("EffectiveSampleSize", "algorithm.ess.weights");
        keys.put("Ess", "algorithm.ess");
        keys.put("EssStepScale", "algorithm.ess.rule");
        keys.put("OffPolicyOptimalBaseline", "algorithm.advantage.kind=opob");
        keys.put("RatioVariancePenalty", OBJECTIVE + "r2vpo");
        keys.put("VarianceMultiplier", OBJECTIVE + "r2vpo");
        keys.put("QueryMultipliers", OBJECTIVE + "quatro");
        keys.put("ProximalApproximation", "algorithm.mode=interpolated, " + WEIGHTS + "interpolated");
        keys.put("MissingOldLogProbs", "algorithm.missing_old_log_probs");
        keys.put("KlPlan", "algorithm.kl.kl_loss_type");
        keys.put("KlTermEvaluation", "algorithm.kl.kind=in_loss");
        keys.put("InRewardPenalty", "algorithm.kl.kind=in_reward");
        keys.put("KlInReward", "algorithm.kl.kind=in_reward");
        keys.put("AverageCentredPenalty", "algorithm.kl.kind=centred");
        keys.put("KlController", "algorithm.kl.coefficient.kind");
        keys.put("PassAtK", REWARDS + "pass_at_k");
        keys.put("BernoulliExtrapolation", REWARDS + "pass_at_k");
        keys.put("BetaBinomialFit", REWARDS + "pass_at_k");
        keys.put("LengthTrapReport", MASKS + "length_trap");
        keys.put("DecisionTree", "./millrace doctor");
        keys.put("OffPolicyDiagnostics", "./millrace doctor");
        keys.put("GradientPower", "./millrace doctor");
        return keys;
    }
}
