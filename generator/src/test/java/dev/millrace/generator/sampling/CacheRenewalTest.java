package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.sampling.ContinuousBatcher.IntakeSpeed;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.VersionSpan;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class CacheRenewalTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 32, 2, 4, 2, 8, 48, 256, 100, 1e-6, false, false);
    private static final int CALL = 2;

    private final List<Weights> versions = List.of(Weights.random(SHAPE, 41), Weights.random(SHAPE, 42));

    /** Work of another thread, triggered by the test. */
    private final Deque<Runnable> beside = new ArrayDeque<>();

    private final List<RunningSequence> finished = new ArrayList<>();

    @ParameterizedTest
    @ValueSource(ints = {8, 40, 256})
    void shouldSampleOnWhileKeysAndValuesAreComputedAgainAndThenAsIfItHadStoodStill(int pieceTokens) {
        List<RunningSequence> sequences =
                List.of(sequence(0, 50, 130), sequence(1, 5, 90), sequence(2, 70, 100), sequence(3, 6, 120));
        try (ContinuousBatcher batcher = batcher(pieceTokens, beside::add, WeightPlacement.FED)) {
            add(batcher, sequences);
            for (int call = 0; call < 12; call++) {
                advance(batcher, 0);
            }
            batcher.beginWith(1);
            int longestStand = 0;
            Map<RunningSequence, Integer> stands = new HashMap<>();
            for (int call = 0; batcher.active() > 0; call++) {
                batcher.renew(versions.get(1), 1);
                List<Integer> before =
                        sequences.stream().map(RunningSequence::length).toList();
                advance(batcher, 0);
                advance(batcher, 1);
                for (int i = 0; i < sequences.size(); i++) {
                    RunningSequence sequence = sequences.get(i);
                    boolean stood = sequence.length() == before.get(i) && sequence.finishReason() == null;
                    stands.merge(sequence, 1, (count, one) -> stood ? count + 1 : 0);
                    longestStand = Math.max(longestStand, stands.get(sequence));
                }
                if (call % 3 == 2 && !beside.isEmpty()) {
                    beside.remove().run();
                }
            }
            assertThat(longestStand).as("calls that a sequence stood still for").isLessThanOrEqualTo(4);
        }
        Map<String, List<VersionSpan>> spans = new HashMap<>();
        assertThat(finished).hasSize(4).allSatisfy(sequence -> {
            List<VersionSpan> its = sequence.spans().toRecords(sequence.length());
            assertThat(its).as(sequence.rolloutId()).hasSize(2);
            assertThat(its.get(1).getStart()).isGreaterThanOrEqualTo(24);
            spans.put(sequence.rolloutId(), its);
            assertAgrees(sequence, its);
        });
        assertThat(spans.values().stream().filter(its -> its.get(1).getStart() > 24))
                .as("those that continued meanwhile")
                .hasSize(3);
        Map<String, float[]> found = logProbs();
        finished.clear();
        try (ContinuousBatcher batcher = batcher(pieceTokens, Runnable::run, WeightPlacement.FED)) {
            List<RunningSequence> again =
                    List.of(sequence(0, 50, 130), sequence(1, 5, 90), sequence(2, 70, 100), sequence(3, 6, 120));
            ToLongFunction<RunningSequence> next = sequence ->
                    sequence.length() < spans.get(sequence.rolloutId()).get(1).getStart() ? 0 : 1;
            again.forEach(batcher::add);
            while (batcher.active() > 0) {
                for (int version = 0; version < 2; version++) {
                    int under = version;
                    batcher.advance(versions.get(under), under, each -> next.applyAsLong(each) == under, finished::add);
                }
            }
        }
        assertThat(logProbs()).usingRecursiveComparison().isEqualTo(found);
    }

    @ParameterizedTest
    @EnumSource(
            value = WeightPlacement.class,
            names = {"FED", "PACKED"})
    void shouldRenewByAThreadOfItsOwnHoweverWeightsAreHeld(WeightPlacement placement) {
        try (ContinuousBatcher batcher = batcher(8, task -> new Thread(task).start(), placement)) {
            add(batcher, List.of(sequence(0, 50, 130), sequence(1, 5, 90), sequence(2, 70, 100)));
            for (int call = 0; call < 5; call++) {
                advance(batcher, 0);
            }
            batcher.beginWith(1);
            while (batcher.active() > 0) {
                batcher.renew(versions.get(1), 1);
                advance(batcher, 0);
                advance(batcher, 1);
            }
        }
        assertThat(finished)
                .hasSize(3)
                .allSatisfy(sequence -> assertAgrees(sequence, sequence.spans().toRecords(sequence.length())));
    }

    @Test
    void shouldComputeAGroupsPromptAgainOnce() {
        try (ContinuousBatcher batcher = batcher(256, Runnable::run, WeightPlacement.FED)) {
            RunningSequence first = sequence(0, 50, 60);
            RunningSequence second = new RunningSequence(first.prompt(), 1, 16, 0);
            add(batcher, List.of(first, second));
            advance(batcher, 0);
            long forced = batcher.forcedTokens();
            long copied = batcher.copiedTokens();
            batcher.beginWith(1);
            for (int call = 0; call < 6; call++) {
                batcher.renew(versions.get(1), 1);
                batcher.takeRenewed();
            }
            assertThat(List.of(first.under(), second.under())).containsExactly(1L, 1L);
            assertThat(batcher.copiedTokens() - copied).isEqualTo(49);
            assertThat(batcher.forcedTokens() - forced).isEqualTo(49 + 2 + 2);
        }
    }

    @Test
    void shouldRenewASequenceWhoseEnvironmentIsWaitedForWhenThatHasAnswered() {
        AtomicBoolean answers = new AtomicBoolean(true);
        RunningSequence slow = sequence(0, 50, 60, new Slow(answers));
        try (ContinuousBatcher batcher = batcher(8, Runnable::run, WeightPlacement.FED)) {
            add(batcher, List.of(slow));
            advance(batcher, 0);
            answers.set(false);
            advance(batcher, 0);
            assertThat(slow.waits()).isTrue();
            batcher.beginWith(1);
            batcher.renew(versions.get(1), 1);
            assertThat(batcher.takeRenewed()).isTrue();
            assertThat(slow.under()).isZero();
            int length = slow.length();
            answers.set(true);
            while (batcher.active() > 0) {
                batcher.renew(versions.get(1), 1);
                advance(batcher, 1); // which gets the answer; version 0 is no longer used
            }
            List<VersionSpan> spans = slow.spans().toRecords(slow.length());
            assertThat(spans).containsExactly(new VersionSpan(0L, 0, length), new VersionSpan(1L, length, 60));
            assertAgrees(slow, spans);
        }
    }

    @Test
    void shouldLeaveASlotAloneWhoseSequenceIsGone() {
        RunningSequence next = sequence(1, 40, 30);
        try (ContinuousBatcher batcher = batcher(8, Runnable::run, WeightPlacement.FED)) {
            RunningSequence gone = sequence(0, 50, 60);
            add(batcher, List.of(gone));
            advance(batcher, 0);
            batcher.beginWith(1);
            while (gone.under() != RunningSequence.STANDS) {
                batcher.renew(versions.get(1), 1);
            }
            batcher.revoke(Set.of(new TopicPartition("prompts", 0)));
            next.continueWith(1);
            batcher.add(next); // into the same slot
            while (batcher.active() > 0) {
                batcher.renew(versions.get(1), 1);
                advance(batcher, 1);
            }
        }
        assertThat(finished).containsExactly(next);
        assertAgrees(next, next.spans().toRecords(next.length()));
    }

    @Test
    void shouldSayWhatWentWrongBesideSampling() {
        DecoderShape other = new DecoderShape(16, 32, 1, 4, 2, 8, 48, 256, 100, 1e-6, false, false);
        try (ContinuousBatcher batcher = batcher(8, Runnable::run, WeightPlacement.FED)) {
            add(batcher, List.of(sequence(0, 50, 60)));
            advance(batcher, 0);
            batcher.beginWith(1);
            batcher.renew(Weights.random(other, 1), 1);
            assertThatIllegalArgumentException()
                    .isThrownBy(batcher::takeRenewed)
                    .withMessageContaining("of another shape");
        }
    }

    @Test
    void shouldKnowHowLongItTakesByWhatWasTakenIn() {
        IntakeSpeed speed = new IntakeSpeed();
        assertThat(speed.millisFor(0)).isZero();
        assertThat(speed.millisFor(1)).isInfinite();
        speed.took(10, 900_000_000); // with its graph compiled
        speed.took(100, 200_000_000);
        assertThat(speed.millisFor(50)).isEqualTo(100);
        speed.took(4_000, 4_000_000_000L);
        assertThat(speed.millisFor(50)).isBetween(50.0, 55.0);
    }

    private void advance(ContinuousBatcher batcher, int version) {
        batcher.advance(versions.get(version), version, each -> each.under() == version, finished::add);
    }

    private static void add(ContinuousBatcher batcher, List<RunningSequence> sequences) {
        sequences.forEach(sequence -> {
            sequence.continueWith(0);
            batcher.add(sequence);
        });
    }

    private Map<String, float[]> logProbs() {
        Map<String, float[]> found = new HashMap<>();
        finished.forEach(sequence -> found.put(sequence.rolloutId(), sequence.logProbs()));
        return found;
    }

    private void assertAgrees(RunningSequence sequence, List<VersionSpan> spans) {
        int prompt = sequence.prompt().tokens().length;
        int[] tokens = new int[sequence.known()];
        Arrays.setAll(tokens, sequence::sequenceToken);
        try (ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 1000)) {
            for (VersionSpan span : spans) {
                float[] scored = scoring.score(
                                versions.get((int) span.getVersion()),
                                new SequenceBatch(new int[][] {tokens}, new int[] {prompt}),
                                new float[] {1})
                        .logProbs();
                for (int i = span.getStart(); i < span.getEnd(); i++) {
                    assertThat(Math.abs(scored[i] - sequence.logProbs()[i]))
                            .as("%s at %d of %s", sequence.rolloutId(), i, spans)
                            .isLessThan(1e-5f);
                }
            }
        }
    }

    private static RunningSequence sequence(int ordinal, int promptTokens, int tokens) {
        return sequence(ordinal, promptTokens, tokens, new FixedAnswer());
    }

    private static RunningSequence sequence(int ordinal, int promptTokens, int tokens, Environment environment) {
        int[] prompt = new SplittableRandom(ordinal).ints(promptTokens, 3, 13).toArray();
        PromptRequest request = Requests.request(ordinal, prompt, environment.name(), "1".repeat(tokens), 1)
                .setSampling(Requests.sampling(1, 0, 1, tokens))
                .build();
        return new RunningSequence(Requests.accepted(request, prompt, environment), 0, 16, 0);
    }

    private static ContinuousBatcher batcher(int pieceTokens, Executor beside, WeightPlacement placement) {
        GeneratorConfig config = new GeneratorConfig(
                "test",
                5,
                1,
                200,
                CALL,
                pieceTokens,
                1024,
                Precision.F32,
                placement,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                0,
                100,
                10,
                100,
                100,
                1000,
                1000);
        Engine engine = Engine.cpu();
        return new ContinuousBatcher(engine, SHAPE, config, config.prepared(engine), beside);
    }

    /** Answers only when it may. */
    private record Slow(AtomicBoolean answers) implements Environment {
        @Override
        public String name() {
            return "fixed-answer";
        }

        @Override
        public int endToken() {
            return new FixedAnswer().endToken();
        }

        @Override
        public Episode begin(String state) {
            Episode episode = new FixedAnswer().begin(state);
            return new Episode() {
                @Override
                public StepResult afterToken(Transcript response) {
                    return answers.get() ? episode.afterToken(response) : StepResult.LATER;
                }

                @Override
                public VerifiedReward verify(Transcript response) {
                    return episode.verify(response);
                }
            };
        }
    }
}
