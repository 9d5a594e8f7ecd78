package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.batch.BatchConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** One instance of the topology in a process of its own, which can be killed at any moment. */
final class TopologyProcess {
    /** First output of a process, before the time in Unix milliseconds. */
    static final String MAIN = "main at ";

    private TopologyProcess() {}

    /** Starts an instance; its output goes to a file next to its state. */
    static Process start(
            String bootstrapServers, String prefix, Path stateDirectory, String instanceId, int sequences) {
        return start(bootstrapServers, prefix, stateDirectory, instanceId, sequences, RebalanceProtocol.CLASSIC);
    }

    static Process start(
            String bootstrapServers,
            String prefix,
            Path stateDirectory,
            String instanceId,
            int sequences,
            RebalanceProtocol protocol) {
        File output = stateDirectory
                .resolveSibling(stateDirectory.getFileName() + ".log")
                .toFile();
        List<String> command = List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                TopologyProcess.class.getName(),
                bootstrapServers,
                prefix,
                stateDirectory.toString(),
                instanceId,
                Integer.toString(sequences),
                protocol.name());
        try {
            return new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.appendTo(output))
                    .start();
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** As a crash: the process gets no chance to do anything. */
    static void kill(Process process) throws InterruptedException {
        process.destroyForcibly();
        if (!process.waitFor(120, TimeUnit.SECONDS)) {
            throw new IllegalStateException("process " + process.pid() + " outlived its kill");
        }
    }

    static TopologyConfig config(String instanceId, int sequences) {
        return config(instanceId, sequences, RebalanceProtocol.CLASSIC);
    }

    private static TopologyConfig config(String instanceId, int sequences, RebalanceProtocol protocol) {
        TopologyConfig config = MillraceTopologyTest.batchesOf(sequences);
        RuntimeConfig runtime = config.runtime();
        return new TopologyConfig(
                config.ingress(),
                config.join(),
                config.groups(),
                new BatchConfig(sequences, 0, BatchConfig.Order.COMPLETION, 0, false),
                new RuntimeConfig(
                        runtime.threads(),
                        runtime.commitIntervalMs(),
                        runtime.maxTaskIdleMs(),
                        runtime.stateStores(),
                        runtime.storeCacheBytes(),
                        runtime.memberCacheBytes(),
                        runtime.rocksdbBytes(),
                        runtime.bufferedRecords(),
                        runtime.standbyReplicas(),
                        protocol,
                        runtime.sessionTimeoutMs(),
                        instanceId,
                        runtime.transactionTimeoutMs(),
                        runtime.compression(),
                        runtime.startTimeoutMs(),
                        runtime.stopTimeoutMs(),
                        runtime.alarmAfterMs()));
    }

    /** @param args bootstrap servers, topic prefix, state directory, instance id, sequences of a batch, rebalance protocol */
    public static void main(String[] args) {
        System.out.println(MAIN + System.currentTimeMillis());
        try (RunLog log = RunLog.join(
                Map.of("bootstrap.servers", args[0]),
                new RunTopics(args[1]),
                Samples.RUN,
                TopicsConfig.defaults(),
                "")) {
            TopologyRunner runner = new TopologyRunner(
                    config(args[3], Integer.parseInt(args[4]), RebalanceProtocol.valueOf(args[5])),
                    Algorithm.defaults(),
                    log.connection(),
                    Path.of(args[2]),
                    new SimpleMeterRegistry());
            Runtime.getRuntime().addShutdownHook(new Thread(runner::stop));
            runner.run();
        }
    }
}
