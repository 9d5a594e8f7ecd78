package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.learner.VersionRetention.ServingVersions.ServerBoard;
import dev.millrace.schemas.ServerRole;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class ServerBoardTest {
    private static final long NOW_MS = 1_000_000_000_000L;
    private static final long FORGOTTEN_AFTER_MS = ServerBoard.FORGOTTEN_AFTER_MS;

    private final AtomicLong nanos = new AtomicLong();
    private final ServerBoard board = new ServerBoard(nanos::get);

    private static Server generator(String id, long heardMs) {
        return new Server(id, ServerRole.GENERATOR, 3, 3, heardMs);
    }

    private void pass(long ms) {
        nanos.addAndGet(Duration.ofMillis(ms).toNanos());
    }

    @Test
    void shouldForgetWhoSaysNothingMore() {
        board.hear(generator("a", NOW_MS), NOW_MS);
        pass(FORGOTTEN_AFTER_MS);
        assertThat(board.servers()).extracting(Server::id).containsExactly("a");
        pass(1);
        assertThat(board.servers()).isEmpty();
    }

    @Test
    void shouldCountTheTimeBeforeAWordWasRead() {
        board.hear(generator("old", NOW_MS - FORGOTTEN_AFTER_MS - 1), NOW_MS);
        board.hear(generator("new", NOW_MS - FORGOTTEN_AFTER_MS + 1000), NOW_MS);
        assertThat(board.servers()).extracting(Server::id).containsExactly("new");
        pass(1001);
        assertThat(board.servers()).isEmpty();
    }

    @Test
    void shouldForgetAnEntryDatedInTheFuture() {
        board.hear(generator("ahead", NOW_MS + Duration.ofDays(3650).toMillis()), NOW_MS);
        board.hear(generator("endless", Long.MAX_VALUE), NOW_MS);
        board.hear(generator("before time", Long.MIN_VALUE + NOW_MS + 1), NOW_MS);
        assertThat(board.servers()).extracting(Server::id).contains("ahead", "endless");
        pass(FORGOTTEN_AFTER_MS + 1);
        assertThat(board.servers()).isEmpty();
    }

    @Test
    void shouldKeepWhoGoesOnSpeakingThroughAClockThatIsSetBack() {
        board.hear(generator("a", NOW_MS), NOW_MS);
        pass(FORGOTTEN_AFTER_MS / 2);
        long setBackMs = NOW_MS - Duration.ofDays(1).toMillis();
        board.hear(generator("a", setBackMs), setBackMs);
        pass(FORGOTTEN_AFTER_MS);
        assertThat(board.servers()).extracting(Server::id).containsExactly("a");
        pass(1);
        assertThat(board.servers()).isEmpty();
    }

    @Test
    void shouldTakeOffWhoEndedInOrder() {
        board.hear(generator("a", NOW_MS), NOW_MS);
        board.left(generator("a", NOW_MS + 1));
        assertThat(board.servers()).isEmpty();
    }
}
