package dev.millrace.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.runtime.config.EvaluationConfig;
import dev.millrace.runtime.evaluation.EvaluationSchedule.Due;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class EvaluationScheduleTest {
    private static final OptionalLong NONE = OptionalLong.empty();
    private static final long SECOND = 1_000_000_000L;

    private static EvaluationSchedule every(int versions, long maxSteps) {
        return new EvaluationSchedule(new EvaluationConfig(versions, 0, 64, 4, 0.5), maxSteps);
    }

    @Test
    void shouldBeginWithVersionZeroWhateverHasComeSince() {
        assertThat(every(10, 0).next(NONE, 37, 0)).contains(new Due(0, 0));
    }

    @Test
    void shouldWaitForTheNextOneInSoMany() {
        EvaluationSchedule schedule = every(10, 0);

        assertThat(schedule.next(OptionalLong.of(0), 9, 0)).isEmpty();
        assertThat(schedule.next(OptionalLong.of(0), 10, 0)).contains(new Due(10, 0));
        assertThat(schedule.next(OptionalLong.of(0), 19, 0)).contains(new Due(10, 0));
        assertThat(schedule.next(OptionalLong.of(13), 19, 0))
                .as("13 was the last of an earlier life")
                .isEmpty();
    }

    @Test
    void shouldGoOnWithTheNewestThatIsDueAndCountTheOthers() {
        assertThat(every(10, 0).next(OptionalLong.of(0), 47, 0)).contains(new Due(40, 3));
    }

    @Test
    void shouldEvaluateTheLastVersionThatTheLearnerMakes() {
        assertThat(every(10, 14).next(OptionalLong.of(10), 14, 0)).contains(new Due(14, 0));
        assertThat(every(10, 14).next(OptionalLong.of(10), 13, 0)).isEmpty();
        assertThat(every(10, 14).next(OptionalLong.of(14), 14, 0)).isEmpty();
    }

    @Test
    void shouldNotAskAgainForWhatCannotBeHad() {
        EvaluationSchedule schedule = every(10, 0);
        schedule.took(0, 0);

        assertThat(schedule.next(NONE, 5, 0)).isEmpty();
        assertThat(schedule.next(NONE, 10, 0)).contains(new Due(10, 0));
    }

    @Test
    void shouldEvaluateTheNewestEverySoManySeconds() {
        EvaluationSchedule schedule = new EvaluationSchedule(new EvaluationConfig(0, 30, 64, 4, 0.5), 0);

        assertThat(schedule.next(NONE, 7, 0)).contains(new Due(7, 0));
        schedule.took(7, 0);
        assertThat(schedule.next(OptionalLong.of(7), 12, 29 * SECOND)).isEmpty();
        assertThat(schedule.next(OptionalLong.of(7), 12, 30 * SECOND)).contains(new Due(12, 0));
        assertThat(schedule.next(OptionalLong.of(12), 12, 90 * SECOND))
                .as("nothing is newer")
                .isEmpty();
    }
}
