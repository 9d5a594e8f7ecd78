package dev.millrace.docs.reference;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.stages.AlgorithmParts;
import dev.millrace.workloads.JsonFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The method catalogue: kinds of the algorithm's extension points with formula and source from their Javadoc, and other settings. */
final class MethodsPage {
    private static final String ROOT = "dev.millrace.corrections.";
    private static final AlgorithmParts PARTS_OF_ALGORITHM = new AlgorithmParts();
    private static final Pattern CODE = Pattern.compile("`([^`]+)`");
    private static final Pattern ARXIV = Pattern.compile("^.*?arXiv [0-9.]+[0-9](, section [0-9.]+)?\\)?");

    /** Classes with the formula and the source of a kind, where they are not its record. */
    private static final Map<String, String> DETAILS = Map.ofEntries(
            Map.entry("Token", "weights.TokenTruncatedWeights"),
            Map.entry("Sequence", "weights.SequenceTruncatedWeights"),
            Map.entry("M2po", "m2po.SecondMomentMask"),
            Map.entry("Opob", "vcpo.OffPolicyOptimalBaseline"),
            Map.entry("DivergenceFilterMask", "filter.DivergenceFilter"),
            Map.entry("PassAtKFigure", "length.PassAtK"),
            Map.entry("BypassPpoClip", "objective.BypassMode"),
            Map.entry("BypassReinforce", "objective.BypassMode"));

    private static final Path MEASURED = Path.of("measurements", "methods.csv");

    /** Classes of settings that are not kinds. */
    private static final Map<String, List<String>> SETTINGS = settings();

    private static final String ABSTRACT = "no formula; ";

