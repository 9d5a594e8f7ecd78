package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.rollout.VectorCheck;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts generators into quarantine, raises the alarm, and ends it when an operator lifts it. A decision takes effect
 * once on the log ({@link #unwritten}). Confined to admission's thread.
 */
final class GeneratorWatch implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GeneratorWatch.class);

    static final String ALARM = "quarantine";
    static final String REFUSED_RECORDS = "refused-records";

    static final String LOG_PROBS = "log-probs";

    /** Most generators remembered; a longer list comes from forged ids. */
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
            standing.putAll(log.active());
            standing.values().forEach(this::raise);
        }
    }

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
                LOG.warn("ignores impossible sums of log-probs, and others like them: {}", sums);
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
            differences.remove(generatorId); // later records are judged by themselves
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
                                + "; its records are refused and its samples are released to other generators",
                        connection.command("quarantine lift " + generatorId));
    }

    void progress() {
        refused.values().forEach(RefusedRecords::progress);
    }

    List<Quarantine> unwritten() {
        return List.copyOf(fresh);
    }

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

    /**
     * Difference between a generator's log-probs and the scorer's under the same version; decided after enough
     * tokens, then restarted.
     *
     * <p>An honest engine differs by rounding, hundredths of a nat in the mean. Log-probs of another policy,
     * constants and shuffled ones differ by tenths or more; under a very sure policy their squared differences are at
     * least the variance of the scorer's.
     *
     * <p>Scores are divided into {@value #LOTS} lots in arrival order, and the median of the lots' means decides, so
     * one record affects one lot only. Confined to admission's thread.
     */
    static final class LogProbDifference {
        static final int LOTS = 7;

        /** What rounding may do to sums that are equal. */
        private static final double ROUNDING = 1 - 1e-6;

        private final QuarantineConfig config;
        private final List<Lot> full = new ArrayList<>();
        private Lot open = Lot.EMPTY;

        LogProbDifference(QuarantineConfig config) {
            this.config = config;
        }

        void add(ComparedLogProbs sums) {
            open = open.and(sums);
            if (LOTS * open.tokens >= config.differenceTokens()) {
                full.add(open);
                open = Lot.EMPTY;
            }
        }

        /**
         * True if log-probs can have these sums: each between {@link VectorCheck#LEAST_LOG_PROB} and 0, squares at
         * least those of the mean.
         */
        static boolean arePossible(ComparedLogProbs sums) {
            double tokens = sums.getTokens();
            double absolute = sums.getSumAbsolute();
            double scored = sums.getSumScored();
            double furthest = -VectorCheck.LEAST_LOG_PROB * tokens;
            return tokens >= 1
                    && tokens <= Integer.MAX_VALUE
                    && absolute >= 0
                    && absolute <= furthest
                    && scored <= 0
                    && scored >= -furthest
                    && sums.getSumSquared() >= absolute / tokens * absolute * ROUNDING
                    && sums.getSumSquared() <= furthest * -VectorCheck.LEAST_LOG_PROB
                    && sums.getSumSquaredScored() >= scored / tokens * scored * ROUNDING
                    && sums.getSumSquaredScored() <= furthest * -VectorCheck.LEAST_LOG_PROB;
        }

        /** Whether it can be decided. */
        boolean isEnough() {
            return full.size() >= LOTS;
        }

        /** What is too much of it, as a sentence; empty if nothing is. */
        Optional<String> tooMuch() {
            List<Lot> over = full.stream()
                    .filter(lot -> lot.isTooMuch(config.maxDifference()))
                    .sorted(Comparator.comparingDouble(Lot::mean))
                    .toList();
            if (2 * over.size() <= full.size()) {
                return Optional.empty();
            }
            Lot middle = over.get(over.size() / 2);
            String difference = String.format(
                    Locale.ROOT,
                    "its log-probs differ by %.3f nats on average from those of the versions it names, in %d of %d"
                            + " lots of %d tokens in all",
                    middle.mean(),
                    over.size(),
                    full.size(),
                    full.stream().mapToLong(Lot::tokens).sum());
            return Optional.of(
                    middle.mean() > config.maxDifference()
                            ? difference + ", and may by " + config.maxDifference()
                            : String.format(
                                    Locale.ROOT,
                                    "%s, and may by %.3f where they say as little of the tokens as a constant",
                                    difference,
                                    config.maxDifference() / 3));
        }

        /** Sums over some tokens. */
        private record Lot(long tokens, double absolute, double squared, double scored, double squaredScored) {
            static final Lot EMPTY = new Lot(0, 0, 0, 0, 0);

            Lot and(ComparedLogProbs sums) {
                return new Lot(
                        tokens + sums.getTokens(),
                        absolute + sums.getSumAbsolute(),
                        squared + sums.getSumSquared(),
                        scored + sums.getSumScored(),
                        squaredScored + sums.getSumSquaredScored());
            }

            double mean() {
                return absolute / tokens;
            }

            boolean isTooMuch(double bound) {
                double variance = squaredScored - scored * scored / tokens; // of all, not of one
                return mean() > bound || mean() > bound / 3 && squared >= variance;
            }
        }
    }

    /**
     * Refused records of one generator, since the newest version and among its newest records. The restart per
     * version keeps rare refusals from adding up over a long run. Confined to admission's thread.
     */
    static final class RefusedRecords {
        private final QuarantineConfig config;
        /** Which of the generator's records the refused ones among its newest were, counted from 1. */
        private final Deque<Long> places = new ArrayDeque<>();

        private long records;
        private long sinceVersion;

        RefusedRecords(QuarantineConfig config) {
            this.config = config;
        }

        /**
         * Counts a refusal.
         *
         * @param of how many records since the one refused before, itself included; at least 1
         */
        void refused(long of) {
            records += Math.max(1, of);
            places.addLast(records);
            while (places.getFirst() <= records - config.windowRecords()) {
                places.removeFirst();
            }
            sinceVersion++;
        }

        void progress() {
            sinceVersion = 0;
        }

        /** Whether it is too much. */
        boolean isTooMuch() {
            int enough = config.refusedRecords();
            if (enough == 0) {
                return false;
            }
            long newest = Math.min(records, config.windowRecords());
            int atLeast = Math.min(enough, config.windowRecords());
            return sinceVersion >= enough
                    || places.size() >= atLeast && places.size() >= config.refusedShare() * newest;
        }

        String sentence() {
            return places.size() + " of its last " + Math.min(records, config.windowRecords())
                    + " records were refused, " + sinceVersion + " since the newest version";
        }
    }
}
