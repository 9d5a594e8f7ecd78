package dev.millrace.audit.ledger;

import dev.millrace.schemas.TrainingStep;
import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.avro.Schema;
import org.jspecify.annotations.Nullable;

/**
 * Training steps in a tenth of their memory, for readers that keep all steps of a run: without entries, of which there is one
 * per rollout, and with metrics as an array. Steps in a row share their metrics' names.
 *
 * <p>Packing belongs to one thread; a packed step's metrics are read-only.
 */
public final class PackedSteps {
    /** Sorted, of the last step. */
    private String[] names = {};

    /** A copy without entries. */
    public TrainingStep pack(TrainingStep step) {
        TrainingStep packed = new TrainingStep();
        for (Schema.Field field : TrainingStep.getClassSchema().getFields()) {
            switch (field.name()) {
                case "entries" -> packed.put(field.pos(), null);
                case "metrics" -> packed.put(field.pos(), metrics(step.getMetrics()));
                default -> packed.put(field.pos(), step.get(field.pos()));
            }
        }
        return packed;
    }

    private Map<String, Double> metrics(Map<String, Double> metrics) {
        if (metrics.size() != names.length || !metrics.keySet().containsAll(Arrays.asList(names))) {
            names = metrics.keySet().stream().sorted().toArray(String[]::new);
        }
        return new Metrics(names, Arrays.stream(names).mapToDouble(metrics::get).toArray());
    }

    private static final class Metrics extends AbstractMap<String, Double> {
        private final String[] names;
        private final double[] values;

        private Metrics(String[] names, double[] values) {
            this.names = names;
            this.values = values;
        }

        @Override
        public @Nullable Double get(Object key) {
            int at = key instanceof String name ? Arrays.binarySearch(names, name) : -1;
            return at < 0 ? null : Double.valueOf(values[at]);
        }

        @Override
        public boolean containsKey(Object key) {
            return get(key) != null;
        }

        @Override
        public Set<Entry<String, Double>> entrySet() {
            return new AbstractSet<>() {
                @Override
                public Iterator<Entry<String, Double>> iterator() {
                    return IntStream.range(0, names.length)
                            .mapToObj(i -> Map.entry(names[i], values[i]))
                            .iterator();
                }

                @Override
                public int size() {
                    return names.length;
                }
            };
        }
    }
}
