package dev.millrace.docs.reference;

import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.preset.Preset;
import dev.millrace.runtime.config.Choice;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** The method catalogue: what each class of the corrections library says of itself, and the key that chooses it. */
final class MethodsPage {
    private static final String ROOT = "dev.millrace.corrections.";
    private static final String OBJECTIVE = "learner.step.objective.kind=";
    private static final String CORRECTIONS = "topology.corrections.";
    private static final String ROLLOUT = CORRECTIONS + "rollout_correction.";

    /** Title and package of a section. */
    private static final Map<String, String> SECTIONS = sections();

    /** Public classes that are not methods: inputs, results, settings, parts of a method that has its own entry. */
    private static final Set<String> PARTS = Set.of(
            "SignedWeightMethod",
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
            "Divergence",
            "FilterLevel",
            "FilterSummary",
            "ReferenceEffectiveSampleSize",
            "ReferenceOptimalBaseline",
            "SequenceLogWeights",
            "WeightedAverage",
            "RatioVariance",
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
            "TokenAdvantages",
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

    /** What chooses a method in a configuration. A class without an entry has no key. */
    private static final Map<String, String> KEYS = keys();

    private MethodsPage() {}

    static String text() {
        StringBuilder page =
                new StringBuilder("# Method catalogue\n\nEvery method of the `corrections` library: what its class "
                        + "says of itself, where it comes from, and the key that chooses it\nin a run. *No key yet* means that the method "
                        + "is in the library and cannot be chosen in a configuration.\n\n"
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
        presets(page);
        requireEveryObjective();
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
                .append(key == null ? "*no key yet*" : "`" + key.replace(", ", "`, `") + "`")
                .append("\n- Class: [`")
                .append(packageName)
                .append('.')
                .append(source.simpleName())
                .append("`](")
                .append(source.link())
                .append(")\n\n");
    }

    private static void presets(StringBuilder page) {
        page.append("## Presets\n\nverl's names, with its thresholds. `")
                .append(ROLLOUT)
                .append("preset` takes those that begin with "
                        + "`decoupled`; those that begin with `bypass` are\nchosen with the objective `bypass_ppo_clip` or "
                        + "`bypass_reinforce`. `./millrace correct --preset NAME` takes all.\n\n");
        page.append(Tables.head("preset", "parameters"));
        for (Preset preset : Preset.values()) {
            page.append(Tables.row(
                    Tables.code(preset.label()),
                    preset.parameters().entrySet().stream()
                            .map(parameter -> Tables.code(parameter.getKey() + "=" + parameter.getValue()))
                            .collect(Collectors.joining(", "))));
        }
    }

    private static void requireEveryObjective() {
        for (String kind : Choice.of(Objective.class).orElseThrow().kinds()) {
            boolean found = KEYS.values().stream()
                    .anyMatch(key -> List.of(key.split(", ")).contains(OBJECTIVE + kind));
            if (!found) {
                throw new AssertionError("the catalogue has no method for " + OBJECTIVE + kind);
            }
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
        sections.put("Divergence filter", "filter");
        sections.put("KL divergence", "kl");
        sections.put("Length", "length");
        sections.put("Diagnostics", "diagnostics");
        return sections;
    }

    private static Map<String, String> keys() {
        Map<String, String> keys = new LinkedHashMap<>();
        keys.put("Reinforce", OBJECTIVE + "reinforce");
        keys.put("PpoClip", OBJECTIVE + "ppo_clip");
        keys.put("DecoupledPpo", OBJECTIVE + "decoupled_ppo");
        keys.put("Gspo", OBJECTIVE + "gspo");
        keys.put("GspoToken", OBJECTIVE + "gspo_token");
        keys.put("Gmpo", OBJECTIVE + "gmpo");
        keys.put("DppoTv", OBJECTIVE + "dppo_tv");
        keys.put("DppoKl", OBJECTIVE + "dppo_kl");
        keys.put("Sapo", OBJECTIVE + "sapo");
        keys.put("SequenceSapo", OBJECTIVE + "sequence_sapo");
        keys.put("Cispo", OBJECTIVE + "cispo");
        keys.put("Dro", OBJECTIVE + "dro");
        keys.put("KlCov", OBJECTIVE + "kl_cov");
        keys.put("ClipCov", OBJECTIVE + "clip_cov");
        keys.put("M2poSurrogate", OBJECTIVE + "m2po");
        keys.put("Oapl", OBJECTIVE + "oapl");
        keys.put("R2vpo", OBJECTIVE + "r2vpo");
        keys.put("Quatro", OBJECTIVE + "quatro");
        keys.put("Topr", OBJECTIVE + "topr");
        keys.put("Aspo", OBJECTIVE + "aspo");
        keys.put("Dispo", OBJECTIVE + "dispo");
        keys.put("Ipo", OBJECTIVE + "ipo");
        keys.put("Luspo", OBJECTIVE + "luspo");
        keys.put("P3o", OBJECTIVE + "p3o");
        keys.put("Vespo", OBJECTIVE + "vespo");
        keys.put("BypassPpoClip", OBJECTIVE + "bypass_ppo_clip");
        keys.put("BypassReinforce", OBJECTIVE + "bypass_reinforce");
        keys.put("LossAggregation", "learner.step.aggregation.kind");
        keys.put("Grpo", CORRECTIONS + "advantage.divide_by_std");
        keys.put("SoftMaximum", "learner.step.baseline.kind=soft_maximum");
        keys.put("TokenTruncatedWeights", ROLLOUT + "rollout_is=token");
        keys.put("SequenceTruncatedWeights", ROLLOUT + "rollout_is=sequence");
        keys.put("TokenBandWeights", ROLLOUT + "rollout_is=token, " + ROLLOUT + "rollout_is_threshold=lower_upper");
        keys.put(
                "SequenceBandWeights",
                ROLLOUT + "rollout_is=sequence, " + ROLLOUT + "rollout_is_threshold=lower_upper");
        keys.put("ToprWeights", OBJECTIVE + "topr");
        keys.put("AspoWeights", OBJECTIVE + "aspo");
        keys.put("DispoWeights", OBJECTIVE + "dispo");
        keys.put("RejectionMode", ROLLOUT + "rollout_rs");
        keys.put("RejectionRule", ROLLOUT + "rollout_rs_threshold");
        keys.put("SecondMomentMask", CORRECTIONS + "m2po.enabled");
        keys.put("SequenceMask", CORRECTIONS + "sequence_mask.enabled");
        keys.put("StalenessLimit", CORRECTIONS + "staleness.max_versions");
        keys.put("StalenessWeights", CORRECTIONS + "staleness.half_life_versions");
        keys.put("AdmissionCapacity", "admission.eta");
        keys.put("EffectiveSampleSize", CORRECTIONS + "ess.weights");
        keys.put("EssStepScale", CORRECTIONS + "ess.rule");
        keys.put("OffPolicyOptimalBaseline", "learner.step.baseline.kind=opob");
        keys.put("RatioVariancePenalty", OBJECTIVE + "r2vpo");
        keys.put("VarianceMultiplier", OBJECTIVE + "r2vpo");
        keys.put("QueryMultipliers", OBJECTIVE + "quatro");
        keys.put("ProximalApproximation", "learner.step.proximal=interpolated");
        keys.put("KlPlan", "learner.step.kl.kind");
        keys.put("KlTermEvaluation", "learner.step.kl.kind=in_loss");
        keys.put("InRewardPenalty", "learner.step.kl.kind=in_reward");
        keys.put("KlController", "learner.step.kl.coefficient.kind");
        keys.put("DecisionTree", "./millrace doctor");
        keys.put("OffPolicyDiagnostics", "./millrace doctor");
        return keys;
    }
}
