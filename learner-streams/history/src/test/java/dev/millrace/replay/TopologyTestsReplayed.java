package dev.millrace.replay;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.topology.RecordedTopics;
import dev.millrace.topology.RecordedTopologyCheck;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;

/** Checks after every topology test that a replay of its record reproduces every byte. */
public final class TopologyTestsReplayed implements RecordedTopologyCheck {
    @Override
    public void check(
            RecordedTopics recorded,
            SchemaRegistry schemas,
            TopologyConfig config,
            Algorithm algorithm,
            int maxValueBytes) {
        MemoryRun run = new MemoryRun(Samples.RUN, Samples.TOPICS, schemas, recorded);
        try {
            assertThat(new AsRecorded(run, config, algorithm, maxValueBytes).replay(1))
                    .as("replay as recorded")
                    .isNotEmpty()
                    .allMatch(TaskVerdict::isProved);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
