package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.EmaBaseline;
import dev.millrace.corrections.advantage.TrackedBaseline;
import dev.millrace.corrections.advantage.ValueTracker;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageFacts.TrackedValue;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.BaselineMemory.Kept;
import dev.millrace.stages.BaselineMemory.Update;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class BaselineMemoryTest {
    private static final EmaBaseline HALF = new EmaBaseline(0.5, EmaBaseline.Key.PROMPT);

    /** Sequences of one token, one for each key. */
    private static StageFacts facts(long version, List<String> keys, double... rewards) {
        byte[] mask = new byte[rewards.length];
        Arrays.fill(mask, (byte) 1);
        TokenBatch tokens =
                new TokenBatch(IntStream.rangeClosed(0, rewards.length).toArray(), mask);
        return StageFacts.of(tokens, rewards)
                .keys(StageInput.PROMPTS, keys)
                .versions(
                        version,
                        new BatchVersions(
                                tokens,
                                keys.stream()
                                        .map(key -> List.of(new VersionSpan(0, 0, 1)))
                                        .toList()))
                .build();
    }

    private static List<Double> baselines(BaselineMemory memory, String... keys) {
        return memory.before(facts(0, List.of(keys), new double[keys.length])).baselines().stream()
                .map(TrackedValue::value)
                .toList();
    }

    @Test
    void shouldDecideABatchByWhatWasBeforeIt() {
        BaselineMemory memory = new BaselineMemory(HALF);
        StageFacts first = facts(0, List.of("a", "b", "a"), 1, 3, 2);

        assertThat(memory.before(first).baselines())
                .containsExactly(new TrackedValue("a", 0), new TrackedValue("b", 0), new TrackedValue("a", 0));
        Update update = memory.after(0, first);

        // a: 0.5 · 0 + 0.5 · 1, then 0.5 · 0.5 + 0.5 · 2; b: 0.5 · 3
        assertThat(baselines(memory, "a", "b", "c")).containsExactly(1.25, 1.5, 0.0);
        assertThat(update.updated()).containsOnlyKeys("a", "b").containsEntry("a", new Kept(0, 0, List.of(1.25)));
        assertThat(update.added()).isEqualTo(2);
        assertThat(update.forgotten()).isEmpty();
    }

    @Test
    void shouldForgetByTheVersionsSinceAKeysLastBatch() {
        BaselineMemory memory = new BaselineMemory(new ValueTracker(0.25, 0.75, 10));
        memory.after(0, facts(3, List.of("a"), 1));
        // a new key at 2^0, clamped: 0.75 · 0.5 + 1 and 0.75 · 0.5
        assertThat(baselines(memory, "a").get(0)).isCloseTo(1.375 / 1.75, within(1e-12));
        memory.after(1, facts(5, List.of("b"), 0));
        memory.after(2, facts(13, List.of("a"), 0));
        // 10 versions are a half life: 0.5 · 1.375 and 0.5 · 0.375 + 1
        assertThat(baselines(memory, "a").get(0)).isCloseTo(0.6875 / 1.875, within(1e-12));
        memory.after(3, facts(11, List.of("a"), 0));
        // an expected version may fall behind an earlier batch's: no versions in between, so 0.75
        assertThat(baselines(memory, "a").get(0)).isCloseTo(0.515625 / 2.40625, within(1e-12));
    }

    @Test
    void shouldForgetTheLeastRecentlyUpdatedKeys() {
        BaselineMemory memory = new BaselineMemory(HALF, 3);
        memory.after(0, facts(0, List.of("d", "a"), 1, 1));
        memory.after(1, facts(0, List.of("c"), 1));
        memory.after(2, facts(0, List.of("d"), 1));

        Update update = memory.after(3, facts(0, List.of("y", "x"), 1, 1));

        assertThat(update.forgotten()).containsExactly("a", "c");
        assertThat(memory.size()).isEqualTo(3);
        assertThat(baselines(memory, "a", "c", "d", "x", "y")).containsExactly(0.0, 0.0, 0.75, 0.5, 0.5);

        Update many = memory.after(4, facts(0, List.of("4", "3", "2", "1"), 1, 1, 1, 1));
        assertThat(many.forgotten()).as("of one batch by name").containsExactly("d", "x", "y", "1");
        assertThat(many.updated()).containsOnlyKeys("2", "3", "4");
    }

    @Test
    void shouldBeTheSameAfterARestoreAndFromTheBatchesOnTheLog() {
        Random random = new Random(3);
        ValueTracker rule = ValueTracker.defaults();
        BaselineMemory live = new BaselineMemory(rule, 20);
        BaselineMemory restored = new BaselineMemory(rule, 20);
        BaselineMemory rebuilt = new BaselineMemory(rule, 20);
        Map<String, Kept> store = new TreeMap<>();
        int forgotten = 0;
        for (long batch = 0; batch < 40; batch++) {
            List<String> keys = new ArrayList<>();
            double[] rewards = new double[5];
            for (int s = 0; s < rewards.length; s++) {
                keys.add("p" + random.nextInt(30));
                rewards[s] = random.nextInt(2);
            }
            StageFacts facts = facts(2 * batch, keys, rewards);
            if (batch == 17) {
                store.forEach(restored::put);
            }
            LearnerBatch recorded = recorded(rule, batch, live.before(facts));

            Update update = live.after(batch, facts);

            assertThat(rebuilt.after(recorded)).isEqualTo(update);
            if (batch >= 17) {
                assertThat(restored.after(batch, facts)).isEqualTo(update);
            }
            store.putAll(update.updated());
            update.forgotten().forEach(store::remove);
            forgotten += update.forgotten().size();
        }
        assertThat(forgotten).isPositive();
        assertThat(store).hasSize(20);
    }

    /** The batch as a topology records it. */
    private static LearnerBatch recorded(TrackedBaseline rule, long batchId, StageFacts facts) {
        List<BatchEntry> members = IntStream.range(0, facts.rewards().length)
                .mapToObj(s -> new BatchEntry(
                        "g/" + s,
                        "g",
                        0,
                        (long) s,
                        0,
                        (long) s,
                        facts.rewards()[s],
                        0.0,
                        0L,
                        0,
                        null,
                        null,
                        null,
                        null,
                        null))
                .toList();
        return DecidedBatch.of(
                new DecidedBatch.Assembly(new RunIdentity("run", 0, "policy"), batchId, 0, facts.version()),
                members,
                List.of(),
                facts,
                StageBatch.decide(facts, List.of(rule)),
                false);
    }

    @Test
    void shouldPassOverABatchWhoseAdvantageKeptNothing() {
        BaselineMemory memory = new BaselineMemory(HALF);
        LearnerBatch none = recorded(HALF, 0, memory.before(facts(0, List.of("a"), 1)));
        none.getEntries().get(0).put("baseline", null);
        assertThat(memory.after(none)).isEqualTo(new Update(Map.of(), List.of(), 0));
    }

    @Test
    void shouldKeepNothingForAnAlgorithmThatReadsNothing() {
        assertThat(BaselineMemory.of(Algorithm.defaults())).isEmpty();
        assertThat(BaselineMemory.of(Algorithm.defaults().with(a -> a.advantage(HALF))))
                .hasValueSatisfying(memory -> assertThat(memory.kind()).isEqualTo("ema_baseline"));
    }
}
