package dev.millrace.topology.join;

import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.task.DecisionSink;
import dev.millrace.topology.task.DecisionTask;
import dev.millrace.topology.task.TaskFactory;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;

/** Makes the join of each partition. */
public final class JoinTasks implements TaskFactory<Arrival> {
    private final JoinSettings settings;

    public JoinTasks(JoinSettings settings) {
        this.settings = settings;
    }

    @Override
    public StoreNames stores() {
        // a group's memory changes with every sample, and samples of a group come together
        return new StoreNames(Set.of(JoinTask.PENDING), Set.of(JoinTask.SEEN));
    }

    @Override
    public String kind() {
        return "join";
    }

    @Override
    public List<String> outputs() {
        return List.of(
                settings.topics().trajectories(),
                settings.topics().outcomes(),
                settings.topics().deadLetters());
    }

    @Override
    public long maxGapMs() {
        return settings.config().maxGapMs();
    }

    @Override
    public DecisionTask<Arrival> open(
            int partition, Function<String, KeyValueStore<Bytes, byte[]>> stores, DecisionSink sink) {
        return new JoinTask(settings, partition, stores, sink);
    }
}
