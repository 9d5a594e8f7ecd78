package dev.millrace.topology.task;

import dev.millrace.topology.CanonicalSettings;
import dev.millrace.topology.state.Observation;
import dev.millrace.topology.state.StateStores;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/** Puts tasks of one kind, with their stores and journals, into a topology. */
public final class TaskSupplier<A extends Observation> implements ProcessorSupplier<Object, A, Object, Object> {
    private final TaskFactory<A> factory;
    private final String journal;
    private final CanonicalSettings settings;
    private final Map<String, String> nodes;
    private final StateStores.Kind kind;
    private final WaitBoard board;
    private final long commitIntervalMs;

    /**
     * @param journal name of the journal's store
     * @param settings all settings that the tasks' decisions depend on
     * @param nodes by topic: the node that writes to it
     * @param board where each task says every second what it waits for
     * @param commitIntervalMs of the engine
     */
    public TaskSupplier(
            TaskFactory<A> factory,
            String journal,
            CanonicalSettings settings,
            Map<String, String> nodes,
            StateStores.Kind kind,
            WaitBoard board,
            long commitIntervalMs) {
        if (!nodes.keySet().containsAll(factory.outputs())) {
            throw new IllegalArgumentException(
                    "every output needs a node: outputs " + factory.outputs() + ", nodes for " + nodes.keySet());
        }
        this.factory = factory;
        this.journal = journal;
        this.settings = settings;
        this.nodes = Map.copyOf(nodes);
        this.kind = kind;
        this.board = board;
        this.commitIntervalMs = commitIntervalMs;
    }

    @Override
    public Processor<Object, A, Object, Object> get() {
        return new TaskProcessor<>(
                factory, journal, settings, nodes, board, new PromptCommit(factory.awaited(), commitIntervalMs));
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
        Set<StoreBuilder<?>> stores = new HashSet<>();
        factory.stores().written().forEach(name -> stores.add(StateStores.store(name, kind, false)));
        factory.stores().cached().forEach(name -> stores.add(StateStores.store(name, kind, true)));
        stores.add(StateStores.store(journal, kind, true));
        return stores;
    }
}
