package dev.millrace.chaos.check;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.chaos.observe.Holdings;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.report.RetrainRecord;
import dev.millrace.replay.retrain.Retraining;
import dev.millrace.replay.retrain.Variant;
import dev.millrace.replay.retrain.VersionInterval;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * What the log must say when the faults are over and the roles have stopped.
 *
 * <p>Owned by one thread.
 */
public final class EndChecks {
    private static final Duration PATIENCE = Duration.ofMinutes(1);
    private static final String MEMORY =
            "live heap, resident memory, threads and file handles are back where they were";

    /**
     * A place on the log at which something was put that nobody should write.
     *
     * @param topic with the run's prefix
     */
    public record Place(String topic, int partition, long offset) {}

    private final LogConnection connection;
    private final MillraceConfig config;
    private final Set<Place> injected;
    private final int groupSize;
    private final List<Check> checks = new ArrayList<>();
    private long rollouts;
    private long repeated;
    private long lost;

    /**
     * @param injected what was put on the log by the faults themselves
     * @param groupSize samples of each prompt
     */
    public EndChecks(LogConnection connection, MillraceConfig config, Set<Place> injected, int groupSize) {
        this.groupSize = groupSize;
        this.connection = connection;
        this.config = config;
        this.injected = Set.copyOf(injected);
    }

    /**
     * Looks at all of it.
     *
     * @param settledBeforeMs rollouts older than this must have come to their end
     */
    public List<Check> all(long settledBeforeMs) {
        versions();
        Account account = new LedgerReader(connection).read(PATIENCE);
        ledger(account.balance(), settledBeforeMs);
        steps(account.steps());
        rollouts();
        deadLetters();
        again();
        return List.copyOf(checks);
    }

    /** Samples that were released and never came. */
    public long lost() {
        return lost;
    }

    /** Rollouts of the run that are on the log. */
    public long rolloutsSeen() {
        return rollouts;
    }

    /** Of these, how many have the name of an earlier one. */
    public long repeated() {
        return repeated;
    }

    private void check(String promise, boolean isHeld, String seen) {
        checks.add(new Check(promise, isHeld, seen));
    }

    private boolean isInjected(ConsumerRecord<byte[], byte[]> record) {
        return injected.contains(new Place(record.topic(), record.partition(), record.offset()));
    }

