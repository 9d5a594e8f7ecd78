package dev.millrace.topology.batch;

import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.task.DecisionSink;
import dev.millrace.topology.task.DecisionTask;
import dev.millrace.topology.task.TaskFactory;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/** Makes the assembly of each policy. */
public final class AssemblyTasks implements TaskFactory<AssemblyArrival> {
    private final AssemblySettings settings;

    public AssemblyTasks(AssemblySettings settings) {
        this.settings = settings;
    }

    @Override
    public StoreNames stores() {
        return new StoreNames(Set.of(AssemblyStore.NAME), Set.of());
    }

    @Override
    public String kind() {
        return "assembly";
    }

    @Override
    public List<String> outputs() {
        return List.of(
                settings.topics().batches(),
                settings.topics().outcomes(),
                settings.topics().deadLetters());
    }

    @Override
    public Optional<String> awaited() {
        return Optional.of(settings.topics().batches());
    }

    @Override
    public long maxGapMs() {
        return settings.groups().maxGapMs();
    }

    @Override
    public DecisionTask<AssemblyArrival> open(
            int partition, Function<String, KeyValueStore<Bytes, byte[]>> stores, DecisionSink sink) {
        return new AssemblyTask(settings, partition, stores.apply(AssemblyStore.NAME), sink);
    }
}
