package dev.millrace.workloads.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.ingress.IngressConfig;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.ScoreCheck;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw.Fate;
import dev.millrace.workloads.topology.SyntheticRun.SyntheticRecords;
import java.nio.charset.StandardCharsets;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class SyntheticRecordsTest {
    private static final RunIdentity RUN = new RunIdentity("load", 0, "policy");
    private static final RunTopics TOPICS = new RunTopics("load.");
    private static final RolloutShape SHAPE = new RolloutShape(
            "",
            4,
            Distribution.uniform(1, 50),
            Distribution.uniform(1, 300),
            Distribution.uniform(0, 5),
            0.01,
            0.1,
            0.1,
            0.05);

    private static SyntheticRecords records(long seed) {
        return new SyntheticRecords(RUN, TOPICS, SHAPE, seed);
    }

    @Test
    void shouldMakeRecordsThatEveryCheckAccepts() {
        SyntheticRecords records = records(5);
        RolloutValidator rollouts =
                new RolloutValidator(RUN, IngressConfig.defaults().limits());
        ScoreCheck scores = new ScoreCheck(JoinSide.SCORE, RUN, TOPICS.rollouts(), IngressConfig.defaults());
        for (long i = 0; i < 500; i++) {
            RolloutDraw draw = records.draw(i);
            byte[] key = records.groupId(i).getBytes(StandardCharsets.UTF_8);
            Rollout rollout = records.rollout(draw, 3, 1000);
            Score score = records.score(draw, new LogCoordinates(TOPICS.rollouts(), 2, i), 3, 1000);
            assertThatCode(() -> {
                        assertThat(rollouts.validate(rollout, key).rolloutId())
                                .isEqualTo(records.rolloutId(draw.index()));
                        scores.check(score, key, 2);
                    })
                    .doesNotThrowAnyException();
            assertThat(score.getVectors())
                    .allMatch(vector -> PackedFloats.length(vector.getLogProbs())
                            == draw.response().tokens());
            assertThat(score.getVectors().get(0).getVersionSpans()).isEqualTo(rollout.getVersionSpans());
        }
    }

    @Test
    void shouldMakeTheSameRecordsFromTheSameSeed() {
        SyntheticRecords one = records(5);
        SyntheticRecords same = records(5);
        SyntheticRecords other = records(6);
        for (long i = 0; i < 50; i++) {
            assertThat(one.rollout(one.draw(i), 3, 1000)).isEqualTo(same.rollout(same.draw(i), 3, 1000));
        }
        assertThat(one.rollout(one.draw(7), 3, 1000)).isNotEqualTo(other.rollout(other.draw(7), 3, 1000));
    }

    @Test
    void shouldGiveAGroupOnePrompt() {
        SyntheticRecords records = records(5);
        for (long i = 0; i < 40; i++) {
            assertThat(records.rollout(records.draw(i), 3, 1000).getPromptTokens())
                    .isEqualTo(records.rollout(records.draw(i / 4 * 4), 3, 1000).getPromptTokens());
        }
    }

    @Test
    void shouldFailAsOftenAsItWasAsked() {
        SyntheticRecords records = records(5);
        long unscored = LongStream.range(0, 10_000)
                .filter(i -> records.draw(i).fate() == Fate.UNSCORED)
                .count();
        long garbage = LongStream.range(0, 10_000)
                .filter(i -> records.draw(i).fate() == Fate.GARBAGE)
                .count();
        assertThat(unscored).isCloseTo(1000, within(100L));
        assertThat(garbage).isCloseTo(500, within(70L));
    }

    /** Drift of n versions is a random walk: its variance is n times that of one, as far as log-probs do not reach 0. */
    @Test
    void shouldDriftWithTheSquareRootOfTheVersionsBehind() {
        SyntheticRecords records = new SyntheticRecords(
                RUN,
                TOPICS,
                new RolloutShape(
                        "",
                        4,
                        Distribution.fixed(1),
                        Distribution.fixed(20_000),
                        Distribution.uniform(0, 4),
                        0,
                        0.01,
                        0,
                        0),
                5);
        for (long i = 0; i < 30; i++) {
            RolloutDraw draw = records.draw(i);
            Score score = records.score(draw, new LogCoordinates(TOPICS.rollouts(), 0, i), 9, 1000);
            float[] old = PackedFloats.toArray(logProbs(score, 0));
            float[] proximal = PackedFloats.toArray(logProbs(score, 1));
            double squares = 0;
            int counted = 0;
            for (int t = 0; t < old.length; t++) {
                if (old[t] < -0.2f) {
                    squares += Math.pow(proximal[t] - old[t], 2);
                    counted++;
                }
            }
            assertThat(Math.sqrt(squares / counted)).isCloseTo(0.01 * Math.sqrt(draw.versionsBehind()), within(0.0005));
        }
    }

    private static java.nio.ByteBuffer logProbs(Score score, int vector) {
        LogProbVector of = score.getVectors().get(vector);
        return of.getLogProbs();
    }
}
