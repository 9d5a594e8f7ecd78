package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.generator.run.Awaited;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class AnswerWritesTest {
    private static final byte[] MORE_THAN_BUFFERS_HOLD = new byte[64 << 20];

    private final AtomicLong nanos = new AtomicLong();
    private final AnswerWrites writes = new AnswerWrites(nanos::get);

    private void passes(long ms) {
        nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(ms));
    }

    @Test
    void shouldWriteAllOfAnAnswer() throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        writes.write(out, new byte[] {1, 2, 3});
        assertThat(out.toByteArray()).containsExactly(1, 2, 3);
        assertThat(writes.underWay()).isZero();
    }

    @Test
    void shouldGiveUpTheConnectionOfACallerWhoDoesNotRead() throws Exception {
        try (ServerSocketChannel listening =
                        ServerSocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
                SocketChannel caller = SocketChannel.open(listening.getLocalAddress());
                SocketChannel accepted = listening.accept()) {
            CompletableFuture<Throwable> failure = new CompletableFuture<>();
            CompletableFuture<Boolean> isInterrupted = new CompletableFuture<>();
            Thread writer = new Thread(() -> {
                try {
                    writes.write(Channels.newOutputStream(accepted), MORE_THAN_BUFFERS_HOLD);
                    failure.complete(null);
                } catch (IOException e) {
                    failure.complete(e);
                }
                isInterrupted.complete(Thread.currentThread().isInterrupted());
            });
            writer.start();
            Awaited.until("it has begun", () -> writes.underWay() == 1);
            passes(AnswerWrites.LONGEST_MS);
            writes.look();
            assertThat(writes.underWay()).isEqualTo(1);
            passes(1);
            writes.look();
            assertThat(failure.get())
                    .isInstanceOf(IOException.class)
                    .hasMessage("its caller did not read 67108864 bytes within 60000 ms");
            assertThat(isInterrupted.get()).as("its thread answers other calls").isFalse();
            assertThat(accepted.isOpen()).isFalse();
            assertThat(caller.isOpen()).isTrue();
            assertThat(writes.underWay()).isZero();
        }
    }

    @Test
    void shouldGiveUpOnlyWhatIsUnderWay() throws IOException {
        OutputStream slow = new OutputStream() {
            @Override
            public void write(int b) {
                passes(AnswerWrites.LONGEST_MS - 1);
                writes.look();
            }
        };
        for (int answer = 0; answer < 3; answer++) {
            writes.write(slow, new byte[1]);
        }
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
    }

    @Test
    void shouldPassOnThatACallerIsGone() {
        OutputStream gone = new OutputStream() {
            @Override
            public void write(int b) throws IOException {
                throw new IOException("Broken pipe");
            }
        };
        assertThatThrownBy(() -> writes.write(gone, new byte[1])).hasMessage("Broken pipe");
        assertThat(writes.underWay()).isZero();
    }
}
