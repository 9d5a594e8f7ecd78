package dev.millrace.policy.session;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.millrace.policy.onnx.proto.AttributeProto;
import dev.millrace.policy.onnx.proto.GraphProto;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.onnx.proto.NodeProto;
import dev.millrace.policy.onnx.proto.StringStringEntryProto;
import dev.millrace.policy.onnx.proto.TensorProto;
import dev.millrace.policy.onnx.proto.ValueInfoProto;
import dev.millrace.policy.weights.Weights;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A graph with weights inside: a session for each of the last ones, in which the runtime has packed them for its products, on the
 * device where there is one.
 *
 * <p>The two that ran last stay, and the newest that was prepared and has not run yet. Another thread may prepare; only who
 * runs a third closes what has run, so nobody else runs the oldest of the three at that time.
 */
final class PackedGraph implements WeightedGraph {
    private static final int RAN = 2;

    private final Engine engine;
    private final PreparedWeights prepared;
    private final ModelProto model;
    private final boolean plansMemory;
    private final Set<String> read = new HashSet<>();
    private final Map<Weights, OrtSession> ran = new LinkedHashMap<>(); // the last at the end
    private @Nullable Weights waitingFor;
    private @Nullable OrtSession waiting;
    private boolean closed;

    PackedGraph(Engine engine, PreparedWeights prepared, ModelProto model, boolean plansMemory) {
        this.engine = engine;
        this.prepared = prepared;
        this.model = model;
        this.plansMemory = plansMemory;
        addRead(model.getGraph(), read);
    }

    @Override
    public void prepare(Weights weights) {
        synchronized (this) {
            if (closed || ran.containsKey(weights) || waitingFor == weights) {
                return;
            }
        }
        OrtSession made = compile(weights); // not under the lock: who generates goes on meanwhile
        synchronized (this) {
            if (closed || ran.containsKey(weights)) {
                close(made);
                return;
            }
            close(waiting);
            waitingFor = weights;
            waiting = made;
        }
    }

    @Override
    public synchronized void forget() {
        ran.values().forEach(PackedGraph::close);
        ran.clear();
        close(waiting);
        waiting = null;
        waitingFor = null;
    }

    @Override
    public OrtSession session(Weights weights) {
        synchronized (this) {
            OrtSession session = taken(weights);
            if (session != null) {
                return session;
            }
        }
        OrtSession made = compile(weights);
        synchronized (this) {
            keep(weights, made);
            return made;
        }
    }

    /** One that is there, as the last to run; null if there is none. */
    private @Nullable OrtSession taken(Weights weights) {
        OrtSession session = ran.remove(weights);
        if (session == null && waitingFor == weights) {
            session = waiting;
            waiting = null;
            waitingFor = null;
        }
        if (session != null) {
            keep(weights, session);
        }
        return session;
    }

    private void keep(Weights weights, OrtSession session) {
        ran.put(weights, session);
        Iterator<OrtSession> oldest = ran.values().iterator();
        while (ran.size() > RAN) {
            close(oldest.next());
            oldest.remove();
        }
    }

    @Override
    public Feeds feed(Feeds feeds, Weights weights) {
        return feeds;
    }

    private OrtSession compile(Weights weights) {
        try (Feeds all = prepared.feed(new Feeds(engine.environment()), weights)) {
            Map<String, OnnxTensor> inside = new LinkedHashMap<>(all.map());
            inside.keySet().retainAll(read);
            return engine.compile(withInside(inside.keySet(), all.map().keySet()), plansMemory, inside);
        }
    }

    /**
     * The same graph with initializers that come from outside of the model in place of inputs.
     *
     * @param names of the initializers
     * @param fed of all inputs that it is to be without
     */
    private ModelProto withInside(Set<String> names, Set<String> fed) {
        GraphProto.Builder graph = model.getGraph().toBuilder().clearInput();
        for (ValueInfoProto input : model.getGraph().getInputList()) {
            if (names.contains(input.getName())) {
                graph.addInitializer(external(input));
            } else if (!fed.contains(input.getName())) {
                graph.addInput(input);
            }
        }
        return model.toBuilder().setGraph(graph).build();
    }

    /** What nodes read, in this graph and in those inside of it. */
    private static void addRead(GraphProto graph, Set<String> names) {
        for (NodeProto node : graph.getNodeList()) {
            names.addAll(node.getInputList());
            node.getAttributeList().stream()
                    .filter(AttributeProto::hasG)
                    .forEach(attribute -> addRead(attribute.getG(), names));
        }
    }

    private static TensorProto external(ValueInfoProto input) {
        TensorProto.Builder tensor = TensorProto.newBuilder()
                .setName(input.getName())
                .setDataType(input.getType().getTensorType().getElemType())
                .setDataLocation(TensorProto.DataLocation.EXTERNAL)
                .addExternalData(
                        StringStringEntryProto.newBuilder().setKey("location").setValue("weights"));
        input.getType().getTensorType().getShape().getDimList().forEach(dim -> tensor.addDims(dim.getDimValue()));
        return tensor.build();
    }

    @Override
    public synchronized void close() {
        closed = true;
        forget();
    }

    private static void close(@Nullable OrtSession session) {
        if (session == null) {
            return;
        }
        try {
            session.close();
        } catch (OrtException e) {
            throw new InferenceException("could not close the session: " + e.getMessage(), e);
        }
    }
}
