package dev.millrace.corrections.algorithm;

import dev.millrace.corrections.objective.BypassPpoClip;
import dev.millrace.corrections.objective.BypassReinforce;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.rollout.RolloutCorrectionSettings;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import dev.millrace.corrections.weights.Token;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * One of verl's presets with its thresholds, as text: {@code decoupled_geo_rs}, {@code decoupled_geo_rs(0.99_1.01)}, in the order
 * of {@link Preset#parameters}, or by name, {@code decoupled_geo_rs(rs_threshold=0.99_1.01)}.
 */
final class PresetText {
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
            String name = equals < 0 ? names.get(i) : text.substring(0, equals).strip();
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
                .weights(None.defaults())
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
            return None.defaults();
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
