package dev.millrace.runtime.pipeline;

import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.http.HttpEndpoint;
import dev.millrace.runtime.live.Rates;
import dev.millrace.runtime.metrics.ClientMeters;
import dev.millrace.runtime.metrics.Meters;
import java.io.PrintWriter;
import java.time.Clock;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;

/** One role in a process of its own, with a line now and then that says how it does. */
public final class SingleRole {
    private static final long LINE_PERIOD_MS = 5_000;
    private static final Duration STOP_PATIENCE = Duration.ofSeconds(30);

    private final MillraceConfig config;
    private final PrintWriter out;

    public SingleRole(MillraceConfig config, PrintWriter out) {
        this.config = config;
        this.out = out;
    }

    /** Runs until a signal (130), the role's own end (0) or its failure, which is thrown. */
    public int run(Function<Pipeline, Role> made) throws Exception {
        try (Meters meters = new Meters()) {
            Map<String, Object> client = ClientMeters.reportingTo(meters.registry(), config.clientSettings());
            client.put("bootstrap.servers", config.run().bootstrapServers());
            return run(made, client, meters);
        }
    }

    private int run(Function<Pipeline, Role> made, Map<String, Object> client, Meters meters) throws Exception {
        try (StopSignals signals = new StopSignals();
                HttpEndpoint endpoint =
                        HttpEndpoint.openIfWanted(config.metrics().port(), meters.registry());
                RunLog log = signals.starting(() -> RunLog.open(
                        client,
                        config.run().topics(),
                        config.run().identity(),
                        config.topics(),
                        config.run().schemaRegistryUrl(),
                        Clock.systemUTC()));
                Pipeline pipeline = new Pipeline(config, log.connection(), meters.registry(), Clock.systemUTC());
                RoleThreads threads = new RoleThreads(STOP_PATIENCE)) {
            endpoint.serve(log.registryContents());
            Role role = made.apply(pipeline);
            out.println(role.name() + " of run " + config.run().id() + " on "
                    + config.run().bootstrapServers() + ", topics "
                    + config.run().topics().prefix() + "*"
                    + (endpoint.port() < 0 ? "" : ", metrics at http://127.0.0.1:" + endpoint.port() + "/metrics"));
            out.flush();
            threads.start(role);
            watch(role, new Rates(meters.registry()), signals, threads);
            threads.stop();
            if (threads.failure().isPresent()) {
                throw threads.failure().get();
            }
            return signals.received() ? StopSignals.INTERRUPTED : 0;
        }
    }

    private void watch(Role role, Rates rates, StopSignals signals, RoleThreads threads) throws InterruptedException {
        long start = System.nanoTime();
        while (threads.failure().isEmpty() && !threads.hasEnded(role) && !signals.await(LINE_PERIOD_MS)) {
            rates.sample((System.nanoTime() - start) / 1e9);
            Double tokens = rates.tokensPerSecond().get(role.name());
            Double idle = rates.idle().get(role.name());
            Long version = rates.serving().get(role.name());
            out.println(role.name()
                    + (version == null ? "" : "  version " + version)
                    + (tokens == null ? "" : String.format(Locale.ROOT, "  tokens/s %.0f", tokens))
                    + (idle == null ? "" : String.format(Locale.ROOT, "  idle %.0f%%", 100 * idle)));
            out.flush();
        }
    }
}
