package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.staleness.AdmissionCapacity;

/** {@code staleness_capacity}: AReaL's admission formula after each event of a script, its silent floors included. */
final class StalenessCapacityFamily implements ConformanceFamily {
    @Override
    public String name() {
        return "staleness_capacity";
    }

    @Override
    public ObjectNode compute(ConformanceCase golden) {
        Script script = new Script(
                golden.config().integer("max_concurrent_rollouts"),
                golden.config().integer("consumer_batch_size"),
                golden.config().integer("max_staleness"));
        ObjectNode output = JsonNodeFactory.instance.objectNode();
        output.put("initial_capacity", script.capacity());
        output.put("pending_limit", script.pendingLimit());
        ArrayNode capacity = output.putArray("capacity");
        ArrayNode stats = output.putArray("stats");
        JsonNode events = golden.input().path("events");
        if (!events.isArray()) {
            throw new MalformedCaseException("input.events must be a list: " + events);
        }
        for (JsonNode event : events) {
            script.apply(event);
            capacity.add(script.capacity());
            stats.addArray()
                    .add(script.enqueued)
                    .add(script.running)
                    .add(script.accepted)
                    .add(script.rejected);
        }
        return output;
    }

    private static final class Script {
        private final int maxConcurrent;
        private final int batchSize;
        private final int maxStaleness;
        private long version;
        private long enqueued;
        private long running;
        private long accepted;
        private long rejected;

        Script(int maxConcurrent, int batchSize, int maxStaleness) {
            this.maxConcurrent = maxConcurrent;
            this.batchSize = batchSize;
            this.maxStaleness = maxStaleness;
        }

        void apply(JsonNode event) {
            switch (event.path("op").asText()) {
                case "enqueue" -> enqueued++;
                case "submit" -> {
                    enqueued--;
                    running++;
                }
                case "accept" -> {
                    running--;
                    accepted++;
                }
                case "reject" -> {
                    running--;
                    rejected++;
                }
                case "set_version" -> version = versionOf(event);
                case "recover" -> {
                    version = versionOf(event);
                    accepted = new AdmissionCapacity(1, Math.max(1, batchSize), 0).acceptedAt(version);
                }
                default -> throw new MalformedCaseException("unknown event: " + event);
            }
        }

        private static long versionOf(JsonNode event) {
            if (!event.path("version").isIntegralNumber()) {
                throw new MalformedCaseException("the event needs a version: " + event);
            }
            return event.path("version").longValue();
        }

        long capacity() {
            return AdmissionCapacity.referenceCapacity(
                    maxConcurrent, batchSize, maxStaleness, version, running, accepted);
        }

        long pendingLimit() {
            return AdmissionCapacity.referencePendingLimit(batchSize, maxStaleness);
        }
    }
}
