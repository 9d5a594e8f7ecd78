package dev.millrace.runtime.pipeline;

import dev.millrace.log.run.ClaimedRun;
import dev.millrace.log.run.RunLog;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RecordedConfiguration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** Finds a run on a cluster and what it was created with, for those who know its name and how to connect. Creates nothing. */
public final class RunLookup {
    private RunLookup() {}

    /**
     * The claim of a run, if it has one.
     *
     * @param whereabouts which run, and how to reach its log; another run's claim under the same topics is not its own
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

    /** What is recorded of a run; empty if nothing is. */
    public static Optional<RecordedConfiguration> configuration(MillraceConfig whereabouts) {
        return claim(whereabouts).flatMap(RunLookup::configuration);
    }

    /** What a claim says of the run's configuration. */
    public static Optional<RecordedConfiguration> configuration(ClaimedRun claim) {
        return claim.configuration()
                .map(text -> RecordedConfiguration.parse(
                        text, "the configuration of run " + claim.run().runId() + " on its log"));
    }
}
