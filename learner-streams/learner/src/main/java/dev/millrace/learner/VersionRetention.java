package dev.millrace.learner;

import dev.millrace.learner.VersionRetention.UnservedVersions.Unserved;
import dev.millrace.log.EvaluationLog;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.Right;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.weights.Checkpoints;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionObject;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.weights.store.ObjectStore;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MultiGauge;
import io.micrometer.core.instrument.Tags;
import java.io.IOException;
import java.net.URI;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import java.util.function.LongUnaryOperator;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Manages published versions on a thread of its own: reports servers that do not serve them, removes versions that are
 * not needed, and warns before Kafka's own limit removes the best one.
 *
 * <p>There is one per publishing learner. The learner does not wait for it and does not stop if it fails; it then logs
 * the reason and tries again. Meters: {@code millrace.serving.unserved.seconds} by server, present only during an
 * alarm, and {@code millrace.weights.oldest.version}.
 */
public final class VersionRetention implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(VersionRetention.class);
    private static final Duration PERIOD = Duration.ofSeconds(1);
    private static final Duration LIMIT = Duration.ofSeconds(5);
    /** Interval of checks for the best version; the broker applies retention every five minutes by default. */
    private static final Duration LOOK = Duration.ofSeconds(5);
    /** Removal reads several topics, so it runs this often per {@code keep_versions} versions. */
    private static final int REMOVALS_PER_WINDOW = 16;

    private final LogConnection connection;
    private final WeightsConfig config;
    private final List<Long> fixed;
    private final Clock clock;
    private final MultiGauge unservedSeconds;
    private final Gauge oldestGauge;
    private final MeterRegistry registry;
    private final UnservedVersions unservedVersions;
    private final Thread thread;
    /** Age at which each alarm was last logged: a lasting one is logged at 1, 2, 4, 8... times the limit. */
    private final Map<String, Long> saidAtAgeMs = new HashMap<>();

    private long lastRemoval = -1;
    private long lookedAtMs;
    private long failures;
    private volatile long oldestKept;
    private volatile boolean closed;

    /**
     * Registers the meters; call {@link #start()} to begin.
     *
     * @param fixed versions of fixed policies, such as a reference; they and all later versions are kept
     */
    public VersionRetention(
            LogConnection connection,
            WeightsConfig config,
            Collection<Long> fixed,
            MeterRegistry registry,
            Clock clock) {
        this.fixed = List.copyOf(fixed);
        this.connection = connection.as("retention");
        this.config = config;
        this.clock = clock;
        this.registry = registry;
        this.unservedVersions = new UnservedVersions(config.unservedAlarmMs(), clock.millis());
        this.unservedSeconds = MultiGauge.builder("millrace.serving.unserved.seconds")
                .description(
                        "for how long a server has not served a published version; present only while it is an alarm")
                .register(registry);
        this.oldestGauge = Gauge.builder("millrace.weights.oldest.version", this, care -> care.oldestKept)
                .description("oldest version whose weights are kept")
                .register(registry);
        this.thread = new Thread(this::run, "version-care");
        thread.setDaemon(true);
    }

    /** Starts the thread; it makes its clients after a second, so that a learner that ends at once does not wait for them. */
    public void start() {
        thread.start();
    }

    private void run() {
        while (pause()) {
            try (PolicyFeed feed = new PolicyFeed(connection, config);
                    Admin admin = Admin.create(connection.admin());
                    ServingVersions board = new ServingVersions(connection, clock);
                    UnscoredRollouts unscored = new UnscoredRollouts(connection, admin);
                    EvaluationLog evaluated = new EvaluationLog(connection)) {
                VersionRemoval removal = new VersionRemoval(connection, admin, feed, stores(), LIMIT.toMillis());
                BestVersionWatch watch = new BestVersionWatch(connection, admin, feed, LIMIT.toMillis());
                do {
                    retain(feed, board, unscored, evaluated, removal, watch);
                } while (pause());
            } catch (InterruptedException e) {
                return;
            } catch (RuntimeException e) {
                failed(e);
            }
        }
    }

    /** The stores of weights and optimiser states, each once. */
    private List<ObjectStore> stores() {
        return Stream.of(config.store(), config.stateStore())
                .distinct()
                .flatMap(location -> ObjectStore.of(location).stream())
                .toList();
    }

    /** False once it is closed. */
    @SuppressWarnings("WaitNotInLoop") // woken early it looks early, which does no harm
    private synchronized boolean pause() {
        try {
            if (!closed) {
                wait(PERIOD.toMillis());
            }
        } catch (InterruptedException e) {
            return false;
        }
        return !closed;
    }

    private void retain(
            PolicyFeed feed,
            ServingVersions board,
            UnscoredRollouts unscored,
            EvaluationLog evaluated,
            VersionRemoval removal,
            BestVersionWatch watch)
            throws InterruptedException {
        PolicyVersion newest = feed.newest().orElse(null);
        if (newest == null) {
            return;
        }
        board.update(LIMIT);
        Collection<Server> servers = board.servers();
        report(unservedVersions.find(
                newest.getVersion(), servers, version -> publishedAt(feed, version), clock.millis()));
        int period = Math.max(1, config.keepVersions() / REMOVALS_PER_WINDOW);
        try {
            if (config.keepVersions() > 0 && newest.getVersion() >= lastRemoval + period) {
                // servers first: a rollout that they finish meanwhile is then found on the log
                RetainedVersions needed = RetainedVersions.of(
                        newest.getVersion(),
                        config.keepVersions(),
                        servers,
                        fixed,
                        unscored.oldestVersion(LIMIT),
                        best(evaluated).stream()
                                .mapToLong(VersionEvaluation::getVersion)
                                .findFirst());
                oldestKept = removal.remove(needed, newest.getVersion());
                lastRemoval = newest.getVersion();
            }
            if (clock.millis() - lookedAtMs >= LOOK.toMillis()) {
                watch.look(best(evaluated));
                lookedAtMs = clock.millis();
            }
        } catch (TimeoutException e) {
            failed(e);
        }
    }

    /** @throws TimeoutException if it is not known in time; nothing is removed then */
    private static Optional<VersionEvaluation> best(EvaluationLog evaluated) throws TimeoutException {
        if (!evaluated.update(LIMIT)) {
            throw new TimeoutException("the evaluations could not be read within " + LIMIT.toMillis() + " ms");
        }
        return evaluated.best();
    }

    private static long publishedAt(PolicyFeed feed, long version) {
        try {
            return feed.manifest(version).getPublishedAtMs();
        } catch (VersionUnavailableException e) {
            return 0;
        }
    }

    private void report(List<Unserved> unserved) {
        unservedSeconds.register(
                unserved.stream()
                        .map(alarm -> MultiGauge.Row.of(Tags.of("server", alarm.who()), alarm.ageMs() / 1e3))
                        .toList(),
                true);
        for (Unserved alarm : unserved) {
            Long said = saidAtAgeMs.get(alarm.who());
            if (said == null || alarm.ageMs() >= 2 * said) {
                saidAtAgeMs.put(alarm.who(), alarm.ageMs());
                LOG.warn("published but not served: {}", alarm.detail());
            }
        }
        saidAtAgeMs.keySet().removeIf(who -> {
            boolean over = unserved.stream().noneMatch(alarm -> alarm.who().equals(who));
            if (over) {
                LOG.info("the alarm about {} is over", who);
            }
            return over;
        });
    }

    private void failed(Exception e) {
        failures++;
        if (Long.bitCount(failures) == 1 && !closed) { // the 1st, 2nd, 4th, 8th...
            LOG.warn("retention of versions failed, {} times so far: {}", failures, e.getMessage());
        }
    }

    @Override
    public void close() {
        closed = true;
        synchronized (this) {
            notifyAll();
        }
        try {
            thread.join(2 * LIMIT.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (thread.isAlive()) {
            LOG.warn("the thread for version retention did not end within {} ms", 2 * LIMIT.toMillis());
        }
        unservedSeconds.register(List.of(), true);
        registry.remove(oldestGauge);
    }

    /**
     * Finds the oldest version that sampled an unscored rollout.
     *
     * <p>Reads rollouts from the scorers' committed offsets on, each once. Holds one number per waiting rollout. Used by one
     * thread.
     */
    static final class UnscoredRollouts implements AutoCloseable {
        private final RunIdentity run;
        private final String scorers;
        private final Admin admin;
        private final LogReader log;
        private final Deserializer<Rollout> rollouts;
        private final List<TopicPartition> partitions;
        private final Map<TopicPartition, NavigableMap<Long, Long>> oldestByOffset = new HashMap<>();

        UnscoredRollouts(LogConnection connection, Admin admin) {
            this.run = connection.run();
            this.scorers = connection.group("scorer");
            this.admin = admin;
            this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
            this.log = new LogReader(connection.as("unscored"));
            this.partitions = log.fromBeginning(connection.topics().rollouts());
            partitions.forEach(partition -> oldestByOffset.put(partition, new TreeMap<>()));
        }

        /**
         * Reads new records and returns the oldest version among the waiting rollouts.
         *
         * @return empty if every rollout on the log is scored
         * @throws TimeoutException if the end was not reached, or the brokers did not answer, within the limit; the
         *     records read so far are kept, and the next call continues from there
         */
        OptionalLong oldestVersion(Duration limit) throws TimeoutException, InterruptedException {
            Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions, limit);
            Map<TopicPartition, OffsetAndMetadata> scored = scored(limit);
            for (TopicPartition partition : partitions) {
                OffsetAndMetadata progress = scored.get(partition);
                if (progress != null) {
                    Objects.requireNonNull(oldestByOffset.get(partition))
                            .headMap(progress.offset())
                            .clear();
                    if (log.position(partition) < progress.offset()) {
                        log.consumer().seek(partition, progress.offset());
                    }
                }
            }
            if (!log.readTo(ends, ReadLimit.within(limit), this::accept)) {
                throw new TimeoutException("the rollouts that wait to be scored were not read within "
                        + limit.toMillis() + " ms; the rest follows");
            }
            return oldestByOffset.values().stream()
                    .flatMap(waiting -> waiting.values().stream())
                    .mapToLong(Long::longValue)
                    .min();
        }

        private Map<TopicPartition, OffsetAndMetadata> scored(Duration limit)
                throws TimeoutException, InterruptedException {
            try {
                return admin.listConsumerGroupOffsets(scorers)
                        .partitionsToOffsetAndMetadata()
                        .get(limit.toMillis(), TimeUnit.MILLISECONDS);
            } catch (ExecutionException e) {
                Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
                throw new IllegalStateException("the scorers' progress cannot be read: " + cause.getMessage(), cause);
            }
        }

        private void accept(ConsumerRecord<byte[], byte[]> record) {
            if (record.value() == null) {
                return;
            }
            try {
                Rollout rollout = rollouts.deserialize(record.topic(), record.value());
                if (run.owns(rollout.getRunId(), rollout.getEpoch())) {
                    rollout.getVersionSpans().stream()
                            .mapToLong(VersionSpan::getVersion)
                            .min()
                            .ifPresent(oldest -> oldestByOffset
                                    .computeIfAbsent(
                                            new TopicPartition(record.topic(), record.partition()),
                                            partition -> new TreeMap<>())
                                    .put(record.offset(), oldest));
                }
            } catch (MalformedRecordException e) {
                return; // no rollout: the topology dead-letters it, and nobody scores it
            }
        }

        @Override
        public void close() {
            log.close();
        }
    }

    /**
     * Removes versions that nothing needs: their weights and optimiser states, and objects that no version names.
     *
     * <p>On topics it deletes everything before the first chunk of the oldest version needed (for weights, of that version's
     * anchor); in an object store, the objects of those versions. Objects that a killed learner put and did not commit are
     * removed once another attempt has made their version. Manifests stay: they are small, and a replay needs them.
     *
     * <p>Idempotent, and decided by committed records alone, so it may stop at any moment. Used by one thread.
     */
    static final class VersionRemoval {
        private static final Logger LOG = LoggerFactory.getLogger(VersionRemoval.class);
        private static final String NOT_REMOVED = "versions-not-removed";
        private static final String NOT_REMOVED_SUBJECT = "learner";

        private final LogConnection connection;
        private final Admin admin;
        private final PolicyFeed feed;
        private final List<ObjectStore> stores;
        private final long limitMs;
        private long removedBefore;

        VersionRemoval(LogConnection connection, Admin admin, PolicyFeed feed, List<ObjectStore> stores, long limitMs) {
            this.connection = connection;
            this.admin = admin;
            this.feed = feed;
            this.stores = stores;
            this.limitMs = limitMs;
        }

        /**
         * Removes everything before the oldest version needed.
         *
         * @param newest newest committed version
         * @return the oldest version whose weights remain
         */
        long remove(RetainedVersions needed, long newest) throws TimeoutException, InterruptedException {
            PolicyVersion oldest; // the checkpoint at or before the oldest version needed
            PolicyVersion anchor;
            try {
                oldest = Checkpoints.atOrBefore(feed::manifest, needed.oldest());
                anchor = feed.manifest(anchorOf(oldest));
            } catch (VersionUnavailableException e) {
                LOG.debug("nothing is removed before version {}: {}", needed.oldest(), e.getMessage());
                return removedBefore; // its manifest is gone
            }
            if (anchor.getVersion() > removedBefore) {
                deleteRecords(anchor.getWeights(), oldest.getOptimizer());
                LOG.info(
                        "removed the weights before version {}{}: {}",
                        anchor.getVersion(),
                        anchor.getVersion() < oldest.getVersion()
                                ? ", the anchor of version " + oldest.getVersion()
                                : "",
                        needed.reason());
            }
            for (ObjectStore store : stores) {
                deleteObjects(store, anchor.getVersion(), oldest.getVersion(), newest);
            }
            removedBefore = Math.max(removedBefore, anchor.getVersion());
            return removedBefore;
        }

        private static long anchorOf(PolicyVersion version) {
            Long anchor = version.getWeights().getAnchorVersion();
            return anchor == null ? version.getVersion() : anchor;
        }

        private void deleteRecords(TensorLocation weights, TensorLocation optimizer)
                throws TimeoutException, InterruptedException {
            Map<TopicPartition, RecordsToDelete> before =
                    new TreeMap<>((a, b) -> a.topic().equals(b.topic())
                            ? Integer.compare(a.partition(), b.partition())
                            : a.topic().compareTo(b.topic()));
            for (TensorLocation location : new TensorLocation[] {weights, optimizer}) {
                if (location != null && location.getUri() == null) {
                    before.put(
                            new TopicPartition(location.getTopic(), location.getPartition()),
                            RecordsToDelete.beforeOffset(location.getFirstOffset()));
                }
            }
            try {
                admin.deleteRecords(before).all().get(limitMs, TimeUnit.MILLISECONDS);
                connection.alarms().lower(NOT_REMOVED, NOT_REMOVED_SUBJECT);
            } catch (ExecutionException e) {
                Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
                if (cause instanceof AuthorizationException) {
                    raise();
                }
                throw new IllegalStateException(
                        "chunks of old versions cannot be removed from " + before.keySet() + ": " + cause.getMessage(),
                        cause);
            }
        }

        private void raise() {
            Right right = new Right(
                    ResourceType.TOPIC,
                    PatternType.LITERAL,
                    List.of(connection.topics().weights(), connection.topics().optimizerState()),
                    List.of(AclOperation.DELETE));
            connection
                    .alarms()
                    .raise(
                            NOT_REMOVED,
                            NOT_REMOVED_SUBJECT,
                            "unused versions stay on the log beyond weights.keep_versions: the learner's account"
                                    + " lacks " + right,
                            right.command(
                                    String.valueOf(connection.clientProperties().get("bootstrap.servers")),
                                    Right.ANYBODY));
        }

        private void deleteObjects(ObjectStore from, long oldestWeights, long oldestOptimizer, long newest) {
            try {
                Set<String> named = new HashSet<>();
                for (long version = oldestWeights; version <= newest; version++) {
                    PolicyVersion manifest = feed.manifest(version);
                    named.add(manifest.getWeights().getUri());
                    named.add(
                            manifest.getOptimizer() == null
                                    ? null
                                    : manifest.getOptimizer().getUri());
                }
                for (URI uri : from.list(VersionObject.prefix(connection.run()))) {
                    Optional<VersionObject> object = VersionObject.parse(from.nameOf(uri));
                    if (object.isPresent() && object.get().version() <= newest) {
                        boolean old = object.get().version()
                                < (object.get().part() == VersionObject.Part.WEIGHTS ? oldestWeights : oldestOptimizer);
                        if (old || !named.contains(uri.toString())) {
                            from.delete(uri);
                            LOG.debug("removed {}: {}", uri, old ? "no longer needed" : "no version references it");
                        }
                    }
                }
            } catch (VersionUnavailableException e) {
                LOG.warn("removes no object of {}: cannot read which are referenced: {}", from, e.getMessage());
            } catch (IOException e) {
                throw new IllegalStateException("objects of old versions cannot be removed from " + from + ": " + e, e);
            }
        }
    }

    /**
     * Finds servers and roles that do not serve published versions.
     *
     * <p>A server at version s is late by the age of version s+1; a role without a server, since its last one left. Ages count
     * from the publication or from the start of this watch, whichever is later. Used by one thread.
     */
    static final class UnservedVersions {
        private final long limitMs;
        private final long watchedSinceMs;
        private final Map<ServerRole, Long> seenMs = new EnumMap<>(ServerRole.class);

        /**
         * One alarm.
         *
         * @param who     server, or role without a server
         * @param version first version that it does not serve
         */
        record Unserved(String who, long version, long ageMs, String detail) {}

        UnservedVersions(long limitMs, long watchedSinceMs) {
            this.limitMs = limitMs;
            this.watchedSinceMs = watchedSinceMs;
        }

        /**
         * @param publishedAtMs publication time of a version up to {@code newest}; 0 if unknown
         * @return late servers, then roles
         */
        List<Unserved> find(long newest, Collection<Server> servers, LongUnaryOperator publishedAtMs, long nowMs) {
            List<Unserved> found = new ArrayList<>();
            for (Server server : servers) {
                long missing = server.version() + 1;
                long age = missing > newest ? -1 : age(publishedAtMs.applyAsLong(missing), nowMs);
                if (age > limitMs) {
                    found.add(new Unserved(
                            server.name(),
                            missing,
                            age,
                            server.name() + " serves version " + server.version()
                                    + ", but version " + missing + " could be served for " + age / 1000
                                    + " s; the newest is " + newest
                                    + ", and its last heartbeat was " + Math.max(0, nowMs - server.heardMs()) / 1000
                                    + " s ago"));
                }
            }
            for (ServerRole role : List.of(ServerRole.GENERATOR, ServerRole.SCORER)) {
                if (servers.stream().anyMatch(server -> server.role() == role)) {
                    seenMs.put(role, nowMs);
                    continue;
                }
                long age = age(Math.max(publishedAtMs.applyAsLong(0), seenMs.getOrDefault(role, 0L)), nowMs);
                if (age > limitMs) {
                    String name = role.name().toLowerCase(Locale.ROOT);
                    found.add(new Unserved(
                            "no " + name,
                            0,
                            age,
                            "no " + name + " serves any version; the newest is " + newest + ", and none did for "
                                    + age / 1000 + " s"));
                }
            }
            return found;
        }

        private long age(long sinceMs, long nowMs) {
            return nowMs - Math.max(sinceMs, watchedSinceMs);
        }
    }

    /** Reads the topic {@code serving}: the version that each server uses. Used by one thread. */
    static final class ServingVersions implements AutoCloseable {
        private static final Logger LOG = LoggerFactory.getLogger(ServingVersions.class);

        private final RunIdentity run;
        private final LogReader log;
        private final Deserializer<Serving> servings;
        private final ServerBoard board = new ServerBoard(System::nanoTime);
        private final Clock clock;
        private final List<TopicPartition> partitions;

        ServingVersions(LogConnection connection, Clock clock) {
            this.clock = clock;
            this.run = connection.run();
            this.servings = AvroSerde.of(Serving.class, connection.registry()).deserializer();
            this.log = new LogReader(connection.as("serving"));
            this.partitions = log.fromBeginning(connection.topics().serving());
        }

        /** Reads new records up to the log's end at the time of the call, or until the limit has passed. */
        void update(Duration limit) {
            log.readTo(log.consumer().endOffsets(partitions), ReadLimit.within(limit), this::accept);
        }

        private void accept(ConsumerRecord<byte[], byte[]> record) {
            if (record.value() == null) {
                return;
            }
            try {
                Serving serving = servings.deserialize(record.topic(), record.value());
                if (!run.owns(serving.getRunId(), serving.getEpoch())
                        || !run.policyId().equals(serving.getPolicyId())) {
                    return; // of an older epoch
                }
                Server server = Server.of(serving);
                if (serving.getLeft()) {
                    board.left(server);
                } else {
                    board.hear(server, clock.millis());
                }
            } catch (MalformedRecordException e) {
                LOG.warn("skipped {}-{}@{}: {}", record.topic(), record.partition(), record.offset(), e.getMessage());
            }
        }

        /** Live servers. */
        Collection<Server> servers() {
            return board.servers();
        }

        @Override
        public void close() {
            log.close();
        }

        /**
         * The last heartbeat of each server.
         *
         * <p>Removes a server when it leaves, or {@value #FORGOTTEN_AFTER_MS} ms after its last heartbeat, with a warning: until
         * then it may only hang. The age of a heartbeat is read off its timestamp once, at least 0, and then grows by a monotonic
         * clock. Used by one thread.
         */
        static final class ServerBoard {
            private static final Logger LOG = LoggerFactory.getLogger(ServerBoard.class);
            static final long FORGOTTEN_AFTER_MS = 300_000;

            private final LongSupplier nanos;
            private final Map<String, Heard> heard = new LinkedHashMap<>();

            /** @param saidNanos when, on the monotonic clock */
            private record Heard(Server server, long saidNanos) {}

            /** @param nanos a clock that only runs forward, such as {@link System#nanoTime} */
            ServerBoard(LongSupplier nanos) {
                this.nanos = nanos;
            }

            /** @param nowMs the current time on the clock that dates the servers' messages */
            void hear(Server server, long nowMs) {
                long ageMs = Math.max(0, nowMs - server.heardMs());
                heard.put(server.name(), new Heard(server, nanos.getAsLong() - TimeUnit.MILLISECONDS.toNanos(ageMs)));
            }

            void left(Server server) {
                heard.remove(server.name());
            }

            /** Servers with a recent heartbeat. */
            Collection<Server> servers() {
                long now = nanos.getAsLong();
                heard.values().removeIf(last -> {
                    long silentMs = TimeUnit.NANOSECONDS.toMillis(now - last.saidNanos());
                    boolean forgotten = silentMs > FORGOTTEN_AFTER_MS;
                    if (forgotten) {
                        LOG.warn(
                                "the last heartbeat of {} was {} s ago, serving version {}; stops waiting for it"
                                        + " and keeping versions for it",
                                last.server().name(),
                                silentMs / 1000,
                                last.server().version());
                    }
                    return forgotten;
                });
                return heard.values().stream().map(Heard::server).toList();
            }
        }
    }

    /**
     * The versions that are needed: the oldest version and all later ones, if it
     *
     * <ul>
     *   <li>is among the newest {@code keep_versions},
     *   <li>is served, or has a sequence in flight that will be scored under it,
     *   <li>sampled a rollout that is not scored yet,
     *   <li>is a fixed policy that a restart loads, such as the reference of a KL term,
     *   <li>is the best version on held-out prompts.
     * </ul>
     *
     * <p>A scored rollout no longer needs weights: its log-probs are in its score.
     *
     * @param oldest the oldest version that is needed, at least 0
     * @param reason why that version is needed, as a clause
     */
    record RetainedVersions(long oldest, String reason) {

        /**
         * @param newest   newest published version
         * @param keep     how many of the newest are kept in any case, at least 1
         * @param servers  those that may still be alive
         * @param fixed    versions that fixed policies are, such as the reference of a KL term
         * @param unscored oldest version of a rollout that is not scored yet
         * @param best     version with the highest reward on held-out prompts so far
         */
        static RetainedVersions of(
                long newest,
                int keep,
                Collection<Server> servers,
                Collection<Long> fixed,
                OptionalLong unscored,
                OptionalLong best) {
            RetainedVersions needed =
                    new RetainedVersions(Math.max(0, newest - keep + 1), "the newest " + keep + " are kept");
            for (Server server : servers) {
                needed = needed.orOlder(
                        server.oldestVersion(),
                        server.name()
                                + (server.role() == ServerRole.EVALUATOR
                                        ? " evaluates it"
                                        : server.oldestVersion() < server.version()
                                                ? " has a sequence of it in flight"
                                                : " serves it"));
            }
            for (long version : fixed) {
                needed = needed.orOlder(version, "a fixed policy is that version");
            }
            if (best.isPresent()) {
                needed = needed.orOlder(best.getAsLong(), "it is the best on held-out prompts");
            }
            return unscored.isPresent()
                    ? needed.orOlder(unscored.getAsLong(), "a rollout of it is not scored yet")
                    : needed;
        }

        private RetainedVersions orOlder(long version, String why) {
            return version < oldest ? new RetainedVersions(Math.max(0, version), why) : this;
        }
    }
}
