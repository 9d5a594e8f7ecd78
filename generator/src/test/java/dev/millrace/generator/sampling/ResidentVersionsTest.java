package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.weights.NewestWeights;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Two updates of the weights while sequences are in flight, on one engine thread and on several. */
class ResidentVersionsTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 32, 2, 4, 2, 8, 48, 256, 100, 1e-6, false, false);
    private static final int SLOTS = 6;
    private static final int AT_ONCE = Integer.MAX_VALUE;
    private static final int BESIDE = 0;

    private final List<Weights> versions =
            List.of(Weights.random(SHAPE, 41), Weights.random(SHAPE, 42), Weights.random(SHAPE, 43));

    /** What a rollout is, to the bit. */
    private record Sampled(List<Integer> tokens, List<Float> logProbs, List<VersionSpan> spans) {}

    /** What was sampled, and by how many tokens through the engine. */
    private record Played(Map<String, Sampled> rollouts, long sampled, long forced, long copied) {}

    /** Weights as they are published: at the sixth call, and at the fourteenth. */
    private final class Published implements ResidentVersions.Source {
        int newest;
        long readOn = -1; // without read-ahead

        @Override
        public NewestWeights.Loaded current() {
            return new NewestWeights.Loaded(manifest(newest), versions.get(newest));
        }

        @Override
        public void readOneAhead() {
            readOn = 0;
        }

        @Override
        public void readOn(long version) {
            readOn = readOn < 0 ? -1 : version; // only relevant for read-ahead
        }

        void at(int call) {
            boolean isRead = readOn < 0 || readOn == 1;
            if (call == 6 || call >= 14 && newest == 1 && isRead) {
                newest++;
            }
        }
    }

    private static PolicyVersion manifest(long version) {
        return PolicyVersion.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(version)
                .setParentVersion(version - 1)
                .setBatchId(version)
                .setShape("{}")
                .setTokenizerHash("vocabulary")
                .setWeights(TensorLocation.newBuilder()
                        .setTopic("weights")
                        .setPartition(0)
                        .setFirstOffset(0)
                        .setLastOffset(0)
                        .setTensors(List.of())
                        .setSha256("")
                        .build())
                .setOptimizerSteps(version)
                .setRolloutsConsumed(0)
                .setTokensTrained(0)
                .setPublishedAtMs(0)
                .build();
    }

    @ParameterizedTest
    @CsvSource({
        "IN_FLIGHT, RECOMPUTE, 0 1 2",
        "IN_FLIGHT, KEEP, 0 1 2",
        "DRAIN, RECOMPUTE, 0 2", // the one between is overtaken
        "MULTI_VERSION, RECOMPUTE, 0 1 2"
    })
    void shouldSampleTheSameWithAnyNumberOfThreadsWhereNothingIsComputedBesideSampling(
            WeightUpdate update, CacheOnSwap cache, String seen) {
        Played one = play(config(1, update, cache, AT_ONCE, WeightPlacement.FED));
        assertThat(one.rollouts().values().stream().map(each -> each.spans().size()))
                .as("versions of a sequence")
                .contains(update == WeightUpdate.IN_FLIGHT ? 3 : 1);
        assertThat(versionsOf(one)).hasToString("[" + seen.replace(" ", ", ") + "]");
        for (int threads = 2; threads <= 3; threads++) {
            Played several = play(config(threads, update, cache, AT_ONCE, WeightPlacement.FED));
            assertThat(several.rollouts()).isEqualTo(one.rollouts());
            assertThat(several.sampled()).isEqualTo(one.sampled());
            assertThat(several.forced() + several.copied())
                    .as("tokens that went in, or were copied where one part had them")
                    .isEqualTo(one.forced() + one.copied());
        }
        assertAgrees(one, cache == CacheOnSwap.KEEP);
        assertThat(one.sampled()).isEqualTo(tokens(one));
    }

    @ParameterizedTest
    @CsvSource({"1, FED", "2, FED", "3, FED", "1, PACKED", "2, PACKED", "3, PACKED"})
    void shouldComputeKeysAndValuesAgainBesideSamplingOnEveryThreadAsIfItHadStoodStill(
            int threads, WeightPlacement placement) throws Exception {
        GeneratorConfig config = config(threads, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE, BESIDE, placement);
        Played played = play(config);
        assertThat(versionsOf(played)).containsExactly(0L, 1L, 2L);
        assertThat(played.sampled()).isEqualTo(tokens(played));
        assertAgrees(played, false);
        long least = 0; // each sequence's tokens before each of its versions, the first token of all apart
        for (Map.Entry<String, Sampled> each : played.rollouts().entrySet()) {
            for (VersionSpan span : each.getValue().spans()) {
                least += promptOf(each.getKey()).length + span.getStart() - 1;
            }
        }
        assertThat(played.forced() + played.copied()).isGreaterThanOrEqualTo(least);
        assertThat(again(config, played.rollouts())).isEqualTo(played.rollouts());
        assertThreadsEnd(config);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void shouldEndItsThreadsWhereItIsClosedWhileTheyCompute(int threads) throws Exception {
        GeneratorConfig config =
                config(threads, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE, BESIDE, WeightPlacement.FED);
        try (SlotPool pool = new SlotPool(Engine.cpu(), SHAPE, config)) {
            ResidentVersions resident = resident(pool, config, new Published());
            begin(pool, resident, waiting());
            for (int call = 0; call < 6; call++) {
                pool.advance(versions.get(0), 0, sequence -> {});
            }
            assertThat(pool.continueWith(1)).as("in parallel to sampling").isTrue();
            pool.renew(versions.get(1), 1);
            assertThat(threadsOf(config).stream().filter(each -> each.getName().startsWith("renewal")))
                    .isNotEmpty();
        }
        assertThreadsEnd(config);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3})
    void shouldSayWhatWentWrongBesideSamplingOnAnyThreadAndStillClose(int threads) throws Exception {
        DecoderShape other = new DecoderShape(16, 32, 1, 4, 2, 8, 48, 256, 100, 1e-6, false, false);
        GeneratorConfig config =
                config(threads, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE, BESIDE, WeightPlacement.FED);
        try (SlotPool pool = new SlotPool(Engine.cpu(), SHAPE, config)) {
            begin(pool, resident(pool, config, new Published()), waiting());
            for (int call = 0; call < 6; call++) {
                pool.advance(versions.get(0), 0, sequence -> {});
            }
            assertThat(pool.continueWith(1)).isTrue();
            pool.renew(Weights.random(other, 1), 1);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> {
                        while (!pool.takeRenewed()) {
                            LockSupport.parkNanos(100_000);
                        }
                    })
                    .withMessageContaining("of another shape");
        }
        assertThreadsEnd(config);
    }

    @Test
    void shouldNeverHoldAThirdVersionWhileSequencesFinishOnTheOneBefore() {
        GeneratorConfig config =
                config(3, WeightUpdate.MULTI_VERSION, CacheOnSwap.RECOMPUTE, AT_ONCE, WeightPlacement.FED);
        Published published = new Published();
        Deque<RunningSequence> waiting = waiting();
        try (SlotPool pool = new SlotPool(Engine.cpu(), SHAPE, config)) {
            ResidentVersions resident = resident(pool, config, published);
            begin(pool, resident, waiting);
            resident.advance(sequence -> {});
            published.newest = 1;
            assertThat(resident.takeUp(false)).isTrue();
            assertThat(resident.olderVersion()).hasValue(0);
            published.newest = 2;
            while (resident.olderVersion().isPresent()) {
                assertThat(resident.takeUp(false)).isFalse();
                assertThat(published.readOn)
                        .as("the last without a parallel version")
                        .isZero();
                assertThat(resident.oldestInFlight()).hasValue(0);
                resident.advance(sequence -> {});
            }
            assertThat(resident.takeUp(false)).isTrue();
            assertThat(resident.version()).isEqualTo(2);
        }
    }

    private ResidentVersions resident(SlotPool pool, GeneratorConfig config, Published published) {
        ResidentVersions resident = new ResidentVersions(
                published, config.weightUpdate(), pool, new GeneratorMeters(new SimpleMeterRegistry()));
        resident.takeUp(false);
        return resident;
    }

    private static void begin(SlotPool pool, ResidentVersions resident, Deque<RunningSequence> waiting) {
        while (resident.mayBegin(false) && pool.hasRoom() && !waiting.isEmpty()) {
            resident.begin(waiting.remove());
        }
    }

    private Played play(GeneratorConfig config) {
        Map<String, Sampled> rollouts = new TreeMap<>();
        Published published = new Published();
        Deque<RunningSequence> waiting = waiting();
        try (SlotPool pool = new SlotPool(Engine.cpu(), SHAPE, config)) {
            ResidentVersions resident = resident(pool, config, published);
            warm(pool, resident);
            long sampled = pool.sampledTokens();
            long forced = pool.forcedTokens();
            long copied = pool.copiedTokens();
            for (int call = 0; !waiting.isEmpty() || pool.active() > 0; call++) {
                published.at(call);
                resident.takeUp(false);
                begin(pool, resident, waiting);
                resident.advance(sequence -> rollouts.put(sequence.rolloutId(), sampled(sequence)));
            }
            return new Played(
                    rollouts,
                    pool.sampledTokens() - sampled,
                    pool.forcedTokens() - forced,
                    pool.copiedTokens() - copied);
        }
    }

    /** Every part takes in prompts twice: before that the duration is unknown, and nothing is computed at once. */
    private static void warm(SlotPool pool, ResidentVersions resident) {
        Deque<RunningSequence> waiting = new ArrayDeque<>();
        for (int ordinal = 100; ordinal < 100 + 2 * SLOTS; ordinal++) {
            waiting.add(sequence(ordinal, 0, 2));
        }
        while (!waiting.isEmpty()) {
            begin(pool, resident, waiting);
            while (pool.active() > 0) {
                resident.advance(sequence -> {});
            }
        }
    }

    /** Reference: on one thread, with versions at the same tokens, and sampling paused for them. */
    private Map<String, Sampled> again(GeneratorConfig config, Map<String, Sampled> rollouts) {
        Map<String, Sampled> found = new TreeMap<>();
        GeneratorConfig one = config.withSlots(16, config.capacityTokens(), config.tokensPerCall());
        try (ContinuousBatcher batcher = new ContinuousBatcher(Engine.cpu(), SHAPE, one)) {
            waiting().forEach(batcher::add);
            while (batcher.active() > 0) {
                for (int version = 0; version < versions.size(); version++) {
                    int under = version;
                    batcher.advance(
                            versions.get(under),
                            under,
                            sequence -> versionOf(rollouts.get(sequence.rolloutId()), sequence.length()) == under,
                            sequence -> found.put(sequence.rolloutId(), sampled(sequence)));
                }
            }
        }
        return found;
    }

    private static long versionOf(Sampled rollout, int position) {
        return rollout.spans().stream()
                .filter(span -> position < span.getEnd())
                .findFirst()
                .orElseThrow()
                .getVersion();
    }

    private static List<Long> versionsOf(Played played) {
        return played.rollouts().values().stream()
                .flatMap(each -> each.spans().stream())
                .map(VersionSpan::getVersion)
                .distinct()
                .sorted()
                .toList();
    }

    private static long tokens(Played played) {
        return played.rollouts().values().stream()
                .mapToLong(each -> each.tokens().size())
                .sum();
    }

    private static void assertThreadsEnd(GeneratorConfig config) throws InterruptedException {
        for (Thread thread : threadsOf(config)) {
            thread.join(150_000);
            assertThat(thread.isAlive()).as(thread.getName()).isFalse();
        }
    }

    /** Threads of a pool that have not ended. */
    private static List<Thread> threadsOf(GeneratorConfig config) {
        List<Thread> left = new ArrayList<>();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().startsWith("renewal-" + config.id())
                    || thread.getName().startsWith("engine-" + config.id())) {
                left.add(thread);
            }
        }
        return left;
    }

    /** Log-probs are those that the learner's engine gives to the same tokens under the version of their span. */
    private void assertAgrees(Played played, boolean firstSpanOnly) {
        try (ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 1000)) {
            played.rollouts().forEach((id, rollout) -> {
                int[] prompt = promptOf(id);
                int[] all =
                        Arrays.copyOf(prompt, prompt.length + rollout.tokens().size());
                for (int i = prompt.length; i < all.length; i++) {
                    all[i] = rollout.tokens().get(i - prompt.length);
                }
                int end = 0;
                for (VersionSpan span : rollout.spans()) {
                    assertThat(span.getStart()).isEqualTo(end);
                    end = span.getEnd();
                    if (firstSpanOnly && span.getStart() > 0) {
                        continue;
                    }
                    float[] scored = scoring.score(
                                    versions.get((int) span.getVersion()),
                                    new SequenceBatch(new int[][] {all}, new int[] {prompt.length}),
                                    new float[] {1})
                            .logProbs();
                    for (int i = span.getStart(); i < end; i++) {
                        assertThat(Math.abs(scored[i] - rollout.logProbs().get(i)))
                                .as("%s at %d of %s", id, i, rollout.spans())
                                .isLessThan(1e-5f);
                    }
                }
                assertThat(end).isEqualTo(rollout.tokens().size());
            });
        }
    }

    private static Sampled sampled(RunningSequence sequence) {
        List<Float> logProbs = new ArrayList<>();
        for (float logProb : sequence.logProbs()) {
            logProbs.add(logProb);
        }
        return new Sampled(
                Arrays.stream(sequence.responseTokens()).boxed().toList(),
                logProbs,
                sequence.spans().toRecords(sequence.length()));
    }

    /** Sixteen sequences of eight prompts. */
    private static Deque<RunningSequence> waiting() {
        Deque<RunningSequence> waiting = new ArrayDeque<>();
        for (int ordinal = 0; ordinal < 8; ordinal++) {
            for (int sample = 0; sample < 2; sample++) {
                waiting.add(sequence(ordinal, sample, 60 + 20 * (ordinal % 3)));
            }
        }
        return waiting;
    }

    private static RunningSequence sequence(int ordinal, int sample, int tokens) {
        int[] prompt = prompt(ordinal);
        PromptRequest request = Requests.request(ordinal, prompt, new FixedAnswer().name(), "1".repeat(tokens), 2)
                .setSampling(Requests.sampling(1, 0, 1, tokens))
                .build();
        return new RunningSequence(Requests.accepted(request, prompt, new FixedAnswer()), sample, 16, 0);
    }

    private static int[] promptOf(String rolloutId) {
        return prompt(Integer.parseInt(rolloutId.substring(2, rolloutId.indexOf('/'))));
    }

    private static int[] prompt(int ordinal) {
        return new SplittableRandom(ordinal)
                .ints(10 + 15 * (ordinal % 4), 3, 13)
                .toArray();
    }

    private static GeneratorConfig config(
            int threads, WeightUpdate update, CacheOnSwap cache, int swapPauseMs, WeightPlacement placement) {
        return new GeneratorConfig(
                "swap-" + threads + "-" + placement,
                SLOTS,
                threads,
                160,
                2,
                40,
                4096,
                Precision.F32,
                placement,
                update,
                cache,
                swapPauseMs,
                100,
                10,
                100,
                100,
                1000,
                1000);
    }
}
