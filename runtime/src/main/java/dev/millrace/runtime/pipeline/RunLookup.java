package dev.millrace.runtime.pipeline;

import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** Finds a run on a cluster by name, with its recorded configuration. Creates nothing. */
public final class RunLookup {
    private RunLookup() {}

    /** Client settings of the run's cluster, with where it is. */
    static Map<String, Object> client(MillraceConfig config) {
        Map<String, Object> client = new HashMap<>(config.clientSettings());
        client.put("bootstrap.servers", config.run().bootstrapServers());
        return client;
    }

    /**
     * The claim of a run, if it has one.
     *
     * @param whereabouts the run and how to reach its log; ignores another run's claim under the same topics
     */
    public static Optional<ClaimedRun> claim(MillraceConfig whereabouts) {
        return RunLog.look(
                        client(whereabouts),
                        whereabouts.run().topics(),
                        whereabouts.topics(),
                        whereabouts.run().schemaRegistryUrl().written())
                .filter(claim -> claim.run().runId().equals(whereabouts.run().id()));
    }

    /** Returns a run's recorded configuration; empty if there is none. */
    public static Optional<RecordedConfiguration> configuration(MillraceConfig whereabouts) {
        return claim(whereabouts).flatMap(RunLookup::configuration);
    }

    public static Optional<RecordedConfiguration> configuration(ClaimedRun claim) {
        return claim.configuration()
                .map(text -> RecordedConfiguration.parse(
                        text, "the configuration of run " + claim.run().runId() + " on its log"));
    }
}
