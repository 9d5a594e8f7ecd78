package dev.millrace.log;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** A kind of Kafka's clients, for which alone a setting is if its name begins so: {@code consumer.fetch.max.bytes}. */
public enum ClientKind {
    CONSUMER,
    PRODUCER,
    ADMIN,
    STREAMS;

    private final String prefix = name().toLowerCase(Locale.ROOT) + ".";

    boolean owns(String key) {
        return key.startsWith(prefix);
    }

    static boolean isOfOne(String key) {
        for (ClientKind kind : values()) {
            if (kind.owns(key)) {
                return true;
            }
        }
        return false;
    }

    /** The id of a client: the name of the connection that it belongs to, and its own. */
    public static String id(Map<String, Object> clientProperties, String own) {
        return clientProperties.get("client.id") instanceof String name && !own.startsWith(name)
                ? name + "-" + own
                : own;
    }

    static Map<String, Object> common(Map<String, Object> clientProperties) {
        Map<String, Object> common = new HashMap<>(clientProperties);
        common.keySet().removeIf(ClientKind::isOfOne);
        return common;
    }

    /** Settings of a client of this kind: the common ones, over them its user's own, over these what was set for the kind. */
    public Map<String, Object> settings(Map<String, Object> clientProperties, Map<String, Object> ofUser) {
        Map<String, Object> merged = common(clientProperties);
        merged.putAll(ofUser);
        if (ofUser.get("client.id") instanceof String id) {
            merged.put("client.id", id(clientProperties, id));
        }
        clientProperties.forEach((key, value) -> {
            if (owns(key)) {
                merged.put(key.substring(prefix.length()), value);
            }
        });
        return merged;
    }
}
