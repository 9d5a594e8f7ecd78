package dev.millrace.runtime.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.Durability;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RoleRights;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.rights.SecuredBroker;
import dev.millrace.runtime.train.StepLog;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class SingleRoleIT {
    @TempDir
    Path folder;

    /** Output lines of the role. */
    private final LinkedBlockingQueue<String> said = new LinkedBlockingQueue<>();

    private SingleRole role(int port, String... more) {
        List<String> settings = new ArrayList<>(
                List.of("run.bootstrap_servers=127.0.0.1:" + port, "run.id=late", "topics.timeout_ms=5000"));
        settings.addAll(List.of(more));
        return new SingleRole(
                begun -> {
                    ConfigLayers layers = new ConfigLayers().begunWith(begun);
                    settings.forEach(layers::set);
                    return layers;
                },
                RoleRights.GENERATOR,
                more.length > 0,
                false,
                new PrintWriter(
                        new Writer() {
                            private final StringBuilder line = new StringBuilder();

                            @Override
                            public void write(char[] characters, int from, int length) {
                                for (int i = from; i < from + length; i++) {
                                    if (characters[i] == '\n') {
                                        said.add(line.toString());
                                        line.setLength(0);
                                    } else {
                                        line.append(characters[i]);
                                    }
                                }
                            }

                            @Override
                            public void flush() {}

                            @Override
                            public void close() throws IOException {}
                        },
                        true));
    }

    private void awaitLine(String what) throws InterruptedException {
        String line = said.poll(300, TimeUnit.SECONDS);
        while (line != null && !line.contains(what)) {
            line = said.poll(300, TimeUnit.SECONDS);
        }
        assertThat(line).contains(what);
    }

    @Test
    void shouldStartNoRoleOnARecordedRun() throws Exception {
        try (EmbeddedBroker broker =
                EmbeddedBroker.start(folder, new BrokerConfig(0, 16 << 20, 0, 60_000, 20_000, Durability.SYSTEM))) {
            int port = Integer.parseInt(broker.bootstrapServers().replaceAll(".*:", ""));
            assertThat(role(port, "run.recorded=true", "topics.timeout_ms=60000")
                            .run(Pipeline::firstVersion))
                    .isTrue();
            for (Function<Pipeline, Role> refused :
                    List.<Function<Pipeline, Role>>of(Pipeline::learner, Pipeline::generator, Pipeline::admission)) {
                assertThatThrownBy(() -> role(port, "topics.timeout_ms=60000").run(refused))
                        .isInstanceOf(ConfigException.class)
                        .hasMessageContaining("run.recorded is true")
                        .hasMessageContaining("writes to run late");
            }
        }
    }

    @Test
    void shouldEndAStepLogThatIsStoppedBeforeItBegins() {
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder);
                RunLog log = RunLog.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        new RunTopics("short."),
                        new RunIdentity("short", 0, "policy"),
                        TopicsConfig.defaults(),
                        "",
                        Clock.systemUTC())) {
            StepLog steps = new StepLog(log.connection());
            steps.stop();
            steps.run();
            assertThat(steps.steps()).isEmpty();
        }
    }

    @Test
    void shouldWaitForABrokerThatIsAwayWhenItStarts() throws Exception {
        int port = SecuredBroker.freePort();
        SingleRole role = role(port);
        CompletableFuture<Boolean> ended = CompletableFuture.supplyAsync(() -> {
            try {
                return role.run(pipeline -> {
                    throw new AssertionError("there is no run");
                });
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        awaitLine("no broker answers at 127.0.0.1:" + port + "; waiting for one, up to 600 s (run.patience_seconds)");
        try (EmbeddedBroker broker =
                EmbeddedBroker.start(folder, new BrokerConfig(port, 16 << 20, 0, 60_000, 20_000, Durability.SYSTEM))) {
            assertThat(broker.bootstrapServers()).endsWith(":" + port);
            awaitLine("waiting for run late to be created");
            assertThat(ended).isNotDone();
            role.stop();
            assertThatThrownBy(() -> ended.get(300, TimeUnit.SECONDS))
                    .extracting(
                            failure -> failure.getCause().getCause()) // which may have been interrupted as it waited
                    .isInstanceOf(StoppedException.class);
        }
    }
}
