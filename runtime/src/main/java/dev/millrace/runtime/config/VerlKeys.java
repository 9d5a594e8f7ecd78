package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.objective.VerlNames;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/**
 * verl's keys within {@code algorithm}, read as the keys here that mean the same: {@code adv_estimator}, {@code loss_mode},
 * {@code clip_ratio}, {@code loss_agg_mode}, {@code rollout_correction}, {@code use_kl_loss} and related keys, at any
 * place of verl's tree. A tree that sets the same under both names is refused.
 */
public final class VerlKeys {
    private static final Map<String, String> ADVANTAGES = Map.of("rloo_vectorized", "rloo", "grpo_vectorized", "grpo");

    private final ObjectNode algorithm;
    private final Set<String> taken = new HashSet<>();

    private VerlKeys(ObjectNode algorithm) {
        this.algorithm = algorithm;
    }

    /**
     * Rewrites keys of {@code algorithm} in place.
     *
     * @throws ConfigException naming the key that cannot be translated, and why
     */
    public static void read(ObjectNode algorithm) {
        VerlKeys keys = new VerlKeys(algorithm);
        keys.rolloutCorrection();
        keys.advantage();
        keys.objective();
        keys.divergence();
        keys.move("entropy_coeff", "entropy", "bonus");
        keys.takeText("loss_agg_mode")
                .ifPresent(mode -> algorithm.put(
                        "loss_agg_mode", mode.contains("-") ? refusing(VerlNames::aggregation, mode) : mode));
        keys.take("ppo_epochs").ifPresent(epochs -> keys.put("epochs", "ppo_epochs", epochs));
    }

    private void advantage() {
        Optional<JsonNode> divides = take("norm_adv_by_std_in_grpo");
        Optional<String> estimator = takeText("adv_estimator");
        estimator.ifPresent(name -> {
            ObjectNode advantage = group("advantage", "adv_estimator");
            advantage.put(Choice.KIND, ADVANTAGES.getOrDefault(name, name));
            if (name.startsWith("grpo") && !name.equals("grpo_passk")) { // verl's default
                advantage.put("divide_by_std", divides.map(JsonNode::asBoolean).orElse(true));
            }
        });
        if (divides.isPresent()
                && estimator.filter(name -> name.startsWith("grpo")).isEmpty()) {
            throw new ConfigException(
                    "algorithm.norm_adv_by_std_in_grpo goes with algorithm.adv_estimator=grpo, which is not"
                            + " named; name it, or set algorithm.advantage.divide_by_std");
        }
    }

    private void objective() {
        Optional<String> lossMode = takeText("loss_mode");
        Set<String> options = new HashSet<>();
        algorithm.fieldNames().forEachRemaining(options::add);
        lossMode.ifPresent(mode -> group("objective", "loss_mode")
                .put(Choice.KIND, refusing(name -> VerlNames.objective(name, options), mode)));
        take("clip_ratio").ifPresent(ratio -> {
            ObjectNode objective = opened("objective");
            if (!algorithm.has("clip_ratio_low")) {
                objective.set("clip_ratio_low", ratio);
            }
            if (!algorithm.has("clip_ratio_high")) {
                objective.set("clip_ratio_high", ratio);
            }
        });
        move("clip_ratio_low", "objective", "clip_ratio_low");
        move("clip_ratio_high", "objective", "clip_ratio_high");
        move("clip_ratio_c", "objective", "clip_ratio_c");
        move("dro_beta", "objective", "beta");
        move("tau_pos", "objective", "tau_pos");
        move("tau_neg", "objective", "tau_neg");
    }

    private void divergence() {
        boolean inLoss = take("use_kl_loss").map(JsonNode::asBoolean).orElse(false);
        boolean inReward = take("use_kl_in_reward").map(JsonNode::asBoolean).orElse(false);
        if (inLoss && inReward) {
            throw new ConfigException(
                    "algorithm.use_kl_loss and algorithm.use_kl_in_reward are both true, and the KL term would"
                            + " count twice; set one of them to false");
        }
        Optional<JsonNode> coefficient = take("kl_loss_coef");
        Optional<JsonNode> type = take("kl_loss_type");
        if (inLoss) {
            ObjectNode kl = group("kl", "use_kl_loss");
            kl.put(Choice.KIND, "in_loss");
            type.ifPresent(name -> kl.set("kl_loss_type", name));
            coefficient.ifPresent(value ->
                    kl.putObject("coefficient").put(Choice.KIND, "fixed").set("value", value));
        } else if (coefficient.isPresent() || type.isPresent()) {
            throw new ConfigException("algorithm.kl_loss_coef and algorithm.kl_loss_type do nothing without"
                    + " algorithm.use_kl_loss=true; set it, or leave them out");
        }
        Optional<JsonNode> control = take("kl_ctrl");
        if (inReward) {
            ObjectNode kl = group("kl", "use_kl_in_reward");
            kl.put(Choice.KIND, "in_reward");
            control.filter(JsonNode::isObject).ifPresent(of -> kl.set("coefficient", controlled((ObjectNode) of)));
        } else if (control.isPresent()) {
            throw new ConfigException(
                    "algorithm.kl_ctrl does nothing without algorithm.use_kl_in_reward=true; set it, or"
                            + " leave it out");
        }
    }

