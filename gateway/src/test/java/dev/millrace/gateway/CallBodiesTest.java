package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Bodies of 4 MiB at most within 30 s, 1,024 bytes a second. */
@Timeout(300)
class CallBodiesTest {
    private final AtomicLong nanos = new AtomicLong();
    private final CallBodies bodies = new CallBodies(GatewayConfig.defaults(), nanos::get);

    private void passes(long ms) {
        nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(ms));
    }

    /** Comes byte by byte, and so long passes before each. */
    private InputStream dripping(int bytes, long ms) {
        return new InputStream() {
            private int left = bytes;

            @Override
            public int read() {
                passes(ms);
                return left-- > 0 ? 1 : -1;
            }

            @Override
            public int read(byte[] into, int offset, int length) {
                int next = read();
                into[offset] = (byte) next;
                return next < 0 ? -1 : 1;
            }
        };
    }

    @Test
    void shouldReadWhatComesInTime() throws Exception {
        assertThat(bodies.read(new ByteArrayInputStream(new byte[100_000]))).hasSize(100_000);
        assertThat(bodies.read(dripping(1_000, 2))).as("within its first 2 s").hasSize(1_000);
        assertThat(bodies.underWay()).isZero();
    }

    @Test
    void shouldGiveUpWhatComesTooSlowly() {
        assertThatThrownBy(() -> bodies.read(dripping(3_000, 3)))
                .isInstanceOf(RefusedCallException.class)
                .hasMessage("the body must come with at least 1024 bytes a second (gateway.body_bytes_per_second) after"
                        + " the first 2, and 989 came in 2967 ms");
        assertThat(bodies.underWay()).isZero();
    }

    @Test
    void shouldGiveUpWhatTakesTooLongAtAnyRate() {
        InputStream endless = new InputStream() {
            @Override
            public int read() {
                throw new IllegalStateException("it is read in pieces");
            }

            @Override
            public int read(byte[] into, int offset, int length) {
                passes(1_000);
                return 2_000;
            }
        };
        assertThatThrownBy(() -> bodies.read(endless))
                .hasMessage("the body must be there within 30000 ms (gateway.body_ms), and after that 62000 bytes of it"
                        + " were");
    }

    @Test
    void shouldGiveUpWhoIsSilentWhenItLooks() throws Exception {
        try (PipedOutputStream silent = new PipedOutputStream();
                PipedInputStream in = new PipedInputStream(silent)) {
            CompletableFuture<Boolean> read = CompletableFuture.supplyAsync(() -> {
                try {
                    bodies.read(in);
                    return false;
                } catch (IOException e) {
                    throw new IllegalStateException("it was given up for a reason", e);
                } finally {
                    assertThat(Thread.currentThread().isInterrupted())
                            .as("what the thread does next is not given up")
                            .isFalse();
                }
            });
            while (bodies.underWay() == 0) {
                LockSupport.parkNanos(1_000_000);
            }
            passes(2_000);
            bodies.look();
            assertThat(bodies.underWay()).as("the first 2 s do not count").isEqualTo(1);
            passes(10);
            bodies.look();
            assertThatThrownBy(read::join)
                    .isInstanceOf(CompletionException.class)
                    .hasMessageContaining("and 0 came in 2010 ms");
            assertThat(bodies.underWay()).isZero();
        }
    }

    @Test
    void shouldTellAFailedConnectionFromABodyThatIsGivenUp() {
        InputStream broken = new InputStream() {
            @Override
            public int read() throws IOException {
                throw new IOException("reset");
            }
        };
        assertThatThrownBy(() -> bodies.read(broken))
                .isInstanceOf(IOException.class)
                .hasMessage("reset");
        assertThat(bodies.underWay()).isZero();
    }
}
