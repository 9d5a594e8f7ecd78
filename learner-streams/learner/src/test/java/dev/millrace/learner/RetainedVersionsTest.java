package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.learner.VersionRetention.RetainedVersions;
import dev.millrace.schemas.ServerRole;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class RetainedVersionsTest {
    private static final Server IDLE = new Server("g1", ServerRole.GENERATOR, 40, 40, 0);
    private static final Server BUSY = new Server("g2", ServerRole.GENERATOR, 40, 37, 0);
    private static final Server SCORER = new Server("s", ServerRole.SCORER, 39, 39, 0);

    @Test
    void shouldKeepTheNewestInAnyCase() {
        assertThat(RetainedVersions.of(40, 8, List.of(), List.of(), OptionalLong.empty(), OptionalLong.empty()))
                .isEqualTo(new RetainedVersions(33, "the newest 8 are kept"));
        assertThat(RetainedVersions.of(3, 8, List.of(), List.of(), OptionalLong.empty(), OptionalLong.empty())
                        .oldest())
                .isZero();
        assertThat(RetainedVersions.of(
                                40,
                                8,
                                List.of(IDLE, BUSY, SCORER),
                                List.of(),
                                OptionalLong.of(36),
                                OptionalLong.empty())
                        .oldest())
                .isEqualTo(33);
    }

    @Test
    void shouldKeepWhatAServerServesOrHasInFlight() {
        assertThat(RetainedVersions.of(40, 1, List.of(IDLE), List.of(), OptionalLong.empty(), OptionalLong.empty())
                        .oldest())
                .isEqualTo(40);
        assertThat(RetainedVersions.of(
                        40, 1, List.of(IDLE, SCORER), List.of(), OptionalLong.empty(), OptionalLong.empty()))
                .isEqualTo(new RetainedVersions(39, "scorer s serves it"));
        assertThat(RetainedVersions.of(
                        40, 1, List.of(IDLE, BUSY, SCORER), List.of(), OptionalLong.empty(), OptionalLong.empty()))
                .isEqualTo(new RetainedVersions(37, "generator g2 has a sequence of it in flight"));
    }

    @Test
    void shouldKeepWhatARolloutIsStillToBeScoredUnder() {
        assertThat(RetainedVersions.of(
                        40, 1, List.of(IDLE, BUSY), List.of(), OptionalLong.of(12), OptionalLong.empty()))
                .isEqualTo(new RetainedVersions(12, "a rollout of it is not scored yet"));
        assertThat(RetainedVersions.of(40, 1, List.of(BUSY), List.of(), OptionalLong.of(38), OptionalLong.empty())
                        .oldest())
                .isEqualTo(37);
    }

    @Test
    void shouldKeepFixedPolicies() {
        assertThat(RetainedVersions.of(40, 1, List.of(), List.of(5L, 0L), OptionalLong.empty(), OptionalLong.empty()))
                .isEqualTo(new RetainedVersions(0, "a fixed policy is that version"));
    }

    @Test
    void shouldKeepTheBestOnHeldOutPromptsAndWhatIsBeingEvaluated() {
        Server evaluator = new Server("evaluator", ServerRole.EVALUATOR, 30, 30, 0);
        assertThat(RetainedVersions.of(
                        40, 1, List.of(IDLE, evaluator), List.of(), OptionalLong.empty(), OptionalLong.of(12)))
                .isEqualTo(new RetainedVersions(12, "it is the best on held-out prompts"));
        assertThat(RetainedVersions.of(
                        40, 1, List.of(IDLE, evaluator), List.of(), OptionalLong.empty(), OptionalLong.of(35)))
                .isEqualTo(new RetainedVersions(30, "evaluator evaluator evaluates it"));
    }
}
