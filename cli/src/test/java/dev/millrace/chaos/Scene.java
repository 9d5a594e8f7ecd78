package dev.millrace.chaos;

import dev.millrace.chaos.clock.ProcessClock;
import dev.millrace.chaos.network.TcpProxy;
import dev.millrace.chaos.network.Weather;
import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.Launcher;
import dev.millrace.chaos.process.Operator;
import dev.millrace.chaos.process.RunMember;
import dev.millrace.chaos.process.Troupe;
import dev.millrace.infra.broker.BrokerCluster;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

/** Brokers in processes of their own, a proxy before each, and the roles of one run as processes behind these. */
final class Scene implements AutoCloseable {
    private static final long LOOK_EVERY_MS = 300;
    private static final int ROLE_HEAP_MB = 320;
    private static final List<String> BROKER_JVM = List.of("-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData");

    private final MillraceConfig config;
    private final Path directory;
    private final List<TcpProxy> proxies = new ArrayList<>();
    private final BrokerCluster brokers;
    private final Troupe troupe;
    private final Operator operator;
    private final ProcessClock clock;

    private Scene(ChaosPlan plan, MillraceConfig config) throws IOException {
        this.config = config;
        this.directory = plan.directory();
        Files.createDirectories(plan.directory());
        this.brokers = BrokerCluster.start(
                plan.directory().resolve("brokers"),
                BrokerConfig.defaults(),
                plan.brokers(),
                BROKER_JVM,
                port -> proxyTo(port, plan.seed()),
                Map.of());
        List<String> common = new ArrayList<>(List.of("--bootstrap-servers", bootstrapServers()));
        plan.configuration().forEach(setting -> common.addAll(List.of("--set", setting)));
        Launcher launcher = new Launcher(plan.mainClass(), plan.directory(), common, ROLE_HEAP_MB);
        this.troupe = new Troupe(launcher, RunMember.ofRun());
        this.operator = new Operator(launcher);
        this.clock = new ProcessClock(plan.directory());
    }

    /** Starts brokers and roles. */
    static Scene open(ChaosPlan plan) throws IOException {
        ConfigLayers layers = new ConfigLayers();
        plan.configuration().forEach(layers::set);
        Scene scene = new Scene(plan, layers.resolve());
        scene.troupe.start();
        return scene;
    }

    private int proxyTo(int port, long seed) {
        try {
            TcpProxy proxy = new TcpProxy(port, seed + proxies.size());
            proxies.add(proxy);
            return proxy.port();
        } catch (IOException e) {
            throw new UncheckedIOException("no port for a proxy before a broker: " + e.getMessage(), e);
        }
    }

    /** Where everybody finds the brokers: behind the proxies. */
    String bootstrapServers() {
        return proxies.stream().map(proxy -> "127.0.0.1:" + proxy.port()).collect(Collectors.joining(","));
    }

    Map<String, Object> client() {
        return Map.of("bootstrap.servers", bootstrapServers());
    }

    MillraceConfig config() {
        return config;
    }

    Troupe troupe() {
        return troupe;
    }

    /** Sets the clocks of processes. */
    ProcessClock clock() {
        return clock;
    }

    /** Enters commands. */
    Operator operator() {
        return operator;
    }

    BrokerCluster brokers() {
        return brokers;
    }

    TcpProxy proxy(int node) {
        return proxies.get(node);
    }

    void fairWeather() {
        proxies.forEach(proxy -> proxy.set(Weather.FAIR));
    }

    /** The run's log, when the roles have made it; the caller closes it. */
    RunLog awaitLog(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (true) {
            try {
                return RunLog.find(client(), config.run().topics(), config.topics(), "");
            } catch (LogSetupException notYet) {
                if (System.nanoTime() > deadline) {
                    throw new ChaosException(
                            "the roles did not create the run within " + limit.toSeconds() + " s: "
                                    + notYet.getMessage(),
                            notYet);
                }
                Thread.sleep(LOOK_EVERY_MS);
            }
        }
    }

    /** A watch over the run. */
    LogWatch watch(LogConnection connection) {
        return new LogWatch(connection, ChaosPlan.GROUP).start();
    }

    static void await(String what, Duration limit, BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new ChaosException("timed out after " + limit.toSeconds() + " s waiting for " + what);
            }
            Thread.sleep(LOOK_EVERY_MS);
        }
    }

    /** Of all that is written. */
    Path directory() {
        return directory;
    }

    Path brokerDirectory(int node) {
        return brokers.directory(node);
    }

    /** Kills the roles, stops the brokers. */
    @Override
    public void close() {
        troupe.close();
        brokers.close();
        for (TcpProxy proxy : proxies) {
            try {
                proxy.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
