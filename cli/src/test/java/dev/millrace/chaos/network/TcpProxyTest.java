package dev.millrace.chaos.network;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class TcpProxyTest {
    private ServerSocket broker;
    private TcpProxy proxy;
    private Socket client;
    private Socket atBroker;

    @BeforeEach
    void connect() throws IOException {
        broker = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
        proxy = new TcpProxy(broker.getLocalPort(), 1);
        client = new Socket(InetAddress.getLoopbackAddress(), proxy.port());
        atBroker = broker.accept();
        say(client, 1);
        assertThat(heard(atBroker)).isEqualTo(1);
    }

    @AfterEach
    void close() throws IOException {
        client.close();
        atBroker.close();
        proxy.close();
        broker.close();
    }

    @Test
    void shouldPassBytesBothWays() throws IOException {
        say(atBroker, 7);
        assertThat(heard(client)).isEqualTo(7);
        say(client, 8);
        assertThat(heard(atBroker)).isEqualTo(8);
    }

    @Test
    void shouldHoldBytesInSilenceAndPassThemOnAfterwards() throws IOException {
        proxy.set(Weather.SILENCE);
        say(client, 2);
        say(atBroker, 3);

        proxy.set(Weather.FAIR);

        assertThat(heard(atBroker)).isEqualTo(2);
        assertThat(heard(client)).isEqualTo(3);
    }

    @Test
    void shouldHoldOneDirectionAlone() throws IOException {
        proxy.set(Weather.NO_ANSWERS);
        say(atBroker, 3);
        say(client, 2);
        assertThat(heard(atBroker)).as("what the client says").isEqualTo(2);

        proxy.set(Weather.CUT);

        assertThat(end(client)).as("nothing of the answer came before the end").isTrue();
    }

    @Test
    void shouldResetConnectionsWhenCutAndTakeNewOnesAfterwards() throws IOException {
        proxy.set(Weather.CUT);

        assertThat(end(client)).isTrue();
        assertThat(end(atBroker)).isTrue();
        try (Socket refused = new Socket(InetAddress.getLoopbackAddress(), proxy.port())) {
            assertThat(end(refused)).isTrue();
        }

        proxy.set(Weather.FAIR);
        try (Socket again = new Socket(InetAddress.getLoopbackAddress(), proxy.port());
                Socket accepted = broker.accept()) {
            say(again, 5);
            assertThat(heard(accepted)).isEqualTo(5);
        }
    }

    @Test
    void shouldLoseAConnectionInPlaceOfAPiece() throws IOException {
        proxy.set(Weather.lossy(1));
        say(client, 4);

        assertThat(end(atBroker)).isTrue();
        assertThat(end(client)).isTrue();
    }

    @Test
    void shouldEndEveryConnectionWithItself() throws IOException {
        proxy.close();

        assertThat(end(client)).isTrue();
        assertThat(end(atBroker)).isTrue();
        assertThat(proxy.connections()).isZero();
    }

    private static void say(Socket socket, int what) throws IOException {
        socket.getOutputStream().write(what);
        socket.getOutputStream().flush();
    }

    private static int heard(Socket socket) throws IOException {
        return socket.getInputStream().read();
    }

    /** Whether the next event is the end of the connection. */
    private static boolean end(Socket socket) {
        try {
            InputStream in = socket.getInputStream();
            return in.read() < 0;
        } catch (IOException reset) {
            return true;
        }
    }
}
