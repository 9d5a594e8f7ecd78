package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** One client holds more connections than there are threads. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class RequestThreadsTest {
    private static final int MOST = 4;
    private static final int HALF_OPEN = 200;

    private final RequestThreads threads = new RequestThreads("request-threads-test", MOST, null);
    private final CountDownLatch entered = new CountDownLatch(MOST);
    private final CountDownLatch released = new CountDownLatch(1);
    private final List<Socket> sockets = new ArrayList<>();
    private HttpServer server;

    @BeforeEach
    void open() throws IOException {
        HttpDefaults.apply(); // the first server of a process decides for all
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> answer(exchange)).getFilters().add(threads.filter());
        server.createContext("/slow", exchange -> {
                    entered.countDown();
                    awaitReleased();
                    answer(exchange);
                })
                .getFilters()
                .add(threads.filter());
        server.start();
    }

    @AfterEach
    void close() throws IOException {
        released.countDown();
        for (Socket socket : sockets) {
            socket.close();
        }
        server.stop(0);
        threads.close();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        try (exchange) {
            exchange.sendResponseHeaders(200, -1);
        }
    }

    private void awaitReleased() throws IOException {
        try {
            released.await();
        } catch (InterruptedException e) {
            throw new IOException("a request that is read was interrupted", e);
        }
    }

    private Socket send(String begun) throws IOException {
        Socket socket =
                new Socket(InetAddress.getLoopbackAddress(), server.getAddress().getPort());
        sockets.add(socket);
        socket.getOutputStream().write(begun.getBytes(StandardCharsets.US_ASCII));
        socket.getOutputStream().flush();
        return socket;
    }

    private static boolean isClosed(Socket socket) throws IOException {
        try {
            return socket.getInputStream().read() < 0;
        } catch (SocketException e) {
            return true; // reset, for what it sent was not read
        }
    }

    private CompletableFuture<Integer> get(String path) {
        URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + path);
        return HttpClient.newHttpClient()
                .sendAsync(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.discarding())
                .thenApply(HttpResponse::statusCode);
    }

    @Test
    void shouldAnswerBesideMoreHalfOpenRequestsThanThereAreThreads() throws Exception {
        for (int i = 0; i < HALF_OPEN; i++) {
            send(i % 2 == 0 ? "GET / HTTP/1.1\r\nHost: x\r\n" : "G");
        }
        for (int i = 0; i < 10 * MOST; i++) {
            assertThat(get("/").get()).isEqualTo(200);
        }
    }

    @Test
    void shouldAnswerBesideRequestsWhoseBodiesAreNotSent() throws Exception {
        for (int i = 0; i < HALF_OPEN; i++) {
            send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
        }
        assertThat(get("/").get()).isEqualTo(200);
    }

    @Test
    void shouldCloseAConnectionWhereEveryRequestIsBeingAnsweredAndInterruptNone() throws Exception {
        List<CompletableFuture<Integer>> slow = new ArrayList<>();
        for (int i = 0; i < MOST; i++) {
            slow.add(get("/slow"));
        }
        assertThat(entered.await(60, TimeUnit.SECONDS)).isTrue();

        assertThat(isClosed(send("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))).isTrue();
        released.countDown();
        for (CompletableFuture<Integer> answer : slow) {
            assertThat(answer.get()).isEqualTo(200);
        }
    }
}
