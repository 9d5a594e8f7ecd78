package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.plugin.Kind;
import dev.millrace.corrections.advantage.PassAtKAdvantage;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.AlgorithmBuilder;
import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.corrections.filter.ForcedTokenMask;
import dev.millrace.corrections.filter.RandomRejection;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.BypassPpoClip;
import dev.millrace.corrections.objective.ClipCov;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.DppoKl;
import dev.millrace.corrections.objective.DppoTv;
import dev.millrace.corrections.objective.Gspo;
import dev.millrace.corrections.objective.GspoToken;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.M2poSurrogate;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.rollout.RejectionAggregation;
import dev.millrace.corrections.rollout.RejectionMode;
import dev.millrace.corrections.stage.AbsentInputException;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.LengthGuardConfig;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.staleness.StaleSequenceMask;
import dev.millrace.corrections.trm.ExactTrustRegionMask;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.ClampedWeights;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Every choice of the algorithm, made in process on one recorded batch that is four versions stale, with two minibatches where
 * the choice allows them: two choices that leave the same weights, bit for bit, are one choice with two names, and one that
 * leaves the weights of not having been made does nothing. What is enumerated is what the extension points and types have, so a new kind
 * is in here by itself.
 */
class EveryChoiceActsTest {
    private static final Algorithm BASE = NamedAlgorithms.of("token_tis")
            .with(a -> a.objective(DecoupledPpo.defaults())
                    .minibatches(2)
                    .entropy(new EntropyConfig(0, EntropyConfig.Rule.CONSTANT)));

    /** Kinds whose defaults are for larger policies than this one, at settings that bind here. */
    private static final Map<Class<?>, Record> BINDING = Map.ofEntries(
            Map.entry(DppoTv.class, new DppoTv(Anchor.PROXIMAL, 0.03, 0.03, 20)),
            Map.entry(DppoKl.class, new DppoKl(Anchor.PROXIMAL, 1e-4, 1e-4, 20)),
            Map.entry(ClipCov.class, new ClipCov(Anchor.PROXIMAL, 0.2, 0.2, 0.2, 0.01, 5)),
            Map.entry(ClampedWeights.class, new ClampedWeights(RejectionAggregation.TOKEN, 0.8, 1.25, false)),
            Map.entry(PassAtKAdvantage.class, new PassAtKAdvantage(2, false)),
            Map.entry(ForcedTokenMask.class, new ForcedTokenMask(-1.5)),
            Map.entry(RandomRejection.class, new RandomRejection(0.5, RandomRejection.Level.SEQUENCE, 7)),
            Map.entry(ExactTrustRegionMask.class, new ExactTrustRegionMask(5e-4, 0)),
            Map.entry(StaleSequenceMask.class, new StaleSequenceMask(3)));

    private final StaleBatch batch = new StaleBatch();
    /** What each choice left, as the first that left it. */
    private final Map<String, String> left = new HashMap<>();

    private final List<String> same = new ArrayList<>();
    /** Choices that read what the batch does not have. */
    private final List<String> lacking = new ArrayList<>();

    @AfterEach
    void close() {
        batch.close();
    }

    @Test
    void shouldTellObjectivesApart() {
        for (Kind kind : Catalogue.current().kinds(Objective.class)) {
            each(kind).forEach((name, objective) -> choose(name, a -> around((Objective) objective, a)));
        }
        assertThat(same)
                .as(
                        "decoupled PPO is PPO's clip around proximal, bypass PPO's around behavior where nothing is rejected; and with"
                                + " one advantage and one weight per sequence a token's own gradient in GSPO is the sequence's")
                .containsExactlyInAnyOrder(
                        "decoupled_ppo = " + new PpoClip(Anchor.PROXIMAL, 0.2, 0.2, 3),
                        "bypass_ppo_clip = " + new PpoClip(Anchor.BEHAVIOR, 0.2, 0.2, 3),
                        new GspoToken(Anchor.BEHAVIOR, 3e-4, 4e-4) + " = " + new Gspo(Anchor.BEHAVIOR, 3e-4, 4e-4, 3));
    }

    @Test
    void shouldNotTellClipCovFromDecoupledPpoWhereNoTokenIsInItsDefaultBand() {
        for (Objective objective : List.of(DecoupledPpo.defaults(), ClipCov.defaults())) {
            choose(objective.name(), a -> around(objective, a));
        }
        assertThat(same).containsExactly("clip_cov = decoupled_ppo");
    }

