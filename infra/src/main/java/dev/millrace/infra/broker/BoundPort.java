package dev.millrace.infra.broker;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * A listening socket that exists before the broker does, so that its port is known and nobody else can take it.
 */
final class BoundPort implements AutoCloseable {
    private static final int BACKLOG = 128;
    private static final int MOST_ATTEMPTS = 100;

    private final ServerSocketChannel channel;
    private final int number;

    private BoundPort(ServerSocketChannel channel, int number) {
        this.channel = channel;
        this.number = number;
    }

    /** @param port 0 for any free one */
    static BoundPort open(int port) {
        ServerSocketChannel channel = null;
        try {
            channel = ServerSocketChannel.open();
            channel.setOption(StandardSocketOptions.SO_REUSEADDR, true);
            channel.bind(new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), port), BACKLOG);
            return new BoundPort(channel, ((InetSocketAddress) channel.getLocalAddress()).getPort());
        } catch (IOException e) {
            closeAfter(e, channel);
            throw new BrokerException(
                    "the broker cannot listen on 127.0.0.1:" + port + ": " + e.getMessage()
                            + "; set broker.port to another number, or to 0 for any free one",
                    e);
        }
    }

    /** At a free port below those that outgoing connections get, so that none takes it while its broker is not there. */
    static BoundPort openForLater() {
        for (int attempt = 1; ; attempt++) {
            int port = ThreadLocalRandom.current().nextInt(10_000, 32_000);
            try {
                return open(port);
            } catch (BrokerException e) {
                if (attempt == MOST_ATTEMPTS || !(e.getCause() instanceof BindException)) {
                    throw e;
                }
            }
        }
    }

    int number() {
        return number;
    }

    /** The socket, for the broker to own. */
    ServerSocketChannel handOver() throws IOException {
        channel.configureBlocking(false);
        return channel;
    }

    /** Has no effect after the broker closed the socket. */
    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException e) {
            throw new BrokerException("port " + number + " could not be given back: " + e.getMessage(), e);
        }
    }

    private static void closeAfter(IOException cause, @Nullable ServerSocketChannel channel) {
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                cause.addSuppressed(e);
            }
        }
    }
}
