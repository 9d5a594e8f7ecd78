package dev.millrace.view.follow;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.view.follow.ViewedRun.Events;
import dev.millrace.view.follow.ViewedRun.Events.Event;
import dev.millrace.view.follow.ViewedRun.ViewerActivity;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class ViewerActivityTest {
    private final Events events = new Events();
    private final AtomicLong nanos = new AtomicLong(Long.MAX_VALUE - 5); // differences of it count, not its values
    private final ViewerActivity viewers = new ViewerActivity(events, nanos::get);

    @Test
    void shouldCountAViewerForFiveSecondsAfterItsRequest() {
        pass(Duration.ofSeconds(60));
        assertThat(viewers.isPresent()).isFalse();
        viewers.seen();
        pass(Duration.ofMillis(4999));
        assertThat(viewers.isPresent()).isTrue();
        pass(Duration.ofMillis(1));
        assertThat(viewers.isPresent()).isFalse();
    }

    @Test
    void shouldCountAViewerWhileItListens() {
        Consumer<Event> listener = event -> {};
        events.add(listener);
        pass(Duration.ofHours(1));
        assertThat(viewers.isPresent()).isTrue();
        events.remove(listener);
        assertThat(viewers.isPresent()).isFalse();
    }

    @Test
    void shouldCountTheOpenerAsAViewer() {
        assertThat(viewers.isPresent()).isTrue();
    }

    private void pass(Duration time) {
        nanos.addAndGet(time.toNanos());
    }
}