    /** With what the objective cannot do without. */
    private static AlgorithmBuilder around(Objective objective, AlgorithmBuilder a) {
        a.objective(objective);
        if (objective.weightsCompare().isEmpty()) {
            a.weights(new None());
        }
        if (objective.linear() || objective.needsWholeGroups()) {
            a.minibatches(1);
        }
        if (objective instanceof M2poSurrogate) {
            a.masks(M2po.defaults());
        }
        return objective instanceof Oapl oapl ? a.advantage(new SoftMaximum(oapl.beta())) : a;
    }

    @Test
    void shouldTellAdvantagesApart() {
        for (Kind kind : Catalogue.current().kinds(AdvantageEstimator.class)) {
            each(kind)
                    .forEach((name, advantage) -> choose(
                            name,
                            a -> advantage instanceof SoftMaximum soft
                                    ? around(new Oapl(soft.beta()), a)
                                    : a.advantage((AdvantageEstimator) advantage)));
        }
        assertThat(same)
                .as("no group here has a lone member, and a step decides with the baselines that its batch recorded")
                .containsExactlyInAnyOrder(
                        "Rloo[lone=TEACHES_NOTHING] = rloo", "EmaBaseline[decay=0.95, key=TASK] = ema_baseline");
        assertThat(lacking).isEmpty();
    }

    @Test
    void shouldTellWeightsApart() {
        for (Kind kind : Catalogue.current().kinds(WeightStage.class)) {
            each(kind)
                    .forEach((name, weights) -> choose(
                            name,
                            a -> a.objective(new PpoClip(Anchor.PROXIMAL, 0.2, 0.2, 3))
                                    .weights((WeightStage) weights)));
        }
        assertThat(same)
                .as("where a sequence lies outside, its mean ratio is clamped, whichever of the two said so")
                .containsExactly(new ClampedWeights(RejectionAggregation.MEAN, 0.8, 1.25, false) + " = "
                        + new ClampedWeights(RejectionAggregation.SUM, 0.8, 1.25, false));
    }

    @Test
    void shouldTellMasksApartAndFromNone() {
        choose("none", a -> a);
        for (Kind kind : Catalogue.current().kinds(MaskStage.class)) {
            each(kind).forEach((name, mask) -> choose(name, a -> a.masks((MaskStage) mask)));
        }
        assertThat(same)
                .as("a ratio of 5 is far for a mean or a divergence; the last only reports")
                .containsExactlyInAnyOrder(
                        "DivergenceFilterMask[metric=K1, aggregation=TOKEN, threshold=5.0] = none",
                        "DivergenceFilterMask[metric=K3, aggregation=TOKEN, threshold=5.0] = none",
                        "DivergenceFilterMask[metric=RATIO, aggregation=MEAN, threshold=5.0] = none",
                        "length_trap = none");
        assertThat(lacking).isEmpty();
    }

    @Test
    void shouldTellWhatShapesRewardsApartAndFromNone() {
        choose("none", a -> a);
        for (Kind kind : Catalogue.current().kinds(RewardStage.class)) {
            each(kind).forEach((name, reward) -> choose(name, a -> a.rewards((RewardStage) reward)));
        }
        assertThat(same).as("it only reports").containsExactly("pass_at_k = none");
    }

    @Test
    void shouldTellRejectionsFromNone() {
        choose("none", a -> a);
        for (RejectionMode mode : RejectionMode.values()) {
            choose(mode.label(), a -> a.rejection(new Rejection(mode.label(), bounds(mode), ComparedPolicies.ANCHOR)));
        }
        assertThat(same)
                .as("what two of them reject may be the same few sequences")
                .noneMatch(pair -> pair.endsWith("= none"));
        same.clear();
        for (ComparedPolicies compare : ComparedPolicies.values()) {
            choose("compare=" + compare, a -> a.rejection(new Rejection("token_k1", "0.9_1.1", compare)));
        }
        assertThat(same).isEmpty();
    }

    /** Bounds that reject some of the batch. */
    private static String bounds(RejectionMode mode) {
        String label = mode.label();
        if (label.endsWith("k1")) {
            return label.startsWith("seq_sum") ? "0.3_3.0" : "0.7_1.5";
        }
        double k2 = label.startsWith("seq_sum") ? 0.4 : label.startsWith("seq_max") ? 0.2 : 0.1;
        return String.valueOf(label.endsWith("k2") ? k2 : k2 / 3);
    }

    @Test
    void shouldTellAggregationsApart() {
        for (Class<?> kind : LossAggregation.class.getPermittedSubclasses()) {
            choose(kind.getSimpleName(), a -> a.lossAggMode((LossAggregation) defaults(kind)));
        }
        // decoupled PPO is published with a token mean
        assertThat(same).containsExactly("TokenMean = AsPublished");
    }

