package dev.millrace.topology.batch;

import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.state.StateStores;
import java.util.Set;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.state.StoreBuilder;

/** Makes the assembly of each task, with its store. */
public final class AssemblySupplier implements ProcessorSupplier<Object, AssemblyArrival, Object, Object> {
    private final AssemblySettings settings;
    private final AssemblyNodes nodes;
    private final StateStores.Kind stores;

    public AssemblySupplier(AssemblySettings settings, AssemblyNodes nodes, StateStores.Kind stores) {
        this.settings = settings;
        this.nodes = nodes;
        this.stores = stores;
    }

    @Override
    public Processor<Object, AssemblyArrival, Object, Object> get() {
        return new AssemblyProcessor(settings, nodes);
    }

    @Override
    public Set<StoreBuilder<?>> stores() {
        return Set.of(StateStores.store(AssemblyStore.NAME, stores, false));
    }
}
