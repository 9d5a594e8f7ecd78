package dev.millrace.docs.reference;

import dev.millrace.api.catalogue.Door;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.stages.AlgorithmParts;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
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

    /** Public classes that are not methods: inputs, results, settings, parts of a method that has its own entry. */
    private static final Set<String> PARTS = Set.of(
            "ClipRange",
            "StepStaleness",
            "KlConfig",
            "CoefficientConfig",
            "ReferenceConfig",
            "DiagnosticsCourse",
            "EscalationBounds",
            "Pitfall",
            "StepFacts",
            "SignedWeightMethod",
            "RatioWeights",
            "WeightMethod",
            "WeightSummary",
            "RejectionAggregation",
            "RejectionDivergence",
            "SecondMoment",
            "FullDistributions",
            "PositionalTotalVariation",
            "StoredDistributions",
            "TopKDistributions",
            "TrustRegionSummary",
            "BatchVersions",
            "StalenessSummary",
            "VersionSpan",
            "FilterSummary",
            "ReferenceEffectiveSampleSize",
            "ReferenceOptimalBaseline",
            "SequenceLogWeights",
            "WeightedAverage",
            "QueryTrustRegion",
            "KlDivergence",
            "KlEstimator",
            "KlForm",
            "KlMisuseException",
            "KlResult",
            "KlSampling",
            "KlUse",
            "KlWeighting",
            "LengthPenalty",
            "Cause",
            "CorrectionInForce",
            "Diagnosis",
            "AlgorithmPatch",
            "Prescription",
            "DiagnosticBounds",
            "DiagnosticsStep",
            "DiagnosticsWindow",
            "Fix",
            "OffPolicyReport",
            "PolicyGap",
            "TreeBounds",
            "AdvantagesAndReturns",
            "LoneSequence",
            "OutcomeAdvantage",
            "Credit",
            "ActedOn",
            "Anchor",
            "BypassMode",
            "GlobalBatch",
            "Objective",
            "ObjectiveInput",
            "ObjectiveResult",
            "ObjectiveInForce",
            "UpdateFacts",
            "VerlNames");

    /** What chooses a method in a configuration. */
    private static final Map<String, String> KEYS = keys();

    private MethodsPage() {}

    static String text() {
        StringBuilder page =
                new StringBuilder("# Method catalogue\n\nEvery method of the `corrections` library: what its class "
                        + "says of itself, where it comes from, and the key that chooses it\nin a run.\n\n"
                        + "Letters: A advantage; r, ρ a ratio of two policies; w a weight; sg stop-gradient. *Proximal*, *current* and "
                        + "*behavior* are\n[the three policies](../concepts/three-policies.md) and the one being changed."
                        + "\n\n");
        List<String> used = new ArrayList<>();
        SECTIONS.forEach((title, name) -> {
            page.append("## ").append(title).append("\n\n");
            for (SourceFile source : SourceFile.inPackage(ROOT + name)) {
                if (source.isPublic()
                        && !PARTS.contains(source.simpleName())
                        && !source.simpleName().equals("package-info")) {
                    used.add(source.simpleName());
                    entry(name, source, page);
                }
            }
        });
        if (!KEYS.keySet().containsAll(used)) {
            used.removeAll(KEYS.keySet());
            throw new AssertionError(
                    "nothing chooses these methods: give each a kind, name it among the parts of another"
                            + " method, or delete it: " + used);
        }
        presets(page);
        KEYS.keySet().stream().filter(key -> !used.contains(key)).findFirst().ifPresent(stranger -> {
            throw new AssertionError("a key is given for " + stranger + ", which is no method of the library");
        });
        return page.toString().stripTrailing() + "\n";
    }

    private static void entry(String packageName, SourceFile source, StringBuilder page) {
        Javadoc doc = Javadoc.ofType(source);
        page.append("### ")
                .append(source.simpleName())
                .append("\n\n")
                .append(doc.first())
                .append("\n\n");
        doc.after("Unit of correction")
                .or(() -> doc.after("Unit"))
                .ifPresent(unit -> page.append("- Unit: ")
                        .append(unit.replaceAll("(?s)[.;:](\\s.*|$)", ""))
                        .append(".\n"));
        doc.after("Source")
                .ifPresent(origin -> page.append("- Source: ").append(origin).append('\n'));
        String key = KEYS.get(source.simpleName());
        page.append("- Key: ")
                .append("`" + String.valueOf(key).replace(", ", "`, `") + "`")
                .append("\n- Class: [`")
                .append(packageName)
                .append('.')
                .append(source.simpleName())
                .append("`](")
                .append(source.link())
                .append(")\n\n");
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
        sections.put("Rejection", "rejection");
        sections.put("Second-moment mask (M2PO)", "m2po");
        sections.put("Trust region masking", "trm");
        sections.put("Staleness", "staleness");
        sections.put("Effective sample size, step scale, baseline (VCPO)", "vcpo");
        sections.put("Ratio variance (R²VPO)", "r2vpo");
        sections.put("One multiplier per prompt (QUATRO)", "quatro");
        sections.put("Proximal policy without a forward pass", "proximal");
        sections.put("Forced tokens", "forced");
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
