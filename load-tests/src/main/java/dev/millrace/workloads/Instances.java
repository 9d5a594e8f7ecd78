package dev.millrace.workloads;

import dev.millrace.log.LogConnection;
import dev.millrace.topology.TopologyRunner;
import dev.millrace.workloads.topology.InstanceProcess;
import dev.millrace.workloads.topology.LoadException;
import dev.millrace.workloads.topology.RunningTopology;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The instances of a topology under load: in this process, or in processes of their own where one is to be killed. */
interface Instances extends AutoCloseable {

    /** Starts what the workload asks for. */
    static Instances start(Workload workload, LogConnection connection, String run, Path scratch) {
        return workload.fault().killAfterSeconds() == 0
                ? new Here(new RunningTopology(
                        workload.topology(),
                        workload.algorithm(),
                        connection,
                        scratch.resolve(run),
                        workload.instances(),
                        workload.exactlyOnce() ? TopologyRunner::new : TopologyRunner::atLeastOnce))
                : new Apart(workload, connection, run, scratch);
    }

    void awaitRunning() throws InterruptedException;

    void requireRunning();

    /** Kills one and starts another in its place. */
    void killOne() throws InterruptedException;

    @Override
    void close();

    /** In this process. */
    record Here(RunningTopology topology) implements Instances {
        @Override
        public void awaitRunning() throws InterruptedException {
            topology.awaitAllRunning();
        }

        @Override
        public void requireRunning() {
            topology.requireRunning();
        }

        @Override
        public void killOne() {
            throw new IllegalStateException("an instance in this process cannot be killed");
        }

        @Override
        public void close() {
            topology.close();
        }
    }

    /** In processes of their own. */
    final class Apart implements Instances {
        private static final int HEAP_MEGABYTES = 512;

        private final Workload workload;
        private final LogConnection connection;
        private final String run;
        private final Path scratch;
        private final List<InstanceProcess> processes = new ArrayList<>();
        private int started;

        Apart(Workload workload, LogConnection connection, String run, Path scratch) {
            this.workload = workload;
            this.connection = connection;
            this.run = run;
            this.scratch = scratch;
            for (int i = 0; i < workload.instances(); i++) {
                processes.add(another("instance-" + i));
            }
        }

        private InstanceProcess another(String id) {
            return InstanceProcess.start(
                    String.valueOf(connection.clientProperties().get("bootstrap.servers")),
                    run,
                    scratch.resolve(run + "-" + started++),
                    id,
                    HEAP_MEGABYTES,
                    workload.topology(),
                    workload.algorithm(),
                    workload.topics());
        }

        @Override
        public void awaitRunning() throws InterruptedException {
            for (InstanceProcess process : processes) {
                process.awaitRunning();
            }
        }

        @Override
        public void requireRunning() {
            if (!processes.stream().allMatch(InstanceProcess::isAlive)) {
                throw new LoadException("an instance of the topology ended under load; its log is under " + scratch);
            }
        }

        @Override
        public void killOne() throws InterruptedException {
            processes.get(0).kill();
            processes.set(0, another("instance-0"));
        }

        @Override
        public void close() {
            processes.forEach(InstanceProcess::close);
        }
    }
}