    private static ObjectNode controlled(ObjectNode control) {
        ObjectNode coefficient = ConfigTree.empty();
        boolean adaptive = control.path("type").asText("fixed").equals("adaptive");
        coefficient.put(Choice.KIND, adaptive ? "adaptive" : "fixed");
        if (control.has("kl_coef")) {
            coefficient.set(adaptive ? "start" : "value", control.get("kl_coef"));
        }
        if (adaptive && control.has("target_kl")) {
            coefficient.set("target", control.get("target_kl"));
        }
        if (adaptive && control.has("horizon")) {
            coefficient.set("horizon", control.get("horizon"));
        }
        return coefficient;
    }

    /** The block itself, or its keys among {@code algorithm}'s own; a text names a preset, which is a variant. */
    private void rolloutCorrection() {
        Optional<JsonNode> block = take("rollout_correction");
        if (block.isPresent() && block.get().isTextual()) {
            put("variant", "rollout_correction", block.get());
            return;
        }
        block.filter(JsonNode::isObject)
                .ifPresent(keys -> keys.properties()
                        .forEach(entry ->
                                put(entry.getKey(), "rollout_correction." + entry.getKey(), entry.getValue())));
        boolean bypass = take("bypass_mode").map(JsonNode::asBoolean).orElse(false);
        Optional<String> loss = takeText("loss_type");
        Optional<JsonNode> is = take("rollout_is");
        Optional<JsonNode> isThreshold = take("rollout_is_threshold");
        Optional<JsonNode> normalize = take("rollout_is_batch_normalize");
        Optional<JsonNode> rs = take("rollout_rs");
        Optional<JsonNode> rsThreshold = take("rollout_rs_threshold");
        if (bypass) {
            algorithm.put("mode", "bypass");
            if (!algorithm.has("weights")) {
                algorithm.put("weights", "none");
            }
            ObjectNode objective = group("objective", "bypass_mode");
            boolean reinforces = loss.filter("reinforce"::equals).isPresent();
            objective.put(Choice.KIND, reinforces ? "bypass_reinforce" : "bypass_ppo_clip");
            if (reinforces) {
                is.ifPresent(value -> objective.put("rollout_is", text(value)));
                isThreshold.ifPresent(value -> objective.put("rollout_is_threshold", text(value)));
                normalize.ifPresent(value -> objective.set("rollout_is_batch_normalize", value));
            }
            rs.ifPresent(value -> objective.put("rollout_rs", text(value)));
            rsThreshold.ifPresent(value -> objective.put("rollout_rs_threshold", text(value)));
            return;
        }
        if (loss.isPresent()) {
            throw new ConfigException(
                    "algorithm.loss_type goes with algorithm.bypass_mode=true; choose the loss with algorithm.loss_mode");
        }
        is.ifPresent(value ->
                group("weights", "rollout_is").put(Choice.KIND, text(value).isEmpty() ? "none" : text(value)));
        isThreshold.ifPresent(value -> {
            if (is.filter(given -> text(given).isEmpty()).isEmpty()) {
                opened("weights").put("threshold", text(value));
            }
        });
        normalize.ifPresent(value -> opened("weights").set("batch_normalize", value));
        rs.ifPresent(value -> opened("rejection").put("rollout_rs", text(value)));
        rsThreshold.ifPresent(value -> opened("rejection").put("rollout_rs_threshold", text(value)));
    }

    /** A text, a number as it was written, or nothing for null. */
    private static String text(JsonNode value) {
        return value.isNull() ? "" : value.asText();
    }

    private Optional<JsonNode> take(String key) {
        return Optional.ofNullable(algorithm.remove(key));
    }

    private Optional<String> takeText(String key) {
        JsonNode value = algorithm.get(key);
        if (value == null || !value.isTextual()) {
            return Optional.empty();
        }
        algorithm.remove(key);
        return Optional.of(value.asText());
    }

    private void move(String key, String group, String into) {
        take(key).ifPresent(value -> opened(group).set(into, value));
    }

    private void put(String key, String verl, JsonNode value) {
        if (algorithm.has(key)) {
            throw new ConfigException(
                    "algorithm." + key + " and algorithm." + verl + " are the same setting; leave one of them out");
        }
        algorithm.set(key, value);
    }

    /** A group whose kind is chosen only by verl's key. */
    private ObjectNode group(String name, String verl) {
        JsonNode there = algorithm.get(name);
        if (there != null && (!there.isObject() || there.has(Choice.KIND)) && !taken.contains(name)) {
            throw new ConfigException(
                    "algorithm." + name + " and algorithm." + verl + " both choose a kind; leave one of them out");
        }
        taken.add(name);
        return opened(name);
    }

    private ObjectNode opened(String name) {
        JsonNode there = algorithm.get(name);
        if (there instanceof ObjectNode group) {
            return group;
        }
        ObjectNode group = algorithm.putObject(name);
        if (there != null && there.isTextual()) { // a kind alone
            group.set(Choice.KIND, there);
        }
        return group;
    }

    private static String refusing(Function<String, String> names, String name) {
        try {
            return names.apply(name);
        } catch (IllegalArgumentException e) {
            throw new ConfigException("algorithm." + e.getMessage(), e);
        }
    }
}
