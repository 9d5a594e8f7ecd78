package dev.millrace.cli.audit;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.train.RunDirectory;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * A run that is asked about: its log, and the broker that had to be started to read it, if any.
 *
 * <p>Nothing is created. A run that goes on in its folder is asked at its own broker; one that has ended has its folder
 * locked meanwhile, so that it cannot go on half way.
 */
public final class AuditedRun implements AutoCloseable {
    private final MillraceConfig config;
    private final RunDirectory directory;
    private final EmbeddedBroker broker;
    private final RunLog log;

    private AuditedRun(MillraceConfig config, RunDirectory directory, EmbeddedBroker broker, RunLog log) {
        this.config = config;
        this.directory = directory;
        this.broker = broker;
        this.log = log;
    }

    /** @param folder null for a run on a cluster */
    static AuditedRun open(MillraceConfig config, Path folder) {
        if (folder == null || !config.run().embedded()) {
            return new AuditedRun(config, null, null, find(config, config.run().bootstrapServers()));
        }
        if (RunDirectory.isInUse(folder)) {
            String address = RunDirectory.brokerAddress(folder);
            if (address.isEmpty()) {
                throw new RefusedRequestException("the run in " + folder
                        + " goes on and has not said yet where its broker is; try again in a few seconds");
            }
            return new AuditedRun(config, null, null, find(config, address));
        }
        RunDirectory directory = RunDirectory.open(folder);
        EmbeddedBroker broker = null;
        try {
            broker = EmbeddedBroker.start(directory.broker(), config.broker());
            return new AuditedRun(config, directory, broker, find(config, broker.bootstrapServers()));
        } catch (RuntimeException e) {
            if (broker != null) {
                broker.close();
            }
            directory.close();
            throw e;
        }
    }

    private static RunLog find(MillraceConfig config, String bootstrapServers) {
        Map<String, Object> client = new HashMap<>(config.clientSettings());
        client.put("bootstrap.servers", bootstrapServers);
        return RunLog.find(
                client, config.run().topics(), config.topics(), config.run().schemaRegistryUrl());
    }

    /** The run's log. */
    public LogConnection connection() {
        return log.connection();
    }

    /** The configuration that was asked with; that of the run itself where it came from its folder. */
    public MillraceConfig config() {
        return config;
    }

    /** Which run it is, on one line. */
    public String title() {
        var run = log.connection().run();
        return "run " + run.runId() + (run.epoch() == 0 ? "" : ", epoch " + run.epoch()) + ", topics "
                + log.connection().topics().prefix() + "*";
    }

    @Override
    public void close() {
        log.close();
        if (broker != null) {
            broker.close();
        }
        if (directory != null) {
            directory.close();
        }
    }
}
