package dev.millrace.cli.run;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.StopSignals;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerException;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Runs one Kafka broker on loopback, for roles or a trainer in separate processes. */
@Command(
        name = "broker",
        footer = {
            "",
            "Ends with Ctrl-C. 'train' without --bootstrap-servers has one of its own; its address is in broker.address of the run's folder."
        },
        description = "Runs a Kafka broker on loopback, to try several processes without a cluster.")
public final class BrokerCommand extends ScreenCommand {
    @Option(names = "--dir", paramLabel = "DIR", description = "Data folder.", defaultValue = "runs/broker")
    private Path directory;

    @Option(
            names = "--port",
            paramLabel = "PORT",
            description = "On loopback; 0 for any free one. Default: ${DEFAULT-VALUE}.",
            defaultValue = "9092")
    private int port;

    @Override
    public Integer call() throws Exception {
        requireFree();
        CountDownLatch ended = new CountDownLatch(1);
        AtomicReference<BrokerException> failure = new AtomicReference<>();
        return StopSignals.during(
                () -> {
                    try (EmbeddedBroker broker = EmbeddedBroker.start(
                            directory, BrokerConfig.defaults().withPort(port))) {
                        broker.failure().thenAccept(e -> {
                            failure.set(e);
                            ended.countDown();
                        });
                        out().println("a broker listens at " + broker.bootstrapServers() + ", with its data in "
                                + directory + "; stop it with Ctrl-C");
                        ended.await();
                    }
                    if (failure.get() != null) {
                        throw failure.get();
                    }
                    return StopSignals.INTERRUPTED;
                },
                ended::countDown);
    }

    /** Checks train's settings before the broker starts. */
    private void requireFree() throws IOException {
        ViewOptions.requirePort("--port", port);
        try (ServerSocket free = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        } catch (BindException e) {
            throw new RefusedRequestException(
                    "port " + port + " on loopback is taken; give --port another one, or 0 for any free one", e);
        }
    }
}
