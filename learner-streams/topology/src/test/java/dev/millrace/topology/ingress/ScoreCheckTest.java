package dev.millrace.topology.ingress;

import static dev.millrace.topology.Samples.RUN;
import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.Samples.rollout;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.topology.Samples;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class ScoreCheckTest {
    private static final byte[] KEY = "g".getBytes(StandardCharsets.UTF_8);
    private static final ScoreCheck CHECK =
            new ScoreCheck(JoinSide.SCORE, RUN, TOPICS.rollouts(), new IngressConfig("", 0, 8, 100));

    private static Score.Builder score() {
        return Samples.score(rollout("g", 0).build(), 5);
    }

    private static Arguments wrong(
            String what, RefusalReason reason, String field, UnaryOperator<Score.Builder> change) {
        return Arguments.of(what, reason, field, change);
    }

    private static LogProbVector vector(PolicyRole policy, float... logProbs) {
        return new LogProbVector(
                policy,
                List.of(new VersionSpan(4L, 0, logProbs.length)),
                PackedFloats.of(logProbs),
                null,
                null,
                null,
                null);
    }

    private static LogProbVector with(ByteBuffer entropies, ByteBuffer squares) {
        return new LogProbVector(
                PolicyRole.PROXIMAL,
                List.of(new VersionSpan(4L, 0, 2)),
                PackedFloats.of(-1f, -1f),
                entropies,
                squares,
                null,
                null);
    }

    private static LogProbVector valued(float... values) {
        return LogProbVector.newBuilder(vector(PolicyRole.PROXIMAL, -1f, -1f))
                .setValues(PackedFloats.of(values))
                .build();
    }

    static Stream<Arguments> claimsThatDoNotHold() {
        LogProbVector old = vector(PolicyRole.OLD, -1f, -1f);
        return Stream.of(
                wrong("another run", RefusalReason.WRONG_RUN, "run_id", s -> s.setRunId("other")),
                wrong("another epoch", RefusalReason.WRONG_EPOCH, "epoch", s -> s.setEpoch(0)),
                wrong("an index beyond any group", RefusalReason.IDENTITY, "rollout_id", s -> s.setRolloutId("g/8")),
                wrong(
                        "a source elsewhere",
                        RefusalReason.IDENTITY,
                        "rollout_source",
                        s -> s.setRolloutSource(new LogCoordinates("elsewhere", 0, 5L))),
                wrong(
                        "a source in another partition",
                        RefusalReason.IDENTITY,
                        "rollout_source",
                        s -> s.setRolloutSource(new LogCoordinates(TOPICS.rollouts(), 1, 5L))),
                wrong(
                        "a source before the beginning",
                        RefusalReason.IDENTITY,
                        "rollout_source",
                        s -> s.setRolloutSource(new LogCoordinates(TOPICS.rollouts(), 0, -1L))),
                wrong("no vectors", RefusalReason.VECTORS, "vectors", s -> s.setVectors(List.of())),
                wrong("no proximal vector", RefusalReason.VECTORS, "vectors", s -> s.setVectors(List.of(old))),
                wrong("two old vectors", RefusalReason.VECTORS, "vectors[1]", s -> s.setVectors(List.of(old, old))),
                wrong(
                        "vectors of two lengths",
                        RefusalReason.LENGTHS,
                        "vectors[1].log_probs",
                        s -> s.setVectors(List.of(old, vector(PolicyRole.PROXIMAL, -1f)))),
                wrong(
                        "empty vectors",
                        RefusalReason.LENGTHS,
                        "vectors[0].log_probs",
                        s -> s.setVectors(List.of(new LogProbVector(
                                PolicyRole.OLD, List.of(), PackedFloats.of(), null, null, null, null)))),
                wrong(
                        "a NaN",
                        RefusalReason.LOG_PROBS,
                        "vectors[1].log_probs[1]",
                        s -> s.setVectors(List.of(old, vector(PolicyRole.PROXIMAL, -1f, Float.NaN)))),
                wrong(
                        "an engine's stand-in for minus infinity",
                        RefusalReason.LOG_PROBS,
                        "vectors[1].log_probs[1]",
                        s -> s.setVectors(List.of(old, vector(PolicyRole.PROXIMAL, -1f, -1e9f)))),
                wrong(
                        "a proximal policy of two versions",
                        RefusalReason.VERSION_SPANS,
                        "vectors[1].version_spans[1]",
                        s -> s.setVectors(List.of(
                                old,
                                new LogProbVector(
                                        PolicyRole.PROXIMAL,
                                        List.of(new VersionSpan(4L, 0, 1), new VersionSpan(5L, 1, 2)),
                                        PackedFloats.of(-1f, -1f),
                                        null,
                                        null,
                                        null,
                                        null)))),
                wrong(
                        "a vector without versions",
                        RefusalReason.VERSION_SPANS,
                        "vectors[0].version_spans",
                        s -> s.setVectors(List.of(new LogProbVector(
                                PolicyRole.OLD, List.of(), PackedFloats.of(-1f), null, null, null, null)))),
                wrong(
                        "a negative entropy",
                        RefusalReason.MOMENTS,
                        "vectors[1].entropies[0]",
                        s -> s.setVectors(List.of(old, with(PackedFloats.of(-1f, 0f), null)))),
                wrong(
                        "too few entropies",
                        RefusalReason.LENGTHS,
                        "vectors[1].entropies",
                        s -> s.setVectors(List.of(old, with(PackedFloats.of(1f), null)))),
                wrong(
                        "too few values",
                        RefusalReason.LENGTHS,
                        "vectors[1].values",
                        s -> s.setVectors(List.of(old, valued(1f)))),
                wrong(
                        "a value that is no number",
                        RefusalReason.VECTORS,
                        "vectors[1].values[1]",
                        s -> s.setVectors(List.of(old, valued(1f, Float.NaN)))),
                wrong(
                        "squares that sum to more than 1",
                        RefusalReason.MOMENTS,
                        "vectors[1].sum_squared_probs[1]",
                        s -> s.setVectors(List.of(old, with(null, PackedFloats.of(0.5f, 1.5f))))),
                wrong(
                        "an infinite entropy",
                        RefusalReason.MOMENTS,
                        "vectors[1].entropies[1]",
                        s -> s.setVectors(List.of(old, with(PackedFloats.of(0f, Float.POSITIVE_INFINITY), null)))));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("claimsThatDoNotHold")
    void shouldRefuseNamingReasonAndField(
            String what, RefusalReason reason, String field, UnaryOperator<Score.Builder> change) {
        Score score = change.apply(score()).build();

        RefusedException refused = catchThrowableOfType(RefusedException.class, () -> CHECK.check(score, KEY, 0));

        assertThat(refused).isNotNull();
        assertThat(refused.refusal().reason()).isEqualTo(reason);
        assertThat(refused.refusal().field()).isEqualTo(field);
    }

    @Test
    void shouldAcceptWhatHolds() throws RefusedException {
        assertThat(CHECK.check(score().build(), KEY, 0)).isEqualTo(new SampleName("g", 0));
    }

    @Test
    void shouldAcceptAScoreWithoutVectorsThatSaysWhy() throws RefusedException {
        Score score = score().setVectors(List.of())
                .setUnavailable("version 3 is no longer kept")
                .build();
        assertThat(CHECK.check(score, KEY, 0).rolloutId()).isEqualTo("g/0");
    }
}
