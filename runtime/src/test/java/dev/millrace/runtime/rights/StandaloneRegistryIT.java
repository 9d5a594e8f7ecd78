package dev.millrace.runtime.rights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.pipeline.StandaloneRegistry;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class StandaloneRegistryIT {
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final String TOPIC = TopicsConfig.defaults().schemasTopic();

    @TempDir
    private Path directory;

    /** A registry on its own thread. */
    private static final class Running implements AutoCloseable {
        private final StringWriter out = new StringWriter();
        private final StandaloneRegistry registry;
        private final CompletableFuture<Void> ended = new CompletableFuture<>();

        Running(Map<String, Object> client) {
            ConfigLayers layers =
                    new ConfigLayers().set("topics.timeout_ms=15000").set("run.patience_seconds=300");
            client.forEach((key, value) -> layers.set(
                    key.equals("bootstrap.servers") ? "run.bootstrap_servers" : "kafka." + key, value.toString()));
            registry = new StandaloneRegistry(layers.whereabouts(), 0, new PrintWriter(out, true));
            Thread thread = new Thread(() -> {
                try {
                    registry.run();
                    ended.complete(null);
                } catch (Exception e) {
                    ended.completeExceptionally(e);
                }
            });
            thread.start();
        }

        String url() throws Exception {
            await(() -> out.toString().contains(" at http"));
            Matcher url = Pattern.compile(" at (http\\S+);").matcher(out.toString());
            assertThat(url.find()).isTrue();
            return url.group(1);
        }

        String get(String path) throws Exception {
            HttpResponse<String> response = HTTP.send(
                    HttpRequest.newBuilder(URI.create(url() + path))
                            .timeout(Duration.ofMinutes(5))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            return response.statusCode() + " " + response.body();
        }

        void awaitReady(String expected) throws Exception {
            await(() -> get("/readyz").startsWith(expected));
        }

        @Override
        public void close() {
            registry.stop();
            assertThat(ended).succeedsWithin(Duration.ofMinutes(5));
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(Condition condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(300);
        while (!condition.holds()) {
            assertThat(System.nanoTime()).as("within 300 s").isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(100);
        }
    }

    private static void begin(Map<String, Object> client, String id) {
        RunLog.open(
                        client,
                        new RunTopics("millrace." + id + "."),
                        new RunIdentity(id, 0, "default"),
                        TopicsConfig.defaults(),
                        "",
                        Clock.systemUTC())
                .close();
    }

    @Test
    void shouldServeWhateverTheTopicComesToHold() throws Exception {
        EmbeddedBroker broker = EmbeddedBroker.start(directory);
        try {
            Map<String, Object> client = Map.of("bootstrap.servers", broker.bootstrapServers());
            try (Running registry = new Running(client)) {
                registry.awaitReady("503 registry: there is no topic _schemas");
                assertThat(registry.get("/livez")).isEqualTo("200 ok\n");
                assertThat(registry.get("/subjects"))
                        .isEqualTo("500 {\"error_code\":50001,\"message\":\"cannot serve schemas: "
                                + "there is no topic _schemas; the first run creates it\"}");

                begin(client, "first");
                registry.awaitReady("200 ok");
                begin(client, "second");
                assertThat(registry.get("/subjects"))
                        .contains("\"millrace.first.rollouts-value\"", "\"millrace.second.rollouts-value\"");
                try (RestSchemaRegistry stock = new RestSchemaRegistry(registry.url(), true, 90_000)) {
                    int id = stock.idOf("millrace.first.rollouts-value", Rollout.getClassSchema());
                    assertThat(stock.byId(id).getFullName()).isEqualTo("dev.millrace.schemas.Rollout");
                    assertThatThrownBy(() -> stock.idOf("foreign-value", Rollout.getClassSchema()))
                            .hasMessageContaining("status 405")
                            .hasMessageContaining("the creator of a run registers schemas");
                }
                assertThat(registry.get("/metrics")).contains("client_id=\"_schemas\"");

                try (Admin admin = Admin.create(client)) {
                    admin.deleteTopics(List.of(TOPIC)).all().get();
                }
                registry.awaitReady("503 registry: there is no topic _schemas");
                begin(client, "third");
                registry.awaitReady("200 ok");
                assertThat(registry.get("/subjects"))
                        .contains("\"millrace.third.rollouts-value\"")
                        .doesNotContain("millrace.first.");

                int port = Integer.parseInt(broker.bootstrapServers().replaceFirst(".*:", ""));
                broker.close();
                registry.awaitReady("503 registry: the cluster does not answer");
                assertThat(registry.get("/subjects")).startsWith("500 {\"error_code\":50001,");
                broker = EmbeddedBroker.start(directory, BrokerConfig.defaults().withPort(port));
                registry.awaitReady("200 ok");
                assertThat(registry.get("/subjects")).contains("\"millrace.third.rollouts-value\"");
            }
        } finally {
            broker.close();
        }
    }

    @Test
    void shouldNeedNothingButToReadTheTopic() throws Exception {
        try (SecuredBroker broker = new SecuredBroker(directory, "registry");
                Admin admin = Admin.create(broker.client("admin"))) {
            begin(broker.client("admin"), "my-run");
            ResourcePattern topic = new ResourcePattern(ResourceType.TOPIC, TOPIC, PatternType.LITERAL);

            assertRefused(broker);
            grant(admin, topic, AclOperation.DESCRIBE);
            assertRefused(broker);
            grant(admin, topic, AclOperation.READ);
            try (Running registry = new Running(broker.client("registry"))) {
                registry.awaitReady("200 ok");
                assertThat(registry.get("/subjects")).contains("\"millrace.my-run.rollouts-value\"");
            }
        }
    }

    private static void assertRefused(SecuredBroker broker) {
        Running refused = new Running(broker.client("registry"));
        assertThatThrownBy(() -> refused.ended.get(300, TimeUnit.SECONDS))
                .cause()
                .isInstanceOf(LogSetupException.class)
                .hasMessageContaining("kafka-acls --bootstrap-server ")
                .hasMessageContaining("--operation Read --topic _schemas");
    }

    private static void grant(Admin admin, ResourcePattern topic, AclOperation operation) throws Exception {
        admin.createAcls(List.of(new AclBinding(
                        topic, new AccessControlEntry("User:registry", "*", operation, AclPermissionType.ALLOW))))
                .all()
                .get();
    }
}
