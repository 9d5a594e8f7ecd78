package dev.millrace.topology.task;

import dev.millrace.topology.state.Observation;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Creates the tasks of one kind; thread-safe.
 *
 * @param <A> type of the arrivals
 * @param kind name of its tasks, such as {@code join}
 * @param stores names of its stores
 * @param outputs topics that the tasks write to
 * @param awaited the output with waiting readers, whose records are committed at once
 * @param maxGapMs a gap between records, or an idle time, counts as at most this
 * @param opening makes a task
 */
public record TaskFactory<A extends Observation>(
        String kind,
        Set<String> stores,
        List<String> outputs,
        Optional<String> awaited,
        long maxGapMs,
        Opening<A> opening) {

    /** Makes a task on what its stores hold. */
    public interface Opening<A extends Observation> {
        /**
         * @param stores by name, each held by nobody else
         * @param sink takes what the task decides, in order
         */
        DecisionTask<A> open(
                int partition, Function<String, KeyValueStore<Bytes, byte[]>> stores, Consumer<TaskOutput> sink);
    }

    /** The name of one task, such as {@code join-3}. */
    public String name(int partition) {
        return kind + "-" + partition;
    }
}
