package dev.millrace.view.follow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.view.follow.ViewedRun.Events;
import dev.millrace.view.follow.ViewedRun.Events.Event;
import dev.millrace.view.follow.ViewedRun.Onlookers;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class OnlookersTest {
    private final Events events = new Events();
    private final AtomicLong nanos = new AtomicLong(Long.MAX_VALUE - 5); // differences of it count, not its values
    private final Onlookers onlookers = new Onlookers(events, nanos::get);

    @Test
    void shouldTakeWhoAskedForAnOnlookerForFiveSeconds() {
        pass(Duration.ofSeconds(60));
        assertThat(onlookers.areThere()).isFalse();
        onlookers.ask();
        pass(Duration.ofMillis(4999));
        assertThat(onlookers.areThere()).isTrue();
        pass(Duration.ofMillis(1));
        assertThat(onlookers.areThere()).isFalse();
    }

    @Test
    void shouldTakeWhoListensForAnOnlookerForAsLongAsItListens() {
        Consumer<Event> listener = event -> {};
        events.add(listener);
        pass(Duration.ofHours(1));
        assertThat(onlookers.areThere()).isTrue();
        events.remove(listener);
        assertThat(onlookers.areThere()).isFalse();
    }

    @Test
    void shouldTakeWhoOpenedItForAnOnlooker() {
        assertThat(onlookers.areThere()).isTrue();
    }

    private void pass(Duration time) {
        nanos.addAndGet(time.toNanos());
    }
}
