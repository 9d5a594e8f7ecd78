package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.Guess;
import dev.millrace.generator.environment.GuessPrompts;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionSpan;
import java.nio.FloatBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ContinuousBatcherTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 32, 2, 4, 2, 8, 48, 64, 100, 1e-6, false, false);
    private static final SamplingParameters PLAIN = Requests.sampling(1, 0, 1, 9);

    /** Weights of version v: sharper than fresh ones, so that versions really differ. */
    private final Map<Long, Weights> versions = new HashMap<>();

    private final ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 1000);

    @AfterEach
    void closeScoring() {
        scoring.close();
    }

    @Test
    void shouldRecordTheLogProbsThatScoringTheWholeSequenceGives() {
        List<RunningSequence> finished =
                sample(samples(24, Requests.sampling(0.8, 0, 1, 9)), config(5, 3, CacheOnSwap.RECOMPUTE), 1);
        assertThat(finished).hasSize(24);
        assertThat(finished).anyMatch(s -> s.prompt().environment() instanceof Guess && s.length() > 3);
        finished.forEach(sequence -> {
            assertThat(sequence.spans().toRecords(sequence.length())).hasSize(1);
            assertAgrees(sequence, 1e-5f);
        });
    }

    @Test
    void shouldSampleTheSameRolloutInAnySlotAndCompany() {
        Map<String, int[]> alone = tokens(sample(samples(12, PLAIN), config(1, 1, CacheOnSwap.RECOMPUTE), 1));
        Map<String, int[]> together = tokens(sample(samples(12, PLAIN), config(7, 4, CacheOnSwap.KEEP), 1));
        assertThat(together.keySet()).isEqualTo(alone.keySet());
        alone.forEach((id, tokens) -> assertThat(together.get(id)).as(id).isEqualTo(tokens));
        assertThat(alone.values().stream().map(Arrays::toString).distinct()).hasSizeGreaterThan(8);
    }

    @Test
    void shouldBeExactPerVersionSpanWhenWeightsAreSwappedInMidSequence() {
        List<RunningSequence> finished = sample(samples(24, PLAIN), config(5, 3, CacheOnSwap.RECOMPUTE), 3);
        assertThat(finished).hasSize(24);
        assertThat(finished).anyMatch(s -> s.spans().toRecords(s.length()).size() > 1);
        finished.forEach(sequence -> assertAgrees(sequence, 1e-5f));
    }

    @Test
    void shouldBeExactUnderEachOfTwoVersionsSideBySide() {
        Map<String, int[]> alone = new TreeMap<>();
        for (long version = 0; version < 2; version++) {
            long only = version;
            Deque<RunningSequence> samples = samples(24, PLAIN);
            samples.removeIf(sequence -> sequence.prompt().request().getOrdinal() % 2 != only);
            tokens(sampleUnder(samples, sequence -> only)).forEach(alone::put);
        }
        List<RunningSequence> together = sampleUnder(
                samples(24, PLAIN), sequence -> sequence.prompt().request().getOrdinal() % 2);
        assertThat(together).hasSize(24).allSatisfy(sequence -> {
            assertThat(sequence.spans().toRecords(sequence.length()))
                    .containsExactly(
                            new VersionSpan(sequence.prompt().request().getOrdinal() % 2, 0, sequence.length()));
            assertAgrees(sequence, 1e-5f);
        });
        assertThat(tokens(together)).usingRecursiveComparison().isEqualTo(alone);
    }

    /** Samples everything, each sequence under the version that it is given. */
    private List<RunningSequence> sampleUnder(
            Deque<RunningSequence> samples, ToLongFunction<RunningSequence> versionOf) {
        List<RunningSequence> finished = new ArrayList<>();
        try (ContinuousBatcher batcher =
                new ContinuousBatcher(Engine.cpu(), SHAPE, config(5, 3, CacheOnSwap.RECOMPUTE))) {
            for (int call = 0; !samples.isEmpty() || batcher.active() > 0; call++) {
                while (batcher.hasRoom() && !samples.isEmpty()) {
                    batcher.add(samples.remove());
                }
                for (long version = 0; version < 2; version++) {
                    long under = version;
                    batcher.advance(version(under), under, each -> versionOf.applyAsLong(each) == under, finished::add);
                }
                assertThat(call).as("calls").isLessThan(10_000);
            }
        }
        return finished;
    }

    @Test
    void shouldKeepOldKeysAndValuesWhereThatIsAskedFor() {
        List<RunningSequence> finished = sample(samples(24, PLAIN), config(5, 1, CacheOnSwap.KEEP), 3);
        double largest = 0;
        for (RunningSequence sequence : finished) {
            List<VersionSpan> spans = sequence.spans().toRecords(sequence.length());
            largest = Math.max(largest, largestDifference(sequence, spans));
        }
        assertThat(finished).anyMatch(s -> s.spans().toRecords(s.length()).size() > 1);
        assertThat(largest).isGreaterThan(1e-3);
    }

    @Test
    void shouldSampleEachTokenAsOftenAsItsProbabilitySays() {
        PromptRequest request = Requests.request(3, new int[] {0, 7, 2}, "fixed-answer", "1", 4000)
                .setSampling(Requests.sampling(1.3, 0, 1, 1))
                .build();
        AcceptedPrompt prompt = Requests.accepted(request, new int[] {0, 7, 2}, new FixedAnswer());
        Deque<RunningSequence> samples = new ArrayDeque<>();
        for (int i = 0; i < 4000; i++) {
            samples.add(new RunningSequence(prompt, i, 16, 0));
        }
        int[] counts = new int[16];
        double[] probabilities = new double[16];
        for (RunningSequence sequence : sample(samples, config(64, 3, CacheOnSwap.RECOMPUTE), 1)) {
            counts[sequence.token(0)]++;
            probabilities[sequence.token(0)] = Math.exp(sequence.logProbs()[0]);
        }
        assertThat(Arrays.stream(probabilities).sum()).isCloseTo(1, within(0.02)); // unlikely tokens may not have come
        double statistic = 0;
        for (int token = 0; token < 16; token++) {
            double expected = 4000 * probabilities[token];
            statistic += expected == 0 ? 0 : (counts[token] - expected) * (counts[token] - expected) / expected;
        }
        assertThat(statistic).isLessThan(15 + 5 * Math.sqrt(30)); // chi-square, 15 degrees of freedom, 5 deviations
    }

    @Test
    void shouldRecordTheRenormalisedLogProbWhereTheDistributionIsCut() {
        List<RunningSequence> finished =
                sample(samples(12, Requests.sampling(0.9, 3, 1, 9)), config(5, 4, CacheOnSwap.RECOMPUTE), 1);
        for (RunningSequence sequence : finished) {
            float[] full = scores(sequence, versions.get(0L));
            for (int i = 0; i < sequence.length(); i++) {
                if (sequence.byPolicy(i)) {
                    assertThat(sequence.temperedLogProbs()[i]).isCloseTo(full[i], within(1e-5f));
                    assertThat(sequence.logProbs()[i]).isGreaterThan(full[i]).isLessThanOrEqualTo(0f);
                }
            }
        }
    }

    @Test
    void shouldGiveUpTheSequencesOfPartitionsThatMoved() {
        try (ContinuousBatcher batcher =
                new ContinuousBatcher(Engine.cpu(), SHAPE, config(4, 1, CacheOnSwap.RECOMPUTE))) {
            samples(3, PLAIN).forEach(batcher::add);
            batcher.advance(version(0), 0, sequence -> {});
            batcher.revoke(Set.of(new TopicPartition("prompts", 1)));
            assertThat(batcher.active()).isEqualTo(3);
            batcher.revoke(Set.of(new TopicPartition("prompts", 0)));
            assertThat(batcher.active()).isZero();
            samples(4, PLAIN).forEach(batcher::add);
            assertThat(batcher.hasRoom()).isFalse();
        }
    }

    @Test
    void shouldCountWhatWasSampledAndWhatWasForced() {
        try (ContinuousBatcher batcher =
                new ContinuousBatcher(Engine.cpu(), SHAPE, config(1, 4, CacheOnSwap.RECOMPUTE))) {
            batcher.add(inc(0, Requests.sampling(1, 0, 1, 5))); // a prompt of 4, an answer of 2
            List<RunningSequence> finished = new ArrayList<>();
            batcher.advance(version(0), 0, finished::add); // 3 forced, 1 sampled
            assertThat(batcher.forcedTokens()).isEqualTo(3);
            assertThat(batcher.sampledTokens()).isEqualTo(1);
            assertThat(finished).isEmpty();
            batcher.advance(version(1), 1, finished::add); // again from the first: 4 taken in, 1 sampled
            assertThat(batcher.forcedTokens()).isEqualTo(7);
            assertThat(batcher.sampledTokens()).isEqualTo(2);
            assertThat(finished)
                    .singleElement()
                    .satisfies(sequence -> assertThat(sequence.spans().toRecords(2))
                            .containsExactly(new VersionSpan(0L, 0, 1), new VersionSpan(1L, 1, 2)));
        }
    }

    @Test
    void shouldTakeAGroupsPromptInOnce() {
        try (ContinuousBatcher batcher =
                new ContinuousBatcher(Engine.cpu(), SHAPE, config(4, 2, CacheOnSwap.RECOMPUTE))) {
            List<RunningSequence> finished = new ArrayList<>();
            for (int sample = 0; sample < 3; sample++) {
                batcher.add(inc(sample, PLAIN)); // prompts of 4, answers of 2
            }
            batcher.advance(version(0), 0, finished::add);
            assertThat(batcher.forcedTokens()).isEqualTo(3);
            assertThat(batcher.copiedTokens()).isEqualTo(6);
            assertThat(finished).hasSize(3).allSatisfy(sequence -> assertAgrees(sequence, 1e-5f));
            batcher.add(inc(0, PLAIN)); // into the first's slot, and another one still holds the prompt
            batcher.advance(version(0), 0, finished::add);
            assertThat(batcher.forcedTokens()).isEqualTo(3);
            assertThat(batcher.copiedTokens()).isEqualTo(9);
            batcher.add(inc(0, PLAIN)); // other weights' keys and values are of no use
            batcher.advance(version(1), 1, finished::add);
            assertThat(batcher.forcedTokens()).isEqualTo(6);
            batcher.forgetVersions();
            batcher.add(inc(0, PLAIN));
            batcher.advance(version(1), 1, finished::add);
            assertThat(batcher.forcedTokens()).isEqualTo(9);
            assertThat(finished.get(3).logProbs()).isEqualTo(finished.get(0).logProbs());
            assertThat(finished.get(5).logProbs()).isEqualTo(finished.get(4).logProbs());
            assertAgrees(finished.get(4), 1e-5f);
        }
    }

    @Test
    void shouldTakeInOnlyWhatIsNewOfAConversationOfTheSameVersion() {
        try (ContinuousBatcher batcher =
                new ContinuousBatcher(Engine.cpu(), SHAPE, config(2, 3, CacheOnSwap.RECOMPUTE))) {
            batcher.keepPrefixes(new PrefixCache(1 << 20));
            int[] prompt = {0, 7, 2, 5, 3, 9, 4, 1, 8, 6};
            RunningSequence first = turn(batcher, prompt, 0);
            assertThat(first.reused()).isZero();
            int[] goesOn = Arrays.copyOf(prompt, prompt.length + first.length() + 2);
            System.arraycopy(first.responseTokens(), 0, goesOn, prompt.length, first.length());
            goesOn[goesOn.length - 1] = 3;
            for (int other = 0; other < 4; other++) { // of other conversations, in the same slots
                turn(batcher, new int[] {1, 1, other}, 0);
            }

            long before = batcher.forcedTokens();
            RunningSequence second = turn(batcher, goesOn, 0);
            assertThat(second.reused()).as("all that was fed").isEqualTo(prompt.length + first.length() - 1);
            assertThat(batcher.forcedTokens() - before).isEqualTo(goesOn.length - second.reused() - 1);
            assertAgrees(second, 1e-5f);

            RunningSequence again = turn(batcher, goesOn, 1);
            assertThat(again.reused()).as("under another version").isZero();
            assertAgrees(again, 1e-5f);
        }
    }

    @Test
    void shouldKeepNothingThatTwoVersionsMade() {
        for (CacheOnSwap onSwap : CacheOnSwap.values()) {
            try (ContinuousBatcher batcher = new ContinuousBatcher(Engine.cpu(), SHAPE, config(1, 1, onSwap))) {
                PrefixCache cache = new PrefixCache(1 << 20);
                batcher.keepPrefixes(cache);
                int[] prompt = {0, 7, 2, 5, 3, 9, 4, 1, 8, 6};
                RunningSequence sequence = begun(batcher, prompt, 0);
                while (sequence.length() == 0) {
                    batcher.advance(version(0), 0, finished -> {});
                }
                while (batcher.active() > 0) {
                    batcher.advance(version(1), 1, finished -> {});
                }
                assertThat(cache.find(prompt, 0)).isEmpty();
                assertThat(cache.find(prompt, 1).isPresent())
                        .as("what was taken in again is of one version")
                        .isEqualTo(onSwap == CacheOnSwap.RECOMPUTE);
            }
        }
    }

    private static RunningSequence begun(ContinuousBatcher batcher, int[] prompt, long version) {
        PromptRequest request = Requests.request(5, prompt, "fixed-answer", "1", 1)
                .setSampling(Requests.sampling(1, 0, 1, 2))
                .build();
        RunningSequence sequence =
                new RunningSequence(Requests.accepted(request, prompt, new UntilEnd()), 0, SHAPE.vocabSize(), 0);
        sequence.continueWith(version);
        batcher.add(sequence);
        return sequence;
    }

    /** Two tokens that follow a prompt. */
    private RunningSequence turn(ContinuousBatcher batcher, int[] prompt, long version) {
        RunningSequence sequence = begun(batcher, prompt, version);
        while (batcher.active() > 0) {
            batcher.advance(version(version), version, finished -> {});
        }
        return sequence;
    }

    @Test
    void shouldLetSequencesInFlightGoOnWhileALongPromptIsTakenIn() {
        DecoderShape shape = new DecoderShape(16, 32, 2, 4, 2, 8, 48, 256, 100, 1e-6, false, false);
        GeneratorConfig config = new GeneratorConfig(
                "test",
                3,
                1,
                200,
                2,
                8,
                20,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.KEEP,
                25,
                100,
                10,
                100,
                100,
                1000,
                1000);
        Weights weights = Weights.random(shape, 5);
        int[] longPrompt = new int[101];
        Arrays.fill(longPrompt, 7);
        try (ContinuousBatcher batcher = new ContinuousBatcher(Engine.cpu(), shape, config)) {
            batcher.add(answer(0, new int[] {0, 7, 2}, 12));
            batcher.add(answer(1, longPrompt, 2));
            batcher.add(answer(1, longPrompt, 2));
            List<String> finished = new ArrayList<>();
            for (int call = 0; call < 6; call++) { // two tokens of the first in each, from the first on
                assertThat(finished).isEmpty();
                long before = batcher.forcedTokens();
                batcher.advance(weights, 0, sequence -> finished.add(sequence.rolloutId()));
                assertThat(batcher.forcedTokens() - before).isBetween(1L, 20L);
            }
            assertThat(finished).containsExactly("0-0/0", "0-1/0", "0-1/0");
            assertThat(batcher.forcedTokens()).isEqualTo(2 + 100);
            assertThat(batcher.copiedTokens()).isEqualTo(100);
        }
    }

    private static RunningSequence answer(int ordinal, int[] prompt, int digits) {
        PromptRequest request = Requests.request(ordinal, prompt, "fixed-answer", "1".repeat(digits), 1)
                .setSampling(Requests.sampling(1, 0, 1, digits))
                .build();
        return new RunningSequence(Requests.accepted(request, prompt, new FixedAnswer()), 0, 16, 0);
    }

    @Test
    void shouldSampleTheSameRolloutWhereEnvironmentsTakeTime() {
        Map<String, int[]> atOnce = tokens(sample(samples(24, PLAIN), config(5, 4, CacheOnSwap.RECOMPUTE), 1));
        List<RunningSequence> late = sample(samples(24, PLAIN, 3), config(5, 4, CacheOnSwap.RECOMPUTE), 1);
        assertThat(late).anyMatch(s -> s.prompt().environment() instanceof Slow && s.length() > 3);
        assertThat(tokens(late)).usingRecursiveComparison().isEqualTo(atOnce);
        late.forEach(sequence -> assertAgrees(sequence, 1e-5f));
        sample(samples(24, PLAIN, 3), config(5, 3, CacheOnSwap.RECOMPUTE), 3)
                .forEach(sequence -> assertAgrees(sequence, 1e-5f));
    }

    @Test
    void shouldLetOthersGoOnWhileOneWaitsForItsEnvironment() {
        try (ContinuousBatcher batcher =
                new ContinuousBatcher(Engine.cpu(), SHAPE, config(2, 6, CacheOnSwap.RECOMPUTE))) {
            Map<String, Integer> finishedAt = new HashMap<>();
            batcher.add(sequence(0, 0, new IncPrompts(2).prompt(1, 0), new Slow(new FixedAnswer(), 3), PLAIN));
            for (int call = 0; call < 4; call++) {
                if (call < 2) {
                    batcher.add(inc(3 * (call + 1), PLAIN));
                }
                int now = call;
                boolean advanced =
                        batcher.advance(version(0), 0, sequence -> finishedAt.put(sequence.rolloutId(), now));
                assertThat(advanced)
                        .as("call %d", call)
                        .isEqualTo(call != 2); // in the third all that is left is to wait
            }
            assertThat(finishedAt.values()).containsExactlyInAnyOrder(0, 1, 3);
            assertThat(batcher.active()).isZero();
        }
    }

    /** Answers only after a few more calls. */
    private record Slow(Environment environment, int times) implements Environment {
        @Override
        public String name() {
            return environment.name();
        }

        @Override
        public int endToken() {
            return environment.endToken();
        }

        @Override
        public Episode begin(String state) {
            Episode episode = environment.begin(state);
            return new Episode() {
                private int askedAt = -1;
                private int asked;

                @Override
                public StepResult afterToken(Transcript response) {
                    asked = response.length() == askedAt ? asked + 1 : 0;
                    askedAt = response.length();
                    StepResult result = episode.afterToken(response);
                    return result.equals(StepResult.GO_ON) || asked == times ? result : StepResult.LATER;
                }

                @Override
                public VerifiedReward verify(Transcript response) {
                    return episode.verify(response);
                }
            };
        }
    }

    /** Samples everything, with a new version at every {@code versionEvery}-th call if there is more than one. */
    private List<RunningSequence> sample(Deque<RunningSequence> samples, GeneratorConfig config, int versionCount) {
        List<RunningSequence> finished = new ArrayList<>();
        try (ContinuousBatcher batcher = new ContinuousBatcher(Engine.cpu(), SHAPE, config)) {
            for (int call = 0; !samples.isEmpty() || batcher.active() > 0; call++) {
                while (batcher.hasRoom() && !samples.isEmpty()) {
                    batcher.add(samples.remove());
                }
                long version = versionCount == 1 ? 0 : call / 4;
                batcher.advance(version(version), version, finished::add);
                assertThat(call).as("calls").isLessThan(10_000);
            }
        }
        return finished;
    }

    private Weights version(long version) {
        return versions.computeIfAbsent(version, v -> {
            Weights weights = Weights.random(SHAPE, 40 + v);
            FloatBuffer head = weights.tensor("lm_head.weight");
            for (int i = 0; i < head.capacity(); i++) {
                head.put(i, 1.5f * head.get(i));
            }
            return weights;
        });
    }

    private void assertAgrees(RunningSequence sequence, float tolerance) {
        List<VersionSpan> spans = sequence.spans().toRecords(sequence.length());
        assertThat(spans.get(0).getStart()).isZero();
        assertThat(spans.get(spans.size() - 1).getEnd()).isEqualTo(sequence.length());
        assertThat(largestDifference(sequence, spans))
                .as("%s with %s", sequence.rolloutId(), spans)
                .isLessThan(tolerance);
    }

    private double largestDifference(RunningSequence sequence, List<VersionSpan> spans) {
        double largest = 0;
        for (VersionSpan span : spans) {
            float[] scored = scores(sequence, version(span.getVersion()));
            for (int i = span.getStart(); i < span.getEnd(); i++) {
                if (sequence.byPolicy(i)) {
                    largest = Math.max(largest, Math.abs(scored[i] - sequence.logProbs()[i]));
                } else {
                    assertThat(sequence.logProbs()[i]).isZero();
                }
            }
        }
        return largest;
    }

    private float[] scores(RunningSequence sequence, Weights weights) {
        int promptLength = sequence.prompt().tokens().length;
        int[] tokens = new int[sequence.known()];
        Arrays.setAll(tokens, sequence::sequenceToken);
        TokenScores scores =
                scoring.score(weights, new SequenceBatch(new int[][] {tokens}, new int[] {promptLength}), new float[] {
                    (float) sequence.prompt().request().getSampling().getTemperature()
                });
        return scores.logProbs();
    }

    private static Map<String, int[]> tokens(List<RunningSequence> finished) {
        Map<String, int[]> tokens = new TreeMap<>();
        finished.forEach(sequence -> tokens.put(sequence.rolloutId(), sequence.responseTokens()));
        return tokens;
    }

    /** Turn about single-turn and multi-turn prompts, three samples of each. */
    private static Deque<RunningSequence> samples(int count, SamplingParameters sampling) {
        return samples(count, sampling, 0);
    }

    /** @param late polls without an answer before the environments react */
    private static Deque<RunningSequence> samples(int count, SamplingParameters sampling, int late) {
        Deque<RunningSequence> samples = new ArrayDeque<>();
        for (int i = 0; i < count; i++) {
            int ordinal = i / 3;
            Prompt prompt =
                    ordinal % 2 == 0 ? new IncPrompts(2).prompt(1, ordinal) : new GuessPrompts(1, 5).prompt(1, ordinal);
            Environment environment = ordinal % 2 == 0 ? new FixedAnswer() : new Guess();
            samples.add(
                    sequence(ordinal, i % 3, prompt, late == 0 ? environment : new Slow(environment, late), sampling));
        }
        return samples;
    }

    private static RunningSequence inc(int i, SamplingParameters sampling) {
        return sequence(i / 3, i % 3, new IncPrompts(2).prompt(1, i / 3), new FixedAnswer(), sampling);
    }

    private static RunningSequence sequence(
            int ordinal, int sample, Prompt prompt, Environment environment, SamplingParameters sampling) {
        PromptRequest request = Requests.request(
                        ordinal, prompt.tokens(), environment.name(), prompt.environmentState(), 3)
                .setSampling(sampling)
                .build();
        return new RunningSequence(
                Requests.accepted(request, prompt.tokens(), environment),
                sample,
                Symbols.names().size(),
                0);
    }

    private static GeneratorConfig config(int slots, int tokensPerCall, CacheOnSwap cacheOnSwap) {
        return new GeneratorConfig(
                "test",
                slots,
                1,
                16,
                tokensPerCall,
                3,
                7,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                cacheOnSwap,
                25,
                100,
                10,
                100,
                100,
                1000,
                1000);
    }
}
