package dev.millrace.log;

import dev.millrace.schemas.registry.SchemaRegistryUnavailableException;
import java.util.List;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.errors.WakeupException;

/** Tells failures that a retry with new clients may fix from permanent ones. */
public final class RetriableFailures {
    /** Retries do not fix these. */
    private static final List<Class<? extends RuntimeException>> PERMANENT = List.of(
            AuthenticationException.class,
            AuthorizationException.class,
            ConfigException.class,
            FencedInstanceIdException.class,
            InterruptException.class,
            InvalidTopicException.class,
            PermanentFailureException.class,
            PatienceOverException.class, // its caller has tried long enough
            RecordTooLargeException.class,
            SerializationException.class,
            UnsupportedVersionException.class,
            WakeupException.class);

    private RetriableFailures() {}

    /** True if a cause is a failure of Kafka or of a registry, and no cause is permanent. */
    public static boolean isRetriable(Throwable failure) {
        boolean isRetriable = false;
        for (Throwable e = failure; e != null; e = e.getCause()) {
            Throwable each = e;
            if (PERMANENT.stream().anyMatch(permanent -> permanent.isInstance(each))) {
                return false;
            }
            isRetriable |= e instanceof KafkaException || e instanceof SchemaRegistryUnavailableException;
        }
        return isRetriable;
    }
}
