package dev.millrace.corrections.algorithm;

import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.Rloo;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.Aspo;
import dev.millrace.corrections.objective.BypassPpoClip;
import dev.millrace.corrections.objective.BypassReinforce;
import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.Dispo;
import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.Gmpo;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.M2poSurrogate;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.objective.Sapo;
import dev.millrace.corrections.objective.Topr;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.stage.LengthGuardConfig;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.vcpo.Opob;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import dev.millrace.corrections.weights.Token;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Algorithms by name, each one validated value. A name may be overridden part by part; verl's presets stand for their weights and
 * rejection over {@code default} without masks and controls, with thresholds where they are given:
 * {@code decoupled_geo_rs(0.99_1.01)}.
 */
public final class NamedAlgorithms {
    private static final Ess UNDAMPED = new Ess(Ess.Rule.NONE, Ess.Weights.RAW, 1.0);

    /** Policy gradient under token weights truncated at 2, M2PO's mask at 0.04, steps by the square root of the ESS. */
    static final Algorithm DEFAULT = new Algorithm(
            "default",
            Mode.DECOUPLED,
            List.of(),
            Grpo.defaults(),
            StalenessRules.defaults(),
            MissingOldLogProbs.RECOMPUTE,
            Token.defaults(),
            Rejection.defaults(),
            List.of(M2po.defaults()),
            new Reinforce(),
            new LossAggregation.AsPublished(),
            new KlConfig.Off(),
            EntropyConfig.defaults(),
            new CriticConfig.Off(),
            Ess.defaults(),
            new LengthGuardConfig.Off(),
            1,
            1,
            RoutingReplay.NONE);

    private static final Map<String, Algorithm> BY_NAME = new LinkedHashMap<>();

    static {
        put(DEFAULT);
        Algorithm plain = DEFAULT.with(a -> a.masks().ess(UNDAMPED));
        put(plain.with(a -> a.variant("none").weights(new None())));
        put(plain.with(a -> a.variant("token_tis")));
        put(plain.with(a -> a.variant("sequence_tis").weights(Sequence.defaults())));
        put(plain.with(a -> a.variant("icepop").weights(new Token("0.5_5.0", false))));
        Algorithm clipped = plain.with(a -> a.objective(PpoClip.defaults()).minibatches(2));
        put(clipped.with(a -> a.variant("ppo")));
        put(clipped.with(
                a -> a.variant("grpo").advantage(new Grpo(true)).lossAggMode(new LossAggregation.SeqMeanTokenMean())));
        put(clipped.with(a -> a.variant("dr_grpo").lossAggMode(LossAggregation.SeqMeanTokenSumNorm.defaults())));
        put(clipped.with(a -> a.variant("dapo")
                .advantage(new Grpo(true))
                .objective(new PpoClip(Anchor.OLD, 0.2, 0.28, PpoClip.DEFAULT_CLIP_RATIO_C))
                .lossAggMode(new LossAggregation.TokenMean())));
        put(clipped.with(a -> a.variant("rloo").advantage(Rloo.defaults())));
        put(clipped.with(a ->
                a.variant("decoupled_ppo").objective(DecoupledPpo.defaults()).weights(new Token("1e-9_5.0", false))));
        put(clipped.with(a -> a.variant("m2po")
                .objective(new M2poSurrogate(Anchor.BEHAVIOR))
                .weights(new None())
                .masks(M2po.defaults())));
        put(plain.with(a -> a.variant("vcpo")
                .advantage(Opob.defaults())
                .weights(Sequence.defaults())
                .ess(Ess.defaults())));
        put(clipped.with(a -> a.variant("gspo").objective(Gspo.defaults())));
        put(clipped.with(a -> a.variant("gmpo").objective(Gmpo.defaults())));
        put(clipped.with(a -> a.variant("cispo").objective(Cispo.defaults())));
        put(clipped.with(a -> a.variant("sapo").objective(Sapo.defaults())));
        // the paper's trust region is around the policy that sampled: around a recomputed one its runs collapse
        Algorithm masked = clipped.with(a -> a.weights(new None()));
        put(masked.with(
                a -> a.variant("dppo_tv").objective(new DppoTv(Anchor.BEHAVIOR, 0.2, 0.2, DppoTv.DEFAULT_TRUNCATION))));
        put(masked.with(a ->
                a.variant("dppo_kl").objective(new DppoKl(Anchor.BEHAVIOR, 0.05, 0.05, DppoTv.DEFAULT_TRUNCATION))));
        put(plain.with(a -> a.variant("topr").objective(new Topr()).weights(new None())));
        put(plain.with(a -> a.variant("aspo").objective(Aspo.defaults()).weights(new None())));
        put(plain.with(a -> a.variant("dispo").objective(Dispo.defaults()).weights(new None())));
        put(plain.with(a -> a.variant("oapl")
                .objective(Oapl.defaults())
                .advantage(new SoftMaximum(Oapl.defaults().beta()))
                .weights(new None())));
        for (Preset preset : Preset.values()) {
            put(PresetText.of(preset.label()).orElseThrow().over(plain).with(a -> a.variant(preset.label())));
        }
    }

    private NamedAlgorithms() {}

    private static void put(Algorithm algorithm) {
        if (BY_NAME.put(algorithm.variant(), algorithm) != null) {
            throw new IllegalStateException("two algorithms are called " + algorithm.variant());
        }
    }

    /** All of them, verl's presets at the thresholds that verl gives them last. */
    public static Map<String, Algorithm> all() {
        return Collections.unmodifiableMap(BY_NAME);
    }

