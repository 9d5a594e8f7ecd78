package dev.millrace.topology.join;

import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.state.StateStores;
import java.util.Set;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/** Makes the join of each task, with its stores. */
public final class JoinSupplier implements ProcessorSupplier<Object, Arrival, Object, Object> {
    private final JoinSettings settings;
    private final JoinNodes nodes;
    private final StateStores.Kind stores;

    public JoinSupplier(JoinSettings settings, JoinNodes nodes, StateStores.Kind stores) {
        this.settings = settings;
        this.nodes = nodes;
        this.stores = stores;
    }

    @Override
    public Processor<Object, Arrival, Object, Object> get() {
        return new JoinProcessor(settings, nodes);
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
        // a group's memory changes with every sample, and samples of a group come together
        return Set.of(StateStores.store(JoinProcessor.PENDING, stores, false), StateStores.store(JoinProcessor.SEEN, stores, true));
    }
}
