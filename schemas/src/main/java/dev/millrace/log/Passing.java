package dev.millrace.log;

import dev.millrace.schemas.registry.SchemaRegistryAwayException;
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

/** Which failures may pass if what failed is tried again, with new clients, from its place on the log. */
public final class Passing {
    /** Waiting changes nothing about these. */
    private static final List<Class<? extends RuntimeException>> LASTING = List.of(
            AuthenticationException.class,
            AuthorizationException.class,
            ConfigException.class,
            FencedInstanceIdException.class,
            InterruptException.class,
            InvalidTopicException.class,
            LastingFailureException.class,
            PatienceOverException.class, // its caller has tried long enough
            RecordTooLargeException.class,
            SerializationException.class,
            UnsupportedVersionException.class,
            WakeupException.class);

    private Passing() {}

    /** True if a cause is a failure of Kafka or of a registry, and no cause is permanent. */
    public static boolean mayPass(Throwable failure) {
        boolean mayPass = false;
        for (Throwable e = failure; e != null; e = e.getCause()) {
            Throwable each = e;
            if (LASTING.stream().anyMatch(lasting -> lasting.isInstance(each))) {
                return false;
            }
            mayPass |= e instanceof KafkaException || e instanceof SchemaRegistryAwayException;
        }
        return mayPass;
    }
}
