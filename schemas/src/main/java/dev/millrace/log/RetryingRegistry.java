package dev.millrace.log;

import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryUnavailableException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.apache.avro.Schema;

/**
 * A registry that is asked again while it is away, for as long as a role is patient. What it knows is cached below, so that only a
 * schema that nobody has asked for yet waits.
 *
 * <p>Thread-safe; each caller waits for itself, until it is interrupted, or {@link #stopWaiting} is called.
 */
public final class RetryingRegistry implements SchemaRegistry {
    private final SchemaRegistry registry;
    private final Supplier<Patience> patience;
    private final CountDownLatch stopped;

    private RetryingRegistry(SchemaRegistry registry, Supplier<Patience> patience, CountDownLatch stopped) {
        this.registry = registry;
        this.patience = patience;
        this.stopped = stopped;
    }

    /**
     * Another patience in place of the one that a registry has, if it has one.
     *
     * @param limit from the first failure of a question on
     */
    public static SchemaRegistry over(SchemaRegistry registry, Duration limit, Alarms alarms) {
        CountDownLatch stopped = new CountDownLatch(1);
        return with(
                registry,
                () -> new Patience("the schema registry's caller", limit, alarms, Optional::empty, stopped),
                stopped);
    }

    static SchemaRegistry with(SchemaRegistry registry, Supplier<Patience> patience, CountDownLatch stopped) {
        return new RetryingRegistry(
                registry instanceof RetryingRegistry patient ? patient.registry : registry, patience, stopped);
    }

    /** Ends every wait, those to come too: what is away then is a failure at once. */
    public void stopWaiting() {
        stopped.countDown();
    }

    @Override
    public int idOf(String subject, Schema schema) {
        return answer(() -> registry.idOf(subject, schema));
    }

    @Override
    public Schema byId(int id) {
        return answer(() -> registry.byId(id));
    }

    private <T> T answer(Supplier<T> question) {
        try {
            return question.get();
        } catch (SchemaRegistryUnavailableException e) {
            return again(question, e);
        }
    }

    private <T> T again(Supplier<T> question, SchemaRegistryUnavailableException first) {
        Patience attempts = patience.get();
        SchemaRegistryUnavailableException away = first;
        while (attempts.again(away, () -> stopped.getCount() == 0)) {
            try {
                T answer = question.get();
                attempts.succeeded();
                return answer;
            } catch (SchemaRegistryUnavailableException e) {
                away = e;
            }
        }
        throw away;
    }

    @Override
    public void close() {
        registry.close();
    }
}