    @Test
    void shouldTellDivergencesFromAReferenceApartAndFromNone() {
        for (Class<?> kind : KlConfig.class.getPermittedSubclasses()) {
            each(kind.getSimpleName(), (Record) defaults(kind))
                    .forEach((name, kl) -> choose(name, a -> a.kl((KlConfig) kl)));
        }
        assertThat(same).isEmpty();
    }

    @Test
    void shouldTellControlsApartAndFromNone() {
        choose("none", a -> a.weights(Sequence.defaults()));
        for (Ess.Rule rule : Ess.Rule.values()) {
            for (Ess.Weights of : Ess.Weights.values()) {
                if (rule != Ess.Rule.NONE) {
                    choose(
                            "ess " + rule + " " + of,
                            a -> a.weights(Sequence.defaults()).ess(new Ess(rule, of, 1)));
                }
            }
        }
        for (EntropyConfig.Rule rule : EntropyConfig.Rule.values()) {
            choose("entropy " + rule, a -> a.entropy(new EntropyConfig(0.03, rule)));
        }
        choose("length_guard", a -> a.lengthGuard(new LengthGuardConfig.Surge(1, 1, 0.5)));
        choose("max_versions", a -> a.staleness(new StalenessRules(3, 0, 0)));
        choose("max_age_ms", a -> a.staleness(new StalenessRules(8, 1, 0)));
        choose("half_life_versions", a -> a.staleness(new StalenessRules(8, 0, 2)));
        choose("minibatches", a -> a.minibatches(3));
        choose("epochs", a -> a.epochs(2));
        assertThat(same).isEmpty();
    }

    @Test
    void shouldTellModesApart() {
        for (Mode mode : Mode.values()) {
            choose(
                    mode.name(),
                    a -> mode == Mode.BYPASS
                            ? around(BypassPpoClip.defaults(), a).mode(mode)
                            : a.mode(mode));
        }
        assertThat(same).isEmpty();
    }

    private static Map<String, Record> each(Kind kind) {
        return each(kind.name(), BINDING.getOrDefault(kind.type(), kind.defaults()));
    }

    /** The record itself, and variants with each switch, word and choice changed where valid. */
    private static Map<String, Record> each(String name, Record chosen) {
        Map<String, Record> each = new LinkedHashMap<>();
        each.put(name, chosen);
        RecordComponent[] components = chosen.getClass().getRecordComponents();
        for (int i = 0; i < components.length; i++) {
            for (Object other : others(components[i], chosen)) {
                Object[] values = new Object[components.length];
                for (int j = 0; j < values.length; j++) {
                    values[j] = j == i ? other : value(components[j], chosen);
                }
                make(chosen.getClass(), components, values).ifPresent(made -> each.put(made.toString(), made));
            }
        }
        return each;
    }

    private static List<Object> others(RecordComponent component, Record chosen) {
        Object value = value(component, chosen);
        if (value instanceof Boolean flag) {
            return List.of(!flag);
        }
        if (component.getType().isInterface() && component.getType().isSealed()) {
            return Stream.of(component.getType().getPermittedSubclasses())
                    .filter(other -> other != value.getClass())
                    .map(EveryChoiceActsTest::defaults)
                    .toList();
        }
        return value instanceof Enum<?> word
                ? Stream.of((Object[]) word.getDeclaringClass().getEnumConstants())
                        .filter(other -> other != word)
                        .toList()
                : List.of();
    }

    /** Empty where the record refuses the values. */
    private static Optional<Record> make(Class<? extends Record> type, RecordComponent[] components, Object[] values) {
        Class<?>[] types = Stream.of(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
        try {
            return Optional.of(type.getDeclaredConstructor(types).newInstance(values));
        } catch (InvocationTargetException e) {
            return Optional.empty();
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static Object value(RecordComponent component, Record of) {
        try {
            return component.getAccessor().invoke(of);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static Object defaults(Class<?> kind) {
        try {
            return kind.getRecordComponents().length == 0
                    ? kind.getDeclaredConstructor().newInstance()
                    : kind.getMethod("defaults").invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private void choose(String name, UnaryOperator<AlgorithmBuilder> change) {
        choose(name, BASE.with(change));
    }

    private void choose(String name, Algorithm algorithm) {
        try {
            String first = left.putIfAbsent(HexFormat.of().formatHex(batch.after(algorithm)), name);
            if (first != null) {
                same.add(name + " = " + first);
            }
        } catch (AbsentInputException e) {
            lacking.add(name);
        }
    }
}