    private <T extends SpecificRecord> Optional<T> read(
            Deserializer<T> deserializer, ConsumerRecord<byte[], byte[]> record) {
        if (record.value() == null || isInjected(record)) {
            return Optional.empty();
        }
        try {
            return Optional.ofNullable(deserializer.deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException garbage) {
            return Optional.empty();
        }
    }

    private interface Reader {
        void take(ConsumerRecord<byte[], byte[]> record);
    }

    private void scan(String topic, Reader reader) {
        try (TopicScan scan = new TopicScan(connection, PATIENCE)) {
            ConsistentCut cut = scan.cut(List.of(topic));
            scan.read(topic, cut, reader::take);
        }
    }

    private void versions() {
        Deserializer<PolicyVersion> manifests =
                AvroSerde.of(PolicyVersion.class, connection.registry()).deserializer();
        List<String> wrong = new ArrayList<>();
        long[] next = {0};
        scan(
                connection.topics().policyVersions(),
                record -> read(manifests, record).ifPresent(manifest -> {
                    long version = manifest.getVersion();
                    if (version != next[0] || version > 0 && manifest.getParentVersion() != version - 1) {
                        wrong.add("version " + version + " of parent " + manifest.getParentVersion() + " at offset "
                                + record.offset() + " where " + next[0] + " was due");
                    }
                    next[0] = Math.max(next[0], version + 1);
                }));
        check(
                "each version is published once, and follows its parent",
                wrong.isEmpty() && next[0] > 0,
                wrong.isEmpty() ? next[0] + " versions" : wrong.size() + " do not, the first: " + wrong.get(0));
    }

    private void ledger(Balance balance, long settledBeforeMs) {
        Tally all = balance.all();
        check(
                "the ledger adds up to the record",
                balance.addsUp(),
                balance.addsUp()
                        ? all.generated() + " generated = " + all.trained() + " trained + " + sum(all.masked())
                                + " masked + " + sum(all.dropped()) + " dropped + " + sum(all.deadLettered())
                                + " dead-lettered + "
                                + (all.waitingForScore() + all.waitingForBatch() + all.waitingForStep()) + " in flight"
                        : balance.contradictionCount() + " contradictions, the first: "
                                + balance.contradictions().stream().findFirst().orElse("the sums differ"));
        List<String> old = balance.oldestWaiting().stream()
                .filter(waiting -> waiting.sinceMs() < settledBeforeMs)
                .map(waiting -> waiting.rolloutId() + " waits for " + waiting.stage() + " since "
                        + (settledBeforeMs - waiting.sinceMs()) / 1_000 + " s before the calm")
                .toList();
        check(
                "no rollout is left over from before the last calm",
                old.isEmpty() && balance.gaps().isEmpty(),
                old.isEmpty() && balance.gaps().isEmpty()
                        ? "none"
                        : String.join("; ", old) + String.join("; ", balance.gaps()));
    }

    private static long sum(Map<String, Long> reasons) {
        return reasons.values().stream().mapToLong(Long::longValue).sum();
    }

    private void steps(List<TrainingStep> steps) {
        Set<Long> batches = new HashSet<>();
        List<String> twice = new ArrayList<>();
        double staleness = 0;
        for (TrainingStep step : steps) {
            if (!batches.add(step.getBatchId())) {
                twice.add("batch " + step.getBatchId() + " for version " + step.getVersion());
            }
            staleness = Math.max(staleness, ((Number) step.getStalenessMax()).doubleValue());
        }
        check(
                "no batch is trained on twice",
                twice.isEmpty() && !steps.isEmpty(),
                twice.isEmpty() ? steps.size() + " steps" : String.join(", ", twice));
        int eta = config.admission().eta();
        check(
                "staleness stays within its bound",
                staleness <= eta,
                String.format(Locale.ROOT, "at most %.0f versions, eta is %d", staleness, eta));
    }

    private void rollouts() {
        Deserializer<Rollout> decoder =
                AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Integer> came = new HashMap<>();
        scan(
                connection.topics().rollouts(),
                record -> read(decoder, record).ifPresent(rollout -> {
                    if (counts.merge(rollout.getRolloutId(), 1, Integer::sum) == 1) {
                        came.merge(rollout.getGroupId(), 1, Integer::sum);
                    }
                }));
        rollouts = counts.values().stream().mapToLong(Integer::longValue).sum();
        repeated = rollouts - counts.size();
        check("no rollout is written twice", repeated == 0, repeated + " of " + rollouts);
        Map<String, Integer> missing = new TreeMap<>();
        scan(connection.topics().prompts(), record -> {
            if (record.key() != null && record.value() != null && !isInjected(record)) {
                missing.put(new String(record.key(), StandardCharsets.UTF_8), groupSize);
            }
        });
        int released = missing.size() * groupSize;
        came.forEach((prompt, samples) -> missing.computeIfPresent(prompt, (id, all) -> all - samples));
        missing.values().removeIf(left -> left <= 0);
        lost = missing.values().stream().mapToLong(Integer::longValue).sum();
        check(
                "every sample that was released came",
                lost == 0,
                lost == 0 ? released + " released" : lost + " of " + released + " did not, by prompt: " + missing);
    }

    private void deadLetters() {
        Map<String, Integer> unasked = new TreeMap<>();
        int[] all = {0};
        scan(connection.topics().deadLetters(), record -> {
            if (RedriveMark.of(record).isPresent() || isInjected(record)) {
                return;
            }
            all[0]++;
            String topic = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
            String partition = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_PARTITION);
            String offset = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_OFFSET);
            boolean isOfInjected = partition.matches("\\d{1,9}")
                    && offset.matches("\\d{1,18}")
                    && injected.contains(new Place(topic, Integer.parseInt(partition), Long.parseLong(offset)));
            if (!isOfInjected) {
                unasked.merge(
                        topic + " " + DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON),
                        1,
                        Integer::sum);
            }
        });
        check(
                "dead letters are only what was injected",
                unasked.isEmpty(),
                unasked.isEmpty()
                        ? all[0] + " dead letters of " + injected.size() + " records that nobody should write"
                        : unasked.toString());
    }

    private void again() {
        String promise = "the weights equal those learnt again from the run's batches";
        try (LiveRun run = new LiveRun(connection, Optional.empty());
                RecordedVersions versions =
                        new RecordedVersions(run, config.weights().store())) {
            VersionInterval steps = VersionInterval.of(
                    versions.oldest().orElse(0), versions.newest().orElse(0), versions);
            RetrainRecord found = new RetrainRecord(List.of("recorded"));
            new Retraining(
                            run,
                            versions,
                            new Engine(Device.parse(config.run().device()), 1),
                            List.of(new Variant(
                                    "recorded",
                                    config.algorithm(),
                                    config.learner().step())),
                            Optional.empty(),
                            Optional.empty(),
                            Integer.MAX_VALUE)
                    .replay(steps, found);
            check(
                    promise,
                    found.parted().isEmpty(),
                    found.parted().isEmpty()
                            ? "bit for bit, " + (steps.to() - steps.from()) + " steps"
                            : "they part at version " + found.parted().getAsLong());
        } catch (RuntimeException e) {
            check(promise, false, "they could not be learnt again: " + e.getMessage());
        }
    }

    /** The check of what the processes hold. */
    public static Check holdings(List<Holdings.Change> changes) {
        List<String> grown = Growth.of(changes);
        long heaps = changes.stream().filter(change -> change.live() != null).count();
        return new Check(
                MEMORY,
                grown.isEmpty(),
                grown.isEmpty()
                        ? changes.size() + " processes looked at, the live heap of " + heaps
                        : String.join("; ", grown));
    }
}
