package dev.millrace.topology.task;

import dev.millrace.topology.state.Observation;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Makes the tasks of one kind; thread-safe.
 *
 * @param <A> what comes
 */
public interface TaskFactory<A extends Observation> {

    /** Its stores: those that are written for every record, and are therefore not cached, and those that are. */
    record StoreNames(Set<String> written, Set<String> cached) {}

    StoreNames stores();

    /** What its tasks are called, such as {@code join}. */
    String kind();

    /** The name of one task, such as {@code join-3}. */
    default String name(int partition) {
        return kind() + "-" + partition;
    }

    /** Where the task writes to. */
    List<String> outputs();

    /** The output whose records somebody waits for, so that they are committed at once; empty if there is none. */
    default Optional<String> awaited() {
        return Optional.empty();
    }

    /** A gap between records, or an idle time, counts as at most this. */
    long maxGapMs();

    /**
     * A task on what its stores hold.
     *
     * @param stores by name, each held by nobody else
     * @param sink takes what it decides
     */
    DecisionTask<A> open(int partition, Function<String, KeyValueStore<Bytes, byte[]>> stores, DecisionSink sink);
}
