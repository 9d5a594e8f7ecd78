package dev.millrace.chaos.halt;

import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Tries two commits of a producer that has begun nothing. */
public final class CommitsTwice {
    static final int REFUSED_TWICE = 22;

    private CommitsTwice() {}

    /** Ends with a status that says how many commits were refused. */
    public static void main(String[] args) {
        int refused = 0;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", "127.0.0.1:1", "transactional.id", "nobody"),
                new ByteArraySerializer(),
                new ByteArraySerializer())) {
            for (int i = 0; i < 2; i++) {
                try {
                    producer.commitTransaction();
                } catch (IllegalStateException e) {
                    refused++;
                }
            }
        }
        System.exit(refused == 2 ? REFUSED_TWICE : 0);
    }
}
