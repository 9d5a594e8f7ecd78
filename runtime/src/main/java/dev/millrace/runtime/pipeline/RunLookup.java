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

    /**
     * The claim of a run, if it has one.
     *
     * @param whereabouts the run and how to reach its log; ignores another run's claim under the same topics
     */
    public static Optional<ClaimedRun> claim(MillraceConfig whereabouts) {
        Map<String, Object> client = new HashMap<>(whereabouts.clientSettings());
        client.put("bootstrap.servers", whereabouts.run().bootstrapServers());
        return RunLog.look(
                        client,
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
