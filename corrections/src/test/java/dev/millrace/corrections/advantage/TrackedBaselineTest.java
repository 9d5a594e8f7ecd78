package dev.millrace.corrections.advantage;

import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.length.KimiLengthPenalty;
import dev.millrace.corrections.length.PassAtKFigure;
import dev.millrace.corrections.stage.AbsentInputException;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageFacts.TrackedValue;
import dev.millrace.corrections.stage.StageFailedException;
import dev.millrace.corrections.stage.StageInput;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TrackedBaselineTest {
    private static final ValueTracker SPO = ValueTracker.defaults();
    private static final TokenBatch THREE = new TokenBatch(new int[] {0, 2, 3, 4}, new byte[] {1, 1, 1, 1});

    private static StageFacts facts(double[] rewards, double... baselines) {
        return StageFacts.of(THREE, rewards)
                .keys(StageInput.PROMPTS, List.of("a", "b", "c"))
                .baselines(List.of(
                        new TrackedValue("a", baselines[0]),
                        new TrackedValue("b", baselines[1]),
                        new TrackedValue("c", baselines[2])))
                .build();
    }

    @Test
    void shouldCountSuccessesAndForgetThemByVersions() {
        double[] first = SPO.updated(SPO.initial(), new double[] {1}, 0);
        // of a new prompt 2^0 = 1 is clamped to 0.96: 0.96 · 0.5 + 1 and 0.96 · 0.5
        assertThat(first).containsExactly(new double[] {1.48, 0.48}, within(1e-12));
        assertThat(SPO.baseline(first)).isCloseTo(1.48 / 1.96, within(1e-12));

        double[] second = SPO.updated(first, new double[] {0}, 10);
        // 2^(-10/100) = 0.9330329915: 1.48 and 0.48 of it, and one failure
        assertThat(second).containsExactly(new double[] {1.3808888274, 1.4478558359}, within(1e-9));
        assertThat(SPO.baseline(second)).isCloseTo(0.4881631224, within(1e-9));

        double[] third = SPO.updated(second, new double[] {1, 0}, 1000);
        // 2^-10 is clamped to 0.875, once for both: 0.875 · 1.3808888 + 1 and 0.875 · 1.4478558 + 1
        assertThat(third).containsExactly(new double[] {2.2082777240, 2.2668738564}, within(1e-9));
        assertThat(second)
                .as("what was before")
                .containsExactly(new double[] {1.3808888274, 1.4478558359}, within(1e-9));
    }

    /** {@code v + η (r − v)} with {@code η = 1 / (ρ N + 1)}: the paper's other form of the update. */
    @Test
    void shouldMoveAsAnAverageWithAnAdaptiveRate() {
        Random random = new Random(5);
        double[] figures = SPO.initial();
        for (int i = 0; i < 200; i++) {
            double before = SPO.baseline(figures);
            double n = figures[0] + figures[1];
            long versions = random.nextInt(40);
            double reward = random.nextInt(5) / 4.0;
            double rho = Math.max(0.875, Math.min(0.96, Math.exp(-Math.log(2) * versions / 100)));

            figures = SPO.updated(figures, new double[] {reward}, versions);

            assertThat(SPO.baseline(figures)).isCloseTo(before + (reward - before) / (rho * n + 1), within(1e-12));
        }
    }

    @Test
    void shouldWhitenOverTheSequencesOfTheBatch() {
        Decision decision = StageBatch.decide(facts(new double[] {1, 0, 1}, 0.75, 0.25, 0.5), List.of(SPO));

        // 0.25, -0.25 and 0.5: mean 1/6; squares 0.0069444 + 0.1736111 + 0.1111111, over 2 a variance of 0.1458333
        assertThat(decision.advantages())
                .containsExactly(new double[] {0.2182179, -1.0910895, 0.8728716}, within(1e-6));
        assertThat(last(decision).values()).containsEntry("mean_baseline", 0.5);
    }

    @Test
    void shouldTeachNothingWhereThereIsNothingToCompare() {
        assertThat(SPO.advantages(new double[] {1}, new double[] {0.25})).containsExactly(0);
        assertThat(SPO.advantages(new double[] {1, 1}, new double[] {0.5, 0.5})).containsExactly(0, 0);
        assertThat(SPO.advantages(new double[0], new double[0])).isEmpty();
    }

    @Test
    void shouldRefuseRewardsThatAreNoSuccesses() {
        assertThatThrownBy(() -> StageBatch.decide(facts(new double[] {1, -1, 0}, 0.5, 0.5, 0.5), List.of(SPO)))
                .isInstanceOf(StageFailedException.class)
                .hasMessageContaining(
                        "rewards must lie in [0, 1], for value_tracker counts successes: sequence=1, reward=-1.0;"
                                + " ema_baseline tracks any reward");
    }

    @Test
    void shouldRefuseABatchWithoutBaselines() {
        StageFacts bare = StageFacts.of(THREE, new double[] {1, 0, 1})
                .keys(StageInput.PROMPTS, List.of("a", "b", "c"))
                .build();
        assertThatThrownBy(() -> StageBatch.decide(bare, List.of(SPO)))
                .isInstanceOf(AbsentInputException.class)
                .hasMessage("the batch has no baselines of earlier batches, which a stage of the algorithm reads");
        assertThatThrownBy(() -> new TrackedValue("a", Double.NaN)).hasMessageContaining("key=a, value=NaN");
    }

    @Test
    void shouldAverageTheRewardsOfAKeyOneAfterTheOther() {
        EmaBaseline rae = EmaBaseline.defaults();
        double[] one = rae.updated(rae.initial(), new double[] {1}, 0);
        assertThat(one).containsExactly(new double[] {0.05}, within(1e-12));
        assertThat(rae.updated(one, new double[] {0, -1}, 7))
                // 0.95 · 0.05 = 0.0475, then 0.95 · 0.0475 - 0.05
                .containsExactly(new double[] {-0.004875}, within(1e-12));

        assertThat(rae.advantages(new double[] {3, -1}, new double[] {0.5, 0.5}))
                .containsExactly(2.5, -1.5);
        assertThat(rae.inputs()).containsExactlyInAnyOrder(StageInput.PROMPTS, StageInput.BASELINES);
        assertThat(new EmaBaseline(0.5, EmaBaseline.Key.TASK).inputs())
                .containsExactlyInAnyOrder(StageInput.TASKS, StageInput.BASELINES);
    }

    @Test
    void shouldRefuseToTrackRewardsThatSomethingElseChanges() {
        Algorithm tracking = Algorithm.defaults().with(a -> a.advantage(SPO));
        assertThatThrownBy(() -> tracking.with(a -> a.rewards(KimiLengthPenalty.defaults())))
                .hasMessage("advantage.kind=value_tracker tracks rewards as they came, and rewards: kimi_length"
                        + " changes them; leave the latter out, or choose another advantage.kind");
        assertThat(tracking.with(a -> a.rewards(PassAtKFigure.defaults())).rewards())
                .hasSize(1);
    }

    @Test
    void shouldRefuseBoundsThatForgetNothingOrEverything() {
        assertThatThrownBy(() -> new ValueTracker(0, 0.9, 1)).hasMessageContaining("rho_min must be above 0");
        assertThatThrownBy(() -> new ValueTracker(0.95, 0.9, 1)).hasMessageContaining("at most rho_max 0.9: 0.95");
        assertThatThrownBy(() -> new ValueTracker(0.5, 1, 1)).hasMessageContaining("rho_max must be below 1");
        assertThatThrownBy(() -> new ValueTracker(0.5, Double.NaN, 1)).hasMessageContaining("rho_min");
        assertThatThrownBy(() -> new ValueTracker(0.5, 0.9, 0)).hasMessageContaining("half_life_versions");
        assertThatThrownBy(() -> new EmaBaseline(1, EmaBaseline.Key.TASK)).hasMessageContaining("decay");
        assertThatThrownBy(() -> new EmaBaseline(Double.NaN, EmaBaseline.Key.TASK))
                .hasMessageContaining("decay");
    }
}
