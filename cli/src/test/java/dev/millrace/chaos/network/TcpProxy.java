package dev.millrace.chaos.network;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Stands between everybody and one broker: it takes connections on a port of its own and passes their bytes on, as the
 * {@link Weather} allows.
 *
 * <p>Brokers tell clients where to find them, so a broker behind it must advertise its port. Thread-safe.
 */
public final class TcpProxy implements AutoCloseable {
    private static final int PIECE_BYTES = 64 << 10;
    private static final int CONNECT_LIMIT_MS = 2_000;
    private static final int BACKLOG = 128;

    private final int target;
    private final ServerSocket server;
    private final SplittableRandom random;
    private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
    private final Object changed = new Object();
    private Weather weather = Weather.FAIR;
    private boolean isClosed;

    /**
     * Opens a port and begins to take connections.
     *
     * @param target port on loopback that everything goes to
     * @param seed of what is lost
     */
    public TcpProxy(int target, long seed) throws IOException {
        this.target = target;
        this.random = new SplittableRandom(seed);
        this.server = new ServerSocket(0, BACKLOG, InetAddress.getByAddress(new byte[] {127, 0, 0, 1}));
        start("connections to " + target, this::accept);
    }

    /** Where it is found, on loopback. */
    public int port() {
        return server.getLocalPort();
    }

    /** Connections that are open now. */
    public int connections() {
        return connections.size();
    }

    /** From now on the network is so. */
    public void set(Weather now) {
        synchronized (changed) {
            weather = now;
            changed.notifyAll();
        }
        if (now.isCut()) {
            connections.forEach(Connection::reset);
        }
    }

    private Weather now() {
        synchronized (changed) {
            return weather;
        }
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        while (!server.isClosed()) {
            try {
                Socket client = server.accept();
                if (now().isCut()) {
                    reset(client);
                } else {
                    start("connection to " + target, () -> connect(client));
                }
            } catch (IOException closed) {
                // the loop's condition says whether it was closed; a connection that ended before it was taken is none
            }
        }
    }

    private void connect(Socket client) {
        Socket broker = new Socket();
        try {
            broker.connect(
                    new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), target),
                    CONNECT_LIMIT_MS);
            client.setTcpNoDelay(true);
            broker.setTcpNoDelay(true);
            Connection connection = new Connection(client, broker);
            connections.add(connection);
            if (now().isCut() || server.isClosed()) {
                connection.reset();
            }
            start("to " + target, () -> connection.pass(client, broker, true));
            connection.pass(broker, client, false);
        } catch (IOException notThere) {
            reset(client); // as if nobody listened
            reset(broker);
        }
    }

    private static void reset(Socket socket) {
        try {
            socket.setSoLinger(true, 0);
        } catch (SocketException closed) {
            // then there is nothing to be told to the other end
        }
        try {
            socket.close();
        } catch (IOException e) {
            // it is given up either way
        }
    }

    private final class Connection {
        private final Socket client;
        private final Socket broker;

        Connection(Socket client, Socket broker) {
            this.client = client;
            this.broker = broker;
        }

        void reset() {
            connections.remove(this);
            TcpProxy.reset(client);
            TcpProxy.reset(broker);
        }

        void pass(Socket from, Socket to, boolean isToBroker) {
            byte[] piece = new byte[PIECE_BYTES];
            try {
                InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream();
                for (int read = in.read(piece); read >= 0 && survives(isToBroker); read = in.read(piece)) {
                    out.write(piece, 0, read);
                }
            } catch (IOException ended) {
                // one end is gone; the other is told below
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            reset();
        }

        /** Waits as long as the weather holds a piece back; false if the connection ends in its place. */
        private boolean survives(boolean isToBroker) throws InterruptedException {
            Weather at;
            synchronized (changed) {
                while (!isClosed && !(isToBroker ? weather.reachesBroker() : weather.reachesClients())) {
                    changed.wait();
                }
                at = weather;
                if (isClosed || at.loss() > 0 && random.nextDouble() < at.loss()) {
                    return false;
                }
            }
            if (at.delayMs() > 0) {
                Thread.sleep(at.delayMs());
            }
            return true;
        }
    }

    /** Ends all connections and gives the port back. */
    @Override
    public void close() throws IOException {
        synchronized (changed) {
            isClosed = true;
            changed.notifyAll();
        }
        server.close();
        connections.forEach(Connection::reset);
    }
}
