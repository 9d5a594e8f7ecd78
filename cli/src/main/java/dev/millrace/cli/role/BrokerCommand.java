package dev.millrace.cli.role;

import dev.millrace.cli.signal.StopSignals;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerException;
import dev.millrace.infra.broker.EmbeddedBroker;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** One Kafka broker on loopback, for those who have none and want the roles of a run, or a trainer of their own, in processes of their own. */
@Command(
        name = "broker",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        footer = {
            "",
            "Ends with Ctrl-C. 'train' without --bootstrap-servers has one of its own; its address is in broker.address of the run's folder."
        },
        description = "Runs one Kafka broker on loopback, to try a run in several processes without a cluster.")
public final class BrokerCommand implements Callable<Integer> {
    @Option(
            names = "--dir",
            paramLabel = "DIR",
            description = "Where its data is. Default: ${DEFAULT-VALUE}.",
            defaultValue = "runs/broker")
    private Path directory;

    @Option(
            names = "--port",
            paramLabel = "PORT",
            description = "On loopback; 0 for any free one. Default: ${DEFAULT-VALUE}.",
            defaultValue = "9092")
    private int port;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws Exception {
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
                        spec.commandLine()
                                .getOut()
                                .println("a broker answers at " + broker.bootstrapServers() + ", with its data in "
                                        + directory + "; Ctrl-C ends it");
                        ended.await();
                    }
                    if (failure.get() != null) {
                        throw failure.get();
                    }
                    return StopSignals.INTERRUPTED;
                },
                ended::countDown);
    }
}