    /** Methods of the surveys that the library does not have. */
    private static final List<String> ABSENT = List.of(
            absent(
                    "ST-PPO's clipping-bias correction",
                    "arXiv 2511.20718",
                    ABSTRACT + "`weights: turn_geometric` has its ratio of a turn"),
            absent("ESPO", "arXiv 2512.00499", ABSTRACT + "groups tokens by entropy"),
            absent(
                    "QuRL's adaptive clipping range",
                    "arXiv 2602.13953",
                    ABSTRACT + "`generator.precision: int8` samples quantized; weights or rejection correct for it"),
            absent("QaRL's TBPO", "arXiv 2604.07853", ABSTRACT + "clips negative answers twice, per sequence"),
            absent("GAC", "arXiv 2603.01501", ABSTRACT + "removes what a gradient shares with the one before"),
            absent(
                    "VACO, entropy-scaled trust region",
                    "arXiv 2603.01365, 2607.22186",
                    ABSTRACT + "scale a trust region by variance or entropy"),
            absent(
                    "A-3PO's saved forward pass",
                    "arXiv 2512.06547",
                    "coefficients need the current log-probs first; `mode: recorded` needs none under a linear objective"),
            absent(
                    "verl's variance proxy 3",
                    "verl `compute_variance_proxy_metrics`",
                    "subtracts figures of different scales; steps record `gradient_power` and `grad_norm`"),
            absent(
                    "shadow mask distillation",
                    "arXiv 2605.06850",
                    "replays positions that a compressed KV cache kept; the generator's keeps all"),
            absent(
                    "LASER-D, LASER-DE",
                    "arXiv 2505.15612",
                    "targets per difficulty over a run; only advantages keep figures from batch to batch"),
            absent(
                    "anchor length of a prompt",
                    "",
                    "a figure per prompt over batches; `rewards: anchor_length` takes the group's shortest correct answer"),
            absent(
                    "distillation as a loss",
                    "arXiv 2506.08946",
                    "use `kl: in_loss` with the teacher as `scorer.reference`; at the first update its gradient is that of `advantage: distillation` under token weights"),
            absent(
                    "distillation over a teacher's distribution (GKD)",
                    "arXiv 2306.13649",
                    "scores have the sampled token's log-prob only"),
            absent(
                    "logit fusion",
                    "Zhang et al. 2026",
                    "a generator samples from one policy; `weights: single_side_cap` and `shaped` are its weights"),
            absent(
                    "k local updates before a version",
                    "",
                    "use `algorithm.minibatches: k` over a batch k times as large; a manifest has one batch"),
            absent(
                    "replay buffer, prioritized replay",
                    "arXiv 2604.08706, 2604.16918",
                    "a rollout is trained on once; `algorithm.epochs` repeats a batch, `replay --retrain` a run"),
            absent(
                    "PPO-EWMA's proximal policy",
                    "Hilton et al. 2022 (arXiv 2110.00641); arXiv 2605.12070",
                    "a second set of weights in every checkpoint; see `missing_old_log_probs`"),
            absent(
                    "larger groups for hard prompts",
                    "",
                    "`admission.group_size` is one number; `admission.resample_below` releases a hard prompt again"),
            absent(
                    "curriculum by outcomes",
                    "",
                    "prompts are a function of seed and position; `admission.resample_below` repeats hard ones, `task.shuffle: false` keeps the data's order"),
            absent(
                    "SAO's critic",
                    "arXiv 2607.07508",
                    ABSTRACT + "`critic: value_head` is PPO's, and SAO's mask is `masks: dis`"),
            absent(
                    "a critic with layers of its own",
                    "",
                    "a second set of weights in every version; `critic: value_head` shares the policy's layers"),
            absent(
                    "values of prefixes, VinePPO, segments by marginal utility",
                    "arXiv 2410.01679",
                    "sample from an answer's prefixes, and requests begin with a prompt; rewards of turns and tokens act by `credit`"),
            absent(
                    "SPO's prioritized sampling",
                    "arXiv 2509.13232",
                    "prompts are a function of seed and position; its values are `advantage: value_tracker`"),
            absent(
                    "MulIS",
                    "notes by tongyx361",
                    "needs log-probs under every version that sampled an answer; scores have those of a token's own and of the newest"),
            absent("ECHO", "arXiv 2609.20715", "its loss is on the environment's tokens, which are never trained on"),
            absent(
                    "KL in the loss under a clipped ratio",
                    "zoeyli.com",
                    "clipped, its gradient stops where the policy has moved; `kl: in_loss` uses the whole ratio, bounded to e^20; `in_reward` is clipped with the objective"),
            absent(
                    "KL figures without forced tokens",
                    "",
                    "`masks: forced_token` takes them out of update and later figures; generators force none"),
            absent(
                    "QeRL",
                    "arXiv 2510.11696",
                    "schedules its noise; `generator.precision: int8` quantizes by a fixed rule"),
            absent(
                    "sampling in float16 or fp8",
                    "arXiv 2510.26788",
                    "the own engine has `f32`, `bf16` and `int8`; see `engine.kind` for others"),
            absent("staleness of a drafter (ReSpec)", "arXiv 2510.26475", "the own generator has no drafter"),
            absent(
                    "ratios after a tool's answer",
                    "",
                    "figures are per batch and lag; `weights: turn_geometric` weighs turns"),
            absent(
                    "TV × χ² quadrant, correlation of probabilities as a meter",
                    "",
                    "`doctor` judges by k1, k3, χ² and the correlation; `experiment staleness` counts outcomes by quadrant"),
            absent("lengths by difficulty while training", "", "`evaluate` bins held-out answers only"),
            absent(
                    "conjectured laws: bias by router flips, mismatch budget",
                    "surveys",
                    "claims about many runs of large models; `doctor mismatch` measures flips and gaps"),
            absent(
                    "mean staleness from utilisation and queue",
                    "Applied Compute 2026",
                    "`experiment lag-law` sets the lag; `load-test` measures it"),
            absent(
                    "token match rate",
                    "",
                    "always 1: sampled ids are trained; `millrace_gateway_branches_total` counts prompts that an agent rewrote"));

    /** @param source empty if only the surveys have it */
    private static String absent(String method, String source, String why) {
        return filled(method, source.isEmpty() ? "surveys" : source, why);
    }

    /** @throws AssertionError if a cell is empty */
    private static String filled(String... cells) {
        if (Arrays.stream(cells).anyMatch(String::isBlank)) {
            throw new AssertionError("the method catalogue has an empty cell in " + List.of(cells)
                    + "; a formula is a code span with an operator in the first paragraph of the class's Javadoc, a source"
                    + " follows \"Source: \"");
        }
        return Tables.row(cells);
    }

    private MethodsPage() {}

    /** Keys of the extension points whose kinds are listed here. */
    static Set<String> keys() {
        return PARTS_OF_ALGORITHM.extensionPoints().stream()
                .map(ExtensionPoint::key)
                .collect(Collectors.toSet());
    }

