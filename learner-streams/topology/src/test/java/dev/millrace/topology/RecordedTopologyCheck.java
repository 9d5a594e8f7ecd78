package dev.millrace.topology;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.registry.SchemaRegistry;

/**
 * A check that every test of the topology must pass in addition to its own assertions. It is called with all input and
 * output when a {@link TopologyHarness} closes. Found by {@link java.util.ServiceLoader}: the topology's own class path
 * has none, and the replay's class path has the replay's check and runs the topology's tests again.
 */
public interface RecordedTopologyCheck {
    void check(
            RecordedTopics recorded,
            SchemaRegistry schemas,
            TopologyConfig config,
            Algorithm algorithm,
            int maxValueBytes);
}
