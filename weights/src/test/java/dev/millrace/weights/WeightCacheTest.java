package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class WeightCacheTest {
    private final List<Long> loads = new ArrayList<>();

    private Weights load(long version) {
        loads.add(version);
        return Weights.zeros(SmallDecoder.SHAPE);
    }

    @Test
    void shouldKeepTheVersionsUsedLast() {
        WeightCache cache = new WeightCache(this::load, 2);
        Weights zero = cache.get(0);
        cache.get(1);
        assertThat(cache.get(0)).isSameAs(zero);
        cache.get(2); // makes 1 leave, which was used before 0
        assertThat(cache.get(0)).isSameAs(zero);
        cache.get(1);

        assertThat(loads).containsExactly(0L, 1L, 2L, 1L);
    }

    @Test
    void shouldLoadAVersionOnceForThreadsThatAskTogether() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        AtomicInteger count = new AtomicInteger();
        WeightCache cache = new WeightCache(
                version -> {
                    count.incrementAndGet();
                    awaitQuietly(asked);
                    return Weights.zeros(SmallDecoder.SHAPE);
                },
                2);
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try {
            List<Future<Weights>> answers = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                answers.add(threads.submit(() -> cache.get(7)));
            }
            asked.countDown();
            Weights first = answers.get(0).get(90, TimeUnit.SECONDS);
            for (Future<Weights> answer : answers) {
                assertThat(answer.get(90, TimeUnit.SECONDS)).isSameAs(first);
            }
        } finally {
            threads.shutdownNow();
        }
        assertThat(count).hasValue(1);
    }

    @Test
    void shouldTryAgainAfterALoadThatFailed() {
        AtomicInteger count = new AtomicInteger();
        WeightCache cache = new WeightCache(
                version -> {
                    if (count.incrementAndGet() == 1) {
                        throw new VersionUnavailableException("not yet");
                    }
                    return Weights.zeros(SmallDecoder.SHAPE);
                },
                1);

        assertThatThrownBy(() -> cache.get(3))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("not yet");
        assertThat(cache.get(3)).isNotNull();
    }

    @Test
    void shouldRefuseACapacityOfNothing() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new WeightCache(this::load, 0))
                .withMessage("weight_cache_versions must be at least 1: 0");
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            assertThat(latch.await(90, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
