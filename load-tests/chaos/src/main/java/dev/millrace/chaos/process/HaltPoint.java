package dev.millrace.chaos.process;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Ends its process, as SIGKILL would, at a named point: before its nth record goes to a topic, or when that record has been
 * acknowledged and nothing is committed yet. A producer takes it as {@code interceptor.classes}; where it acts is said by a system
 * property.
 */
public final class HaltPoint implements ProducerInterceptor<Object, Object> {
    /** Exit status of a process that ended here. */
    public static final int STATUS = 86;

    private static final String PROPERTY = "millrace.chaos.halt";
    private static final String[] POINT = System.getProperty(PROPERTY, "::0").split(":");
    private static final AtomicInteger LEFT = new AtomicInteger(Integer.parseInt(POINT[2]));

    /** Before or after a record is sent. */
    public enum When {
        BEFORE,
        AFTER
    }

    /** Options of the JVM that is to end so. */
    public static List<String> options(When when, String topic, int nth) {
        return List.of("-D" + PROPERTY + "=" + when + ":" + topic + ":" + nth);
    }

    /** Configuration keys of the process that is to end so. */
    public static List<String> settings() {
        return List.of("kafka.producer.interceptor.classes=" + HaltPoint.class.getName());
    }

    @Override
    public ProducerRecord<Object, Object> onSend(ProducerRecord<Object, Object> record) {
        reached(When.BEFORE, record.topic());
        return record;
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception failure) {
        if (failure == null) {
            reached(When.AFTER, metadata.topic());
        }
    }

    private static void reached(When when, String topic) {
        if (POINT[0].equals(when.name()) && topic.endsWith("." + POINT[1]) && LEFT.decrementAndGet() == 0) {
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