    static String text() throws IOException {
        Map<String, Measured> measured = measured();
        JsonNode run = JsonFile.read(Path.of("measurements", "methods.json"), JsonNode.class);
        JsonNode origin = run.path("origin");
        long tokens = measured.values().iterator().next().tokens();
        StringBuilder page = new StringBuilder(
                "# Method catalogue\n\nThe methods of the `corrections` library: kinds of `algorithm.*` keys, then other "
                        + "settings.\n\nA advantage; r, ρ a ratio of two policies; s a sequence's ratio; w a weight; sg stop-gradient; π the current, μ "
                        + "the behavior policy. See [three policies](../concepts/three-policies.md).\n\n"
                        + "- Golden case: *reference*, outputs of a public implementation; *hand*, numbers by hand; *twin*, a "
                        + "naive implementation.\n- Acts on: share of trained tokens as the stage reports it: reward changed, "
                        + "advantage not 0, weight bounded or zeroed, masked; for objectives clipped, gated, penalised or "
                        + "rejected.\n- Cost: median processor time per trained token.\n\nBoth at default settings, on recorded "
                        + "batches of about "
                        + tokens / Math.max(1, run.at("/settings/seeds").size())
                        + " trained tokens up to " + run.at("/settings/lag").asInt() + " versions old "
                        + "([rows](../measurements/methods.csv)); "
                        + origin.path("processors").asInt() + " x "
                        + origin.path("machine").asText() + ", load average "
                        + Math.round(origin.path("loadAverage").asDouble())
                        + ", " + origin.path("jvm").asText() + ", commit "
                        + origin.path("commit").asText() + ":\n\n```\n"
                        + origin.path("command").asText() + "\n```\n");
        for (ExtensionPoint point : PARTS_OF_ALGORITHM.extensionPoints()) {
            page.append("\n## ")
                    .append(point.key())
                    .append("\n\n")
                    .append(Tables.head("kind", "what", "formula", "source", "golden case", "acts on", "cost"));
            PARTS_OF_ALGORITHM.kinds().stream()
                    .filter(kind -> kind.extensionPoint().equals(point.type()))
                    .forEach(kind -> page.append(row(point.key(), kind, measured)));
        }
        page.append("\n## Other settings\n\n").append(Tables.head("key", "class", "what"));
        SETTINGS.forEach((key, classes) -> classes.forEach(name -> {
            SourceFile source = find(name);
            page.append(filled(
                    Tables.code(key),
                    link(source.simpleName(), source),
                    Tables.firstSentence(Javadoc.ofType(source).first())));
        }));
        presets(page);
        page.append("\n## Not implemented\n\nNo formula: only the abstract was read, which has none.\n\n")
                .append(Tables.head("method", "source", "why"));
        ABSENT.forEach(page::append);
        return page.toString();
    }

    /** Sums over the recorded batches, and nanoseconds per trained token. */
    private record Measured(long tokens, long acted, double nanos) {
        String cost() {
            return String.format(Locale.ROOT, nanos < 10 ? "%.1f ns" : "%.0f ns", nanos);
        }

        String share() {
            double percent = 100.0 * acted / tokens;
            return acted == 0
                    ? "0 %"
                    : percent < 0.1
                            ? "< 0.1 %"
                            : String.format(Locale.ROOT, percent < 10 ? "%.1f %%" : "%.0f %%", percent);
        }
    }

    /** By key and kind. */
    private static Map<String, Measured> measured() throws IOException {
        List<String> lines = Files.readAllLines(MEASURED);
        List<String> names = List.of(lines.get(0).split(","));
        Map<String, Measured> measured = new LinkedHashMap<>();
        for (String line : lines.subList(1, lines.size())) {
            String[] cells = line.split(",");
            measured.put(
                    cells[names.indexOf("key")] + " " + cells[names.indexOf("kind")],
                    new Measured(
                            Long.parseLong(cells[names.indexOf("trained_tokens")]),
                            Long.parseLong(cells[names.indexOf("acted_on")]),
                            Double.parseDouble(cells[names.indexOf("ns_per_token")])));
        }
        return measured;
    }

    private static String row(String key, Kind kind, Map<String, Measured> measured) {
        SourceFile source = SourceFile.of(kind.type());
        List<SourceFile> texts = Stream.concat(
                        Optional.ofNullable(DETAILS.get(kind.type().getSimpleName())).map(MethodsPage::find).stream(),
                        Stream.of(source))
                .toList();
        Measured found = measured.get(key + " " + kind.name());
        if (found == null) {
            throw new AssertionError(MEASURED + " has no row of " + key + " " + kind.name()
                    + "; measure anew: ./millrace experiment methods");
        }
        return filled(
                link(Tables.code(kind.name()), source)
                        + kind.aliases().stream()
                                .map(name -> ", " + Tables.code(name))
                                .collect(Collectors.joining()),
                kind.meaning().replaceAll("\\.$", ""),
                first(texts.stream().map(text -> formula(Javadoc.ofType(text).first()))),
                first(texts.stream()
                        .map(text -> Javadoc.ofType(text)
                                .after("Source")
                                .map(MethodsPage::origin)
                                .orElse(""))),
                GoldenCaseLinks.of(
                                key,
                                Stream.concat(Stream.of(kind.name()), kind.aliases().stream())
                                        .toList(),
                                texts.stream().map(SourceFile::simpleName).toList())
                        .orElse(""),
                found.share(),
                found.cost());
    }

