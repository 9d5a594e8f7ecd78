package dev.millrace.topology.join;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.topology.Samples;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class PendingStoreTest {
    private static final int VALUE_BYTES = 10_000;

    private final KeyValueStore<Bytes, byte[]> store = Stores.keyValueStoreBuilder(
                    Stores.inMemoryKeyValueStore("pending"), Serdes.Bytes(), Serdes.ByteArray())
            .withLoggingDisabled()
            .build();
    private final Map<Long, Arrival> log = new HashMap<>();
    private final List<Integer> reads = new ArrayList<>();

    @BeforeEach
    void openStore() {
        MockProcessorContext<Object, Object> context = new MockProcessorContext<>();
        store.init(context.getStateStoreContext(), store);
    }

    private PendingStore open(long cacheBytes) {
        return new PendingStore(
                store,
                (kind, waiting) -> {
                    reads.add(waiting.size());
                    return waiting.stream()
                            .filter(w -> log.containsKey(w.offset()))
                            .map(w -> log.get(w.offset()))
                            .toList();
                },
                cacheBytes);
    }

    private RolloutArrival rollout(String group, int sample, long offset) {
        RolloutArrival arrival = new RolloutArrival(
                new SampleName(group, sample),
                Samples.rollout(group, sample).build(),
                new Record<>(new byte[0], new byte[VALUE_BYTES], 1000 + offset, new RecordHeaders()),
                offset);
        log.put(offset, arrival);
        return arrival;
    }

    @Test
    void shouldGiveBackWhatWaits() {
        PendingStore pending = open(1 << 20);
        RolloutArrival arrival = rollout("g", 0, 17);
        pending.add(arrival, 5);

        PendingRecord waiting = pending.find(JoinSide.ROLLOUT, "g/0").orElseThrow();
        assertThat(waiting)
                .isEqualTo(new PendingRecord(JoinSide.ROLLOUT, "g/0", "g", 17, 17, 3, 1017, arrival.bytes(), 5));
        assertThat(pending.payload(waiting)).containsSame(arrival);
        assertThat(pending.find(JoinSide.SCORE, "g/0")).isEmpty();
        assertThat(reads).isEmpty();
    }

    @Test
    void shouldForgetWhatIsDropped() {
        PendingStore pending = open(1 << 20);
        pending.add(rollout("g", 0, 0), 0);
        pending.remove(pending.find(JoinSide.ROLLOUT, "g/0").orElseThrow());
        assertThat(pending.size(JoinSide.ROLLOUT)).isZero();
        assertThat(store.approximateNumEntries()).isZero();
    }

    @Test
    void shouldBeAsBeforeAfterARestart() {
        PendingStore before = open(1 << 20);
        for (int i = 0; i < 20; i++) {
            before.add(rollout("group/with/slashes-" + i, 1, i), 100 + i);
        }
        ScoreArrival score = new ScoreArrival(
                new SampleName("s", 0),
                JoinSide.SCORE,
                Samples.score(Samples.rollout("s", 0).build(), 99).build(),
                new Record<>(new byte[0], new byte[VALUE_BYTES], 77, new RecordHeaders()),
                40);
        log.put(40L, score);
        before.add(score, 130);

        PendingStore after = open(1 << 20);

        assertThat(after.size(JoinSide.ROLLOUT)).isEqualTo(20);
        assertThat(after.newestSinceMs()).isEqualTo(130);
        assertThat(after.oldest(JoinSide.ROLLOUT)).isEqualTo(before.oldest(JoinSide.ROLLOUT));
        assertThat(after.find(JoinSide.SCORE, "s/0")).isEqualTo(before.find(JoinSide.SCORE, "s/0"));
        for (int i = 0; i < 20; i++) {
            PendingRecord waiting = after.find(JoinSide.ROLLOUT, "group/with/slashes-" + i + "/1")
                    .orElseThrow();
            assertThat(after.payload(waiting)).containsSame(log.get((long) i));
        }
        assertThat(reads).as("read again in one stretch").containsExactly(20);
    }

    @Test
    void shouldKeepTheOldestInMemoryAndReadTheRestInStretches() {
        PendingStore pending = open(10L * (VALUE_BYTES + Arrival.OBJECTS_BYTES));
        for (int i = 0; i < 100; i++) {
            pending.add(rollout("g" + i, 0, i), i);
        }
        for (int i = 0; i < 100; i++) {
            PendingRecord waiting =
                    pending.find(JoinSide.ROLLOUT, "g" + i + "/0").orElseThrow();
            assertThat(pending.payload(waiting)).containsSame(log.get((long) i));
            pending.remove(waiting);
        }
        assertThat(reads).hasSizeLessThanOrEqualTo(18).allMatch(size -> size <= 10); // 90 in stretches of at least 5
    }

    @Test
    void shouldStretchAcrossMemoryThatNewcomersFilled() {
        PendingStore first = open(10L * (VALUE_BYTES + Arrival.OBJECTS_BYTES));
        for (int i = 0; i < 30; i++) {
            first.add(rollout("g" + i, 0, i), i);
        }
        PendingStore restarted = open(10L * (VALUE_BYTES + Arrival.OBJECTS_BYTES));
        for (int i = 30; i < 50; i++) {
            restarted.add(rollout("g" + i, 0, i), i); // ten of them fill the memory
        }
        for (int i = 0; i < 50; i++) {
            PendingRecord waiting =
                    restarted.find(JoinSide.ROLLOUT, "g" + i + "/0").orElseThrow();
            assertThat(restarted.payload(waiting)).containsSame(log.get((long) i));
            restarted.remove(waiting);
        }
        assertThat(reads).hasSizeLessThanOrEqualTo(11);
    }

    @Test
    void shouldSayWhenTheLogHoldsItNoLonger() {
        open(1 << 20).add(rollout("g", 0, 3), 0);
        log.clear();
        PendingStore restarted = open(1 << 20);
        assertThat(restarted.payload(restarted.find(JoinSide.ROLLOUT, "g/0").orElseThrow()))
                .isEmpty();
    }

    @Test
    void shouldWorkWithoutAnyMemory() {
        PendingStore pending = open(0);
        for (int i = 0; i < 3; i++) {
            pending.add(rollout("g" + i, 0, i), i);
        }
        for (int i = 0; i < 3; i++) {
            PendingRecord waiting =
                    pending.find(JoinSide.ROLLOUT, "g" + i + "/0").orElseThrow();
            assertThat(pending.payload(waiting)).containsSame(log.get((long) i));
            pending.remove(waiting);
        }
    }
}
