package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.registry.SchemaRegistry;

/**
 * What every test of the topology must satisfy besides its own assertions: called when a {@link TopologyHarness} closes,
 * with all that went in and came out. Found by {@link java.util.ServiceLoader}; there is none on the class path of the
 * topology itself, and the replay's is on that of the replay, which runs the topology's tests once more.
 */
public interface RecordedTopologyCheck {
    void check(
            RecordedTopics recorded,
            SchemaRegistry schemas,
            TopologyConfig config,
            Algorithm algorithm,
            int maxValueBytes);
}