    private static String first(Stream<String> candidates) {
        return candidates.filter(candidate -> !candidate.isEmpty()).findFirst().orElse("");
    }

    /** The first formula of a text: a code span with an operator. */
    private static String formula(String text) {
        return CODE.matcher(text)
                .results()
                .map(MatchResult::group)
                .filter(code -> code.length() > 9 && code.matches(".*[=−<>/·^].*"))
                .findFirst()
                .orElse("");
    }

    /** The first publication that a source names. */
    private static String origin(String text) {
        String flat = text.replaceAll("\\s+", " ");
        return ARXIV.matcher(flat)
                .results()
                .map(MatchResult::group)
                .findFirst()
                .orElseGet(() -> flat.replaceAll("([,;]|(?<!al)\\.)(\\s.*|$)", ""))
                .replaceAll(", \"[^\"]*\"|, \\*[^*]*\\*", "");
    }

    private static String link(String text, SourceFile source) {
        return "[" + text + "](" + source.link() + ")";
    }

    private static SourceFile find(String name) {
        String simple = name.substring(name.lastIndexOf('.') + 1);
        return SourceFile.inPackage(ROOT + name.substring(0, name.lastIndexOf('.'))).stream()
                .filter(source -> source.simpleName().equals(simple))
                .findFirst()
                .orElseThrow(() -> new AssertionError("the library has no class " + name));
    }

    private static void presets(StringBuilder page) {
        page.append(
                "\n## Presets\n\nverl's names and thresholds, for `algorithm.variant` and `./millrace correct --preset NAME`; other thresholds "
                        + "in brackets:\n`decoupled_geo_rs(0.99_1.01)`.\n\n");
        page.append(Tables.head("preset", "parameters"));
        for (Preset preset : Preset.values()) {
            page.append(filled(
                    Tables.code(preset.label()),
                    preset.parameters().isEmpty()
                            ? "none"
                            : preset.parameters().entrySet().stream()
                                    .map(parameter -> Tables.code(parameter.getKey() + "=" + parameter.getValue()))
                                    .collect(Collectors.joining(", "))));
        }
    }

    private static Map<String, List<String>> settings() {
        Map<String, List<String>> settings = new LinkedHashMap<>();
        settings.put("algorithm.loss_agg_mode", List.of("objective.LossAggregation"));
        settings.put(
                "algorithm.weights.threshold=lower_upper",
                List.of("weights.TokenBandWeights", "weights.SequenceBandWeights"));
        settings.put("algorithm.weights.batch_normalize", List.of("weights.BatchNormalizedWeights"));
        settings.put("algorithm.rejection.rollout_rs", List.of("rollout.RejectionMode"));
        settings.put("algorithm.staleness.max_versions", List.of("staleness.StalenessLimit"));
        settings.put("algorithm.staleness.max_age_ms", List.of("staleness.AgeLimit"));
        settings.put("algorithm.staleness.half_life_versions", List.of("staleness.StalenessDamping"));
        settings.put("algorithm.critic", List.of("objective.ValueLoss"));
        settings.put("algorithm.ess", List.of("vcpo.EffectiveSampleSize", "vcpo.Ess"));
        settings.put("algorithm.mode=interpolated", List.of("ratio.ProximalApproximation"));
        settings.put("algorithm.missing_old_log_probs", List.of("ratio.MissingOldLogProbs"));
        settings.put("algorithm.kl.kl_loss_type", List.of("kl.KlPlan"));
        settings.put("algorithm.kl.kind=in_reward", List.of("kl.InRewardPenalty"));
        settings.put("algorithm.kl.kind=centred", List.of("kl.AverageCentredPenalty"));
        settings.put("algorithm.kl.coefficient.kind", List.of("kl.CoefficientConfig"));
        settings.put(
                "./millrace doctor",
                List.of("diagnostics.DecisionTree", "diagnostics.OffPolicyDiagnostics", "diagnostics.GradientPower"));
        return settings;
    }
}
