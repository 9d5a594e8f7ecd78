package dev.millrace.log.scan;

import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.time.Duration;

/** The committed records of a run, of all its epochs: on its cluster, or in the files of a broker that is down. */
public interface RunRecords {
    RunIdentity run();

    /** Where the run's epoch comes from. */
    EpochLineage lineage();

    RunTopics topics();

    /** The schemas that the records were written with. */
    SchemaRegistry registry();

    /**
     * Opens a scan, which joins no group and leaves no trace; the caller closes it.
     *
     * @param patience how long to wait while nothing arrives
     */
    TopicScan scan(Duration patience);
}
