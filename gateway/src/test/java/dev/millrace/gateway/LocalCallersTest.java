package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class LocalCallersTest {
    private HttpServer server;

    @BeforeEach
    void open() throws Exception {
        HttpDefaults.apply(); // the first server of a process decides for all
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
                    exchange.sendResponseHeaders(204, -1);
                    exchange.close();
                })
                .getFilters()
                .add(new LocalCallers("gateway.internal", "fe80::1"));
        server.start();
    }

    @AfterEach
    void close() {
        server.stop(0);
    }

    private String status(String... headers) throws Exception {
        try (Socket socket =
                new Socket(InetAddress.getLoopbackAddress(), server.getAddress().getPort())) {
            socket.getOutputStream()
                    .write(("POST / HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n"
                                    + String.join("\r\n", headers) + "\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            return answer.substring(9, 12);
        }
    }

    @Test
    void shouldLetThroughWhoNamesThisMachine() throws Exception {
        for (String host : new String[] {
            "127.0.0.1",
            "127.0.0.1:8090",
            "localhost:1",
            "LocalHost",
            "[::1]",
            "[::1]:80",
            "gateway.internal:443",
            "[fe80::1]:8"
        }) {
            assertThat(status("Host: " + host)).as(host).isEqualTo("204");
        }
        assertThat(status("Host: localhost:80", "Origin: http://localhost:3000"))
                .isEqualTo("204");
        assertThat(status("Host: localhost:80", "Origin: https://[::1]:3000")).isEqualTo("204");
    }

    @Test
    void shouldRefuseOtherNamesAndPagesOfOtherMachines() throws Exception {
        for (String host :
                new String[] {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1", "::1"}) {
            assertThat(status("Host: " + host)).as(host).isEqualTo("403");
        }
        for (String origin :
                new String[] {"http://evil.example", "null", "http://localhost.evil.example", "file://", "%"}) {
            assertThat(status("Host: localhost", "Origin: " + origin))
                    .as(origin)
                    .isEqualTo("403");
        }
        assertThat(status("Host: localhost", "Origin: http://localhost", "Origin: http://evil.example"))
                .isEqualTo("403");
        assertThat(status("X: no host")).isEqualTo("403");
    }
}