    /**
     * The algorithm of a name, or of one of verl's presets with thresholds.
     *
     * @throws IllegalArgumentException if there is none; it says which there are
     */
    public static Algorithm of(String name) {
        Algorithm named = BY_NAME.get(name.strip());
        if (named != null) {
            return named;
        }
        Algorithm plain = DEFAULT.with(a -> a.masks().ess(UNDAMPED));
        return PresetText.of(name)
                .map(preset -> preset.over(plain).with(a -> a.variant(name.strip())))
                .orElseThrow(() -> new IllegalArgumentException("variant must be one of "
                        + String.join(", ", BY_NAME.keySet()) + ", verl's presets with thresholds where wanted, such as"
                        + " decoupled_geo_rs(0.99_1.01): '" + name + "'"));
    }

    /**
     * A preset's weights and rejection in the place of an algorithm's own.
     *
     * @return empty if the text names no preset
     * @throws IllegalArgumentException if it names one with thresholds that it does not have, or that does not go with the rest
     */
    public static Optional<Algorithm> withPreset(Algorithm base, String preset) {
        return PresetText.of(preset).map(text -> text.over(base));
    }

    /** The names of the presets. */
    public static List<String> presets() {
        return Arrays.stream(Preset.values()).map(Preset::label).toList();
    }

    /**
     * One of verl's presets with its thresholds, as text: {@code decoupled_geo_rs}, {@code decoupled_geo_rs(0.99_1.01)}, in the order
     * of {@link Preset#parameters}, or by name, {@code decoupled_geo_rs(rs_threshold=0.99_1.01)}.
     */
    static final class PresetText {
        private static final Pattern FORM = Pattern.compile("([a-z0-9_]+)\\s*(?:\\(([^()]*)\\))?");

        private final Preset preset;
        private final RolloutCorrectionSettings settings;

        private PresetText(Preset preset, RolloutCorrectionSettings settings) {
            this.preset = preset;
            this.settings = settings;
        }

        /**
         * The preset that a text names; empty if it names none.
         *
         * @throws IllegalArgumentException if it names one with thresholds that it does not have
         */
        static Optional<PresetText> of(String text) {
            Matcher matcher = FORM.matcher(text.strip());
            if (!matcher.matches()) {
                return Optional.empty();
            }
            String label = matcher.group(1);
            Optional<Preset> named = Arrays.stream(Preset.values())
                    .filter(preset -> preset.label().equals(label))
                    .findFirst();
            String given = matcher.group(2);
            return named.map(preset -> new PresetText(
                    preset, preset.settings(given == null || given.isBlank() ? Map.of() : parameters(preset, given))));
        }

        private static Map<String, String> parameters(Preset preset, String given) {
            List<String> names = new ArrayList<>(preset.parameters().keySet());
            Map<String, String> values = new LinkedHashMap<>();
            String[] texts = given.split(",", -1);
            if (texts.length > names.size()) {
                throw new IllegalArgumentException("preset " + preset.label() + " takes "
                        + (names.isEmpty()
                                ? "no thresholds"
                                : "at most " + names.size() + " (" + String.join(", ", names) + ")")
                        + ": '" + given + "'");
            }
            for (int i = 0; i < texts.length; i++) {
                String text = texts[i].strip();
                int equals = text.indexOf('=');
                String name =
                        equals < 0 ? names.get(i) : text.substring(0, equals).strip();
                values.put(name, equals < 0 ? text : text.substring(equals + 1).strip());
            }
            return values;
        }

        /** Puts weights and rejection of the preset in the place of others'; a bypass preset also brings its objective. */
        Algorithm over(Algorithm base) {
            return settings.bypassMode()
                    ? bypassing(base)
                    : base.with(changes -> changes.weights(weights())
                            .rejection(new Rejection(
                                    text(settings.rolloutRs()),
                                    text(settings.rolloutRsThreshold()),
                                    ComparedPolicies.ANCHOR))
                            .ess(fitting(base.ess())));
        }

        /** What is damped by truncated weights cannot be where the preset truncates none. */
        private Ess fitting(Ess ess) {
            return weights().cap().isPresent() ? ess : new Ess(ess.rule(), Ess.Weights.RAW, ess.baseRatio());
        }

        private Algorithm bypassing(Algorithm base) {
            return base.with(changes -> changes.mode(Mode.BYPASS)
                    .weights(new None())
                    .rejection(Rejection.defaults())
                    .masks()
                    .ess(new Ess(Ess.Rule.NONE, Ess.Weights.RAW, 1.0))
                    .objective(
                            settings.lossType().equals("reinforce")
                                    ? new BypassReinforce(
                                            text(settings.rolloutIs()),
                                            settings.rolloutIs() == null ? "" : text(settings.rolloutIsThreshold()),
                                            settings.rolloutIsBatchNormalize(),
                                            text(settings.rolloutRs()),
                                            text(settings.rolloutRsThreshold()))
                                    : new BypassPpoClip(
                                            0.2,
                                            0.2,
                                            PpoClip.DEFAULT_CLIP_RATIO_C,
                                            text(settings.rolloutRs()),
                                            text(settings.rolloutRsThreshold()))));
        }

        private WeightStage weights() {
            if (settings.rolloutIs() == null) {
                return new None();
            }
            return settings.rolloutIs().equals("token")
                    ? new Token(text(settings.rolloutIsThreshold()), settings.rolloutIsBatchNormalize())
                    : new Sequence(text(settings.rolloutIsThreshold()), settings.rolloutIsBatchNormalize());
        }

        private static String text(@Nullable String setting) {
            return setting == null ? "" : setting;
        }

        @Override
        public String toString() {
            return preset.label();
        }
    }
}
