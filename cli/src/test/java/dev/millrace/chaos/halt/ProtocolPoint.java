package dev.millrace.chaos.halt;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** A point of a protocol that is no send to a topic: a method, before and after which a process may end. */
public enum ProtocolPoint {
    /** Of a transaction, offsets and all: before it everything is acknowledged and nothing can be read, after it everything. */
    COMMIT("org/apache/kafka/clients/producer/KafkaProducer", "commitTransaction"),
    /** Offsets go into a transaction. */
    OFFSETS("org/apache/kafka/clients/producer/KafkaProducer", "sendOffsetsToTransaction"),
    /** A follower has read a manifest, and takes it into its chain. */
    MANIFEST("dev/millrace/weights/ManifestHistory", "add"),
    /** The weights of a version are read and put together. */
    LOAD("dev/millrace/weights/VersionLoader", "load");

    private final String type;
    private final String method;

    ProtocolPoint(String type, String method) {
        this.type = type;
        this.method = method;
    }

    /** Internal name of the class that has the method. */
    String type() {
        return type;
    }

    /** Every method of this name is the point. */
    String method() {
        return method;
    }

    /** Its spelling: {@code commit}. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Those that lie in a class. */
    static List<ProtocolPoint> of(String type) {
        return Arrays.stream(values()).filter(point -> point.type.equals(type)).toList();
    }
}
