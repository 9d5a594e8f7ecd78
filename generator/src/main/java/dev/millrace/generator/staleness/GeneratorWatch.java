package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.Quarantine;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts generators into quarantine, says so as an alarm, and lets them go when somebody lifts it.
 *
 * <p>What is decided here takes effect when it is on the log ({@link #unwritten}), where everybody else reads it. Confined to
 * admission's thread.
 */
final class GeneratorWatch implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GeneratorWatch.class);

    static final String ALARM = "quarantine";
    /** Why, on the log. */
    static final String REFUSED_RECORDS = "refused-records";

    static final String LOG_PROBS = "log-probs";

    /** Of whom something is remembered: more ids than that are made up. */
    private static final int MAX_GENERATORS = 10_000;

    private final LogConnection connection;
    private final QuarantineConfig config;
    private final Clock clock;
    private final Quarantines log;
    private final Map<String, RefusedRecords> refused = new HashMap<>();
    private final Map<String, LogProbDifference> differences = new HashMap<>();
    private final Map<String, Quarantine> standing = new TreeMap<>();
    private final List<Quarantine> fresh = new ArrayList<>();
    private boolean isOpen;
    private boolean isImpossibleSaid;

    GeneratorWatch(LogConnection connection, QuarantineConfig config, Clock clock) {
        this.connection = connection;
        this.config = config;
        this.clock = clock;
        this.log = Quarantines.of(connection);
    }

    /** Takes up the quarantines that the log has, once; what was counted is counted anew. */
    void begin() {
        refused.clear();
        differences.clear();
        if (!isOpen) {
            log.open();
            isOpen = true;
            standing.putAll(log.standing());
            standing.values().forEach(this::raise);
        }
    }

    /** A record of a generator was refused, one of so many; why, with the sentence. */
    void refused(String generatorId, long of, String reason) {
        if (standing.containsKey(generatorId)
                || refused.size() >= MAX_GENERATORS && !refused.containsKey(generatorId)) {
            return;
        }
        RefusedRecords records = refused.computeIfAbsent(generatorId, id -> new RefusedRecords(config));
        records.refused(of);
        if (records.isTooMuch()) {
            put(generatorId, REFUSED_RECORDS, records.sentence() + ", the last as " + reason);
        }
    }

    /** A scorer has compared log-probs that a generator sent; sums that cannot be are nobody's, and said once. */
    void compared(ComparedLogProbs sums) {
        String generatorId = sums.getGeneratorId();
        if (!LogProbDifference.arePossible(sums)) {
            if (!isImpossibleSaid) {
                LOG.warn("left out sums of log-probs that no scorer can have found, and others like them: {}", sums);
            }
            isImpossibleSaid = true;
            return;
        }
        if (config.maxDifference() == 0
                || standing.containsKey(generatorId)
                || differences.size() >= MAX_GENERATORS && !differences.containsKey(generatorId)) {
            return;
        }
        LogProbDifference difference = differences.computeIfAbsent(generatorId, id -> new LogProbDifference(config));
        difference.add(sums);
        if (difference.isEnough()) {
            differences.remove(generatorId); // what comes is judged by itself
            difference.tooMuch().ifPresent(sentence -> put(generatorId, LOG_PROBS, sentence));
        }
    }

    private void put(String generatorId, String why, String sentence) {
        Quarantine quarantine = new Quarantine(generatorId, clock.millis(), why, sentence);
        refused.remove(generatorId);
        differences.remove(generatorId);
        standing.put(generatorId, quarantine);
        fresh.add(quarantine);
        raise(quarantine);
    }

    private void raise(Quarantine quarantine) {
        String generatorId = quarantine.getGeneratorId();
        connection
                .alarms()
                .raise(
                        ALARM,
                        generatorId,
                        quarantine.getSentence()
                                + "; what it sends is refused and its samples are released to others, if there are any",
                        connection.command("quarantine lift " + generatorId));
    }

    /** A new version has appeared. */
    void progress() {
        refused.values().forEach(RefusedRecords::progress);
    }

    /** Those that are to be written to the log. */
    List<Quarantine> unwritten() {
        return List.copyOf(fresh);
    }

    /** They are on the log. */
    void written() {
        fresh.clear();
    }

    /** Forgets what was lifted on the log; whether there was any. */
    boolean followLifts() {
        boolean any = false;
        for (String generatorId : log.takeLifted()) {
            if (log.of(generatorId).isEmpty() && standing.remove(generatorId) != null) {
                connection.alarms().lower(ALARM, generatorId);
                any = true;
            }
        }
        return any;
    }

    /** How many are in quarantine. */
    int size() {
        return standing.size();
    }

    @Override
    public void close() {
        if (isOpen) {
            isOpen = false;
            log.close();
        }
    }
}
