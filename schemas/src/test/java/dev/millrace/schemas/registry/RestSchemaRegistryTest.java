package dev.millrace.schemas.registry;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import dev.millrace.schemas.Serving;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.avro.Schema;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RestSchemaRegistryTest {
    private static final Schema SERVING = Serving.getClassSchema();

    private final List<String> requests = new CopyOnWriteArrayList<>();
    private HttpServer server;
    private int port;
    private volatile int status = 200;
    private volatile String answer = "{}";

    @BeforeEach
    void startServer() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            try (exchange) {
                String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                requests.add(exchange.getRequestMethod() + " " + exchange.getRequestURI() + " "
                        + exchange.getRequestHeaders().getFirst("Authorization") + " " + body);
                byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(status, bytes.length);
                exchange.getResponseBody().write(bytes);
            }
        });
        server.start();
        port = server.getAddress().getPort();
    }

    @AfterEach
    void stopServer() {
        server.stop(0);
    }

    @Test
    void shouldRegisterOnceAndRemember() {
        answer = "{\"id\": 41}";
        RestSchemaRegistry registry = new RestSchemaRegistry("http://127.0.0.1:" + port + "/prefix/", true, 5_000);

        assertThat(registry.idOf("millrace.serving-value", SERVING)).isEqualTo(41);
        assertThat(registry.idOf("millrace.serving-value", SERVING)).isEqualTo(41);

        assertThat(requests)
                .singleElement()
                .asString()
                .startsWith("POST /prefix/subjects/millrace.serving-value/versions null "
                        + "{\"schema\":\"{\\\"type\\\":\\\"record\\\"");
    }

    @Test
    void shouldOnlyLookUpWhereItMayNotWriteAndCarryTheUser() {
        answer = "{\"subject\": \"a b-value\", \"version\": 2, \"id\": 7}";
        RestSchemaRegistry registry = new RestSchemaRegistry("http://me:p%40ss@127.0.0.1:" + port, false, 5_000);

        assertThat(registry.idOf("a b-value", SERVING)).isEqualTo(7);

        assertThat(requests).singleElement().asString().startsWith("POST /subjects/a%20b-value Basic bWU6cEBzcw== ");
    }

    @Test
    void shouldListAndRemoveSubjects() {
        RestSchemaRegistry registry = new RestSchemaRegistry("http://127.0.0.1:" + port, true, 5_000);

        answer = "[\"b-value\", \"a-value\"]";
        assertThat(registry.subjects()).containsExactly("a-value", "b-value");
        answer = "[1, 2]";
        registry.remove("a b-value");
        status = 404;
        answer = "{\"error_code\": 40401, \"message\": \"Subject not found.\"}";
        registry.remove("c-value");

        assertThat(requests).hasSize(3);
        assertThat(requests.get(1)).startsWith("DELETE /subjects/a%20b-value ");
    }

    @Test
    void shouldFetchASchemaOnce() {
        answer = "{\"schema\": \"\\\"string\\\"\"}";
        RestSchemaRegistry registry = new RestSchemaRegistry("http://127.0.0.1:" + port, false, 5_000);

        assertThat(registry.byId(3).getType()).isEqualTo(Schema.Type.STRING);
        assertThat(registry.byId(3).getType()).isEqualTo(Schema.Type.STRING);

        assertThat(requests).singleElement().asString().startsWith("GET /schemas/ids/3 ");
    }

    @Test
    void shouldTellAnUnknownIdFromARegistryThatFails() {
        RestSchemaRegistry registry = new RestSchemaRegistry("http://127.0.0.1:" + port, false, 5_000);

        status = 404;
        answer = "{\"error_code\": 40403, \"message\": \"Schema 9 not found\"}";
        assertThatThrownBy(() -> registry.byId(9)).isInstanceOf(UnknownSchemaException.class);

        answer = "<html>no such page</html>";
        assertThatThrownBy(() -> registry.byId(9))
                .isExactlyInstanceOf(SchemaRegistryException.class)
                .hasMessage("the schema registry at http://127.0.0.1:" + port + " answered with no JSON, status 404");

        status = 500;
        answer = "{\"error_code\": 50001}";
        assertThatThrownBy(() -> registry.byId(9))
                .isExactlyInstanceOf(SchemaRegistryUnavailableException.class)
                .hasMessage("the schema registry at http://127.0.0.1:" + port
                        + " did not give schema 9: status 500, {\"error_code\": 50001}");

        server.stop(0);
        assertThatThrownBy(() -> registry.byId(9))
                .isExactlyInstanceOf(SchemaRegistryUnavailableException.class)
                .hasMessageStartingWith("the schema registry at http://127.0.0.1:" + port + " does not answer: ");
    }

    @Test
    void shouldPassOnWhyASchemaWasRefused() {
        status = 409;
        answer = "{\"error_code\": 409, \"message\": \"Schema being registered is incompatible\"}";
        RestSchemaRegistry registry = new RestSchemaRegistry("http://127.0.0.1:" + port, true, 5_000);

        assertThatThrownBy(() -> registry.idOf("x-value", SERVING))
                .isExactlyInstanceOf(SchemaRegistryException.class)
                .hasMessageContaining(
                        "did not register the schema of dev.millrace.schemas.Serving under x-value: status 409")
                .hasMessageContaining("Schema being registered is incompatible");
    }

    @Test
    void shouldRefuseAnAddressThatIsNone() {
        assertThatThrownBy(() -> new RestSchemaRegistry("registry:8081", false, 5_000))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("schema_registry_url must begin with http:// or https:// and name a host");
    }
}
