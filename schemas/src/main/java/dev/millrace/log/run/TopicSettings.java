package dev.millrace.log.run;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/**
 * What one topic must have.
 *
 * @param configuration Kafka's topic settings by name; those that are left out are the cluster's
 */
public record TopicSettings(String name, int partitions, Map<String, String> configuration) {

    public TopicSettings {
        configuration = Collections.unmodifiableMap(new TreeMap<>(configuration)); // checked in a fixed order
    }

    TopicSettings with(String key, Object value) {
        Map<String, String> more = new TreeMap<>(configuration);
        more.put(key, value.toString());
        return new TopicSettings(name, partitions, more);
    }
}
