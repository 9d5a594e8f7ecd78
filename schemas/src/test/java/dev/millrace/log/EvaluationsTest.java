package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionEvaluation;
import java.util.List;
import org.junit.jupiter.api.Test;

class EvaluationsTest {

    private static VersionEvaluation evaluation(long version, String data, double reward, long finishedAtMs) {
        return VersionEvaluation.newBuilder()
                .setRunId("r")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(version)
                .setWeightsSha256("of-" + version)
                .setDataSha256(data)
                .setSamplesPerPrompt(1)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 1L, false, 0, 0.0, false))
                .setCorrectAbove(0.5)
                .setPrompts(List.of(new EvaluatedPrompt(1, 1, reward, 20L, 0)))
                .setRewardMean(reward)
                .setPassAtK(List.of())
                .setDifficulties(List.of())
                .setTruncatedShare(0)
                .setFailed(0)
                .setStartedAtMs(finishedAtMs - 1)
                .setFinishedAtMs(finishedAtMs)
                .build();
    }

    @Test
    void shouldBeSortedByVersionWhateverTheOrderTheyEndedIn() {
        Evaluations all = new Evaluations(
                List.of(evaluation(20, "a", 0.5, 1), evaluation(0, "a", 0.1, 3), evaluation(10, "a", 0.4, 2)));

        assertThat(all.onSamePrompts())
                .extracting(VersionEvaluation::getVersion)
                .containsExactly(0L, 10L, 20L);
        assertThat(all.last()).map(VersionEvaluation::getVersion).contains(20L);
    }

    @Test
    void shouldCallTheEarliestOfSeveralTheBest() {
        Evaluations all = new Evaluations(
                List.of(evaluation(0, "a", 0.1, 1), evaluation(10, "a", 0.5, 2), evaluation(20, "a", 0.5, 3)));

        assertThat(all.best()).map(VersionEvaluation::getVersion).contains(10L);
        assertThat(Evaluations.NONE.best()).isEmpty();
        assertThat(Evaluations.NONE.last()).isEmpty();
    }

    @Test
    void shouldNotCompareWhatWasAskedOtherPrompts() {
        Evaluations all = new Evaluations(
                List.of(evaluation(0, "easy", 0.9, 1), evaluation(10, "hard", 0.2, 2), evaluation(20, "hard", 0.3, 3)));

        assertThat(all.onSamePrompts())
                .extracting(VersionEvaluation::getVersion)
                .containsExactly(10L, 20L);
        assertThat(all.best()).map(VersionEvaluation::getVersion).contains(20L);
    }
}
