package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ObjectiveInForceTest {
    private static final UpdateFacts SEQUENCES = UpdateFacts.of(new LossAggregation.SeqMeanTokenMean());

    private static ObjectiveInForce once(Objective objective, boolean weighs, boolean masks, boolean secondMoment) {
        return new ObjectiveInForce(objective, "it", true, 1, weighs, masks, secondMoment);
    }

    static List<Objective> anchoredAtProximal() {
        return List.of(
                new PpoClip(Anchor.PROXIMAL, 0.2, 0.2, 3),
                DecoupledPpo.defaults(),
                Gspo.defaults(),
                GspoToken.defaults(),
                Gmpo.defaults(),
                DppoTv.defaults(),
                DppoKl.defaults(),
                Sapo.defaults(),
                SequenceSapo.defaults(),
                Cispo.defaults(),
                Dro.defaults(),
                KlCov.defaults(),
                M2poSurrogate.defaults(),
                R2vpo.defaults(),
                new P3o(Anchor.PROXIMAL));
    }

    @ParameterizedTest
    @MethodSource("anchoredAtProximal")
    void shouldSayThatATrustRegionAroundTheStartingPolicyCannotActAndWhatWouldLetIt(Objective objective) {
        assertThat(once(objective, true, false, true).whyItCannotAct().orElseThrow())
                .startsWith("objective it cannot act: with minibatches=1 and epochs=1")
                .contains("set minibatches or epochs above 1, or mode to interpolated");
        assertThat(new ObjectiveInForce(objective, "it", true, 2, true, false, true).whyItCannotAct())
                .isEmpty();
        assertThat(new ObjectiveInForce(objective, "it", true, 2, true, false, true).whyItCannotAct())
                .isEmpty();
        assertThat(new ObjectiveInForce(objective, "it", false, 1, true, false, true).whyItCannotAct())
                .isEmpty();
    }

    /** What the sentence claims: the derivative is that of the plain policy gradient, to the last bit of a float or two. */
    @ParameterizedTest
    @MethodSource("anchoredAtProximal")
    void shouldBeThePolicyGradientAtItsAnchor(Objective objective) {
        RandomInput in = RandomInput.of(5, 0.4).withSequenceAdvantages();
        ObjectiveInput atAnchor = ObjectiveInput.of(in.batch(), in.current(), in.advantages())
                .withProximal(in.current())
                .withBehavior(in.behavior());

        ObjectiveResult result = objective.evaluate(atAnchor, SEQUENCES);

        assertThat(result.gradient())
                .containsExactly(new Reinforce().evaluate(atAnchor, SEQUENCES).gradient(), within(1e-6f));
        assertThat(result.actedOn()).isEqualTo(new ActedOn(0, 0));
    }

    @Test
    void shouldNotSaySoOfWhatActsAnywayOrIsAnchoredElsewhere() {
        for (Objective objective : List.of(
                new Reinforce(),
                PpoClip.defaults(),
                ClipCov.defaults(),
                Luspo.defaults(),
                new Topr(),
                Ipo.defaults(),
                Quatro.defaults(),
                Oapl.defaults())) {
            assertThat(once(objective, true, false, true).whyItCannotAct())
                    .as(objective.toString())
                    .isEmpty();
        }
        assertThat(once(Cispo.defaults(), true, false, false).whyItCannotAct().orElseThrow())
                .endsWith(", or objective.anchor to old");
        assertThat(once(DecoupledPpo.defaults(), true, false, false)
                        .whyItCannotAct()
                        .orElseThrow())
                .doesNotContain("objective.anchor");
    }

    @Test
    void shouldRefuseWhatWouldBeUncorrectedByMistake() {
        assertThat(once(DecoupledPpo.defaults(), false, true, true).refusal().orElseThrow())
                .contains("weights.kind is none")
                .contains("set weights.kind to token or sequence");
        assertThat(new ObjectiveInForce(DecoupledPpo.defaults(), "it", true, 8, false, true, true).refusal())
                .isPresent();
        assertThat(once(M2poSurrogate.defaults(), true, true, false).refusal().orElseThrow())
                .contains("add the mask m2po");
        assertThat(once(Cispo.defaults(), false, false, false).refusal().orElseThrow())
                .contains("uncorrected")
                .endsWith("choose objective.kind=reinforce");
        assertThat(once(new BypassReinforce("", "", false, "", ""), false, false, false)
                        .refusal()
                        .orElseThrow())
                .contains("rollout_is and rollout_rs are empty");
        assertThat(once(BypassReinforce.defaults(), false, false, false).refusal())
                .isEmpty();
        assertThat(once(Cispo.defaults(), true, false, false).refusal()).isEmpty();
        assertThat(once(new Reinforce(), false, false, false).refusal())
                .as("asked for by name")
                .isEmpty();
        assertThat(once(M2poSurrogate.defaults(), false, true, true).refusal()).isEmpty();
    }
}
