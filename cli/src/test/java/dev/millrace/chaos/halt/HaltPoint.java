package dev.millrace.chaos.halt;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Ends its process, as SIGKILL would, at a named point of a protocol: before or after it happens for the nth time.
 *
 * <p>A point is a topic, before a record goes to it or when the record has been acknowledged, which a producer tells that takes this
 * as {@code interceptor.classes}; or one of {@link ProtocolPoint}, which {@link HaltAgent} tells. Which one it is, a system property
 * says.
 */
public final class HaltPoint implements ProducerInterceptor<Object, Object> {
    /** Exit status of a process that ended here. */
    public static final int STATUS = 86;

    private static final String PROPERTY = "millrace.chaos.halt";
    private static final String[] POINT = System.getProperty(PROPERTY, "::0").split(":");
    private static final AtomicInteger LEFT = new AtomicInteger(Integer.parseInt(POINT[2]));

    /** Before or after it happens. */
    public enum When {
        BEFORE,
        AFTER;

        /** For people. */
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Option of the JVM that is to end so. */
    public static String option(When when, String point, int nth) {
        return "-D" + PROPERTY + "=" + when + ":" + point + ":" + nth;
    }

    /** Configuration keys of the process that is to end at a topic. */
    public static List<String> settings() {
        return List.of("kafka.producer.interceptor.classes=" + HaltPoint.class.getName());
    }

    @Override
    public ProducerRecord<Object, Object> onSend(ProducerRecord<Object, Object> record) {
        atTopic(When.BEFORE, record.topic());
        return record;
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception failure) {
        if (failure == null) {
            atTopic(When.AFTER, metadata.topic());
        }
    }

    private static void atTopic(When when, String topic) {
        if (topic.endsWith("." + POINT[1])) {
            reached(when.name(), POINT[1]);
        }
    }

    /** What {@link HaltAgent} puts at the points of a protocol. */
    public static void reached(String when, String point) {
        if (POINT[0].equals(when) && POINT[1].equals(point) && LEFT.decrementAndGet() == 0) {
            Runtime.getRuntime().halt(STATUS);
        }
    }

    @Override
    public void close() {
        // it holds nothing
    }

    @Override
    public void configure(Map<String, ?> settings) {
        // the system property says it all
    }
}
