package dev.millrace.chaos.check;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.chaos.loss.Lost;
import dev.millrace.chaos.observe.Holdings;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
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

    private static final String QUARANTINED = "quarantined";
    private static final String WRONG_EPOCH = "wrong-epoch";

    private final LogConnection connection;
    private final MillraceConfig config;
    private final Set<Place> injected;
    private final List<Lost> losses;
    private final int groupSize;
    private final Set<Place> refused = new HashSet<>();
    private final List<Check> checks = new ArrayList<>();
    private int newestEpoch;
    private long rollouts;
    private long repeated;
    private long lost;

    /**
     * @param injected what was put on the log by the faults themselves
     * @param losses what the log has lost
     * @param groupSize samples of each prompt
     */
    public EndChecks(
            LogConnection connection, MillraceConfig config, Set<Place> injected, List<Lost> losses, int groupSize) {
        this.losses = List.copyOf(losses);
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
        refused();
        Account account = new LedgerReader(connection).read(PATIENCE);
        checks.addAll(new LedgerChecks(connection.topics(), losses).of(account.balance(), settledBeforeMs));
        steps(account.steps());
        trained(account.steps());
        rollouts();
        try (RunLog now = RunLog.find( // in the epoch that the run is in by now
                connection.clientProperties(), connection.topics(), config.topics(), "")) {
            checks.add(new LearntAgain(now.connection(), config).look(!losses.isEmpty()));
        }
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
        try (TopicScan scan = connection.scan(PATIENCE)) {
            ConsistentCut cut = scan.cut(List.of(topic));
            scan.read(topic, cut, reader::take);
        }
    }

    private void versions() {
        Deserializer<PolicyVersion> manifests =
                AvroSerde.of(PolicyVersion.class, connection.registry()).deserializer();
        List<String> wrong = new ArrayList<>();
        Map<Integer, Long> next = new TreeMap<>();
        Map<String, Place> first = new HashMap<>();
        List<Long> copies = new ArrayList<>();
        scan(
                connection.topics().policyVersions(),
                record -> read(manifests, record).ifPresent(manifest -> {
                    long version = manifest.getVersion();
                    boolean isFirst = manifest.getParentEpoch() != null || version == 0;
                    long due = next.getOrDefault(manifest.getEpoch(), isFirst ? version : 0L);
                    Place before = first.putIfAbsent(
                            manifest.getEpoch() + "/" + version + "/"
                                    + manifest.getWeights().getSha256(),
                            new Place(record.topic(), record.partition(), record.offset()));
                    if (before != null && isMarkerLost(before)) {
                        copies.add(version);
                    } else if (version != due || !isFirst && manifest.getParentVersion() != version - 1) {
                        wrong.add("version " + version + " of parent " + manifest.getParentVersion() + " at offset "
                                + record.offset() + " where " + due + " was due");
                    }
                    next.merge(manifest.getEpoch(), version + 1, Math::max);
                    newestEpoch = Math.max(newestEpoch, manifest.getEpoch());
                }));
        check(
                "each version is published once, and follows its parent",
                wrong.isEmpty() && !next.isEmpty(),
                wrong.isEmpty()
                        ? (next.size() == 1
                                        ? next.values().iterator().next() + " versions"
                                        : "the next of each epoch is " + next)
                                + (copies.isEmpty()
                                        ? ""
                                        : "; there twice with the same weights, since the log lost the end of the transaction: "
                                                + copies)
                        : wrong.size() + " do not, the first: " + wrong.get(0));
    }

    /** Whether the log has lost the marker behind a record: what was committed is open then, and ends with the next transaction. */
    private boolean isMarkerLost(Place of) {
        return losses.stream().anyMatch(cut -> cut.covers(of.topic(), of.partition(), of.offset() + 1));
    }

    private void steps(List<TrainingStep> steps) {
        Set<List<Long>> batches = new HashSet<>();
        List<String> twice = new ArrayList<>();
        double staleness = 0;
        for (TrainingStep step : steps) {
            if (!batches.add(List.of((long) step.getEpoch(), step.getBatchId()))) {
                twice.add("batch " + step.getBatchId() + " for version " + step.getVersion());
            }
            Number most = step.getStalenessMax(); // none of a batch that was given up
            staleness = Math.max(staleness, most == null ? 0 : most.doubleValue());
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

    private void trained(List<TrainingStep> steps) {
        Set<List<Long>> taken = new HashSet<>();
        steps.stream()
                .filter(step -> !step.getStarved())
                .forEach(step -> taken.add(List.of((long) step.getEpoch(), step.getBatchId())));
        Set<List<Long>> read = new HashSet<>();
        Map<String, Long> trained = new HashMap<>();
        Deserializer<LearnerBatch> decoder =
                AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
        scan(
                connection.topics().batches(),
                record -> read(decoder, record).ifPresent(batch -> {
                    List<Long> id = List.of((long) batch.getEpoch(), batch.getBatchId());
                    if (taken.contains(id) && read.add(id)) {
                        batch.getEntries().stream()
                                .filter(entry -> entry.getTrainedTokens() > 0)
                                .forEach(entry ->
                                        trained.merge(batch.getEpoch() + "/" + entry.getRolloutId(), 1L, Long::sum));
                    }
                }));
        List<String> twice = trained.entrySet().stream()
                .filter(entry -> entry.getValue() > 1)
                .map(Map.Entry::getKey)
                .sorted()
                .toList();
        check(
                "no sample is trained on twice",
                twice.isEmpty(),
                twice.isEmpty() ? trained.size() + " trained on" : twice.size() + " are, the first: " + twice.get(0));
    }

    /** By sample; of one that was released again, as of a generator in quarantine or where the log has lost it, more may come. */
    private void rollouts() {
        Deserializer<PromptRequest> prompts =
                AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
        Map<String, Integer> releases = new TreeMap<>();
        Set<String> superseded = new HashSet<>();
        scan(
                connection.topics().prompts(),
                record -> read(prompts, record).ifPresent(prompt -> {
                    releases.merge(prompt.getGroupId(), 1, Integer::sum);
                    if (prompt.getEpoch() < newestEpoch) {
                        superseded.add(prompt.getGroupId());
                    }
                }));
        Deserializer<Rollout> decoder =
                AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Set<String>> came = new HashMap<>();
        scan(
                connection.topics().rollouts(),
                record -> read(decoder, record).ifPresent(rollout -> {
                    rollouts++;
                    if (refused.contains(new Place(record.topic(), record.partition(), record.offset()))) {
                        return;
                    }
                    came(came, rollout.getGroupId(), rollout.getRolloutId());
                    int times = counts.merge(rollout.getRolloutId(), 1, Integer::sum);
                    if (times > releases.getOrDefault(rollout.getGroupId(), 1)) {
                        repeated++;
                    }
                }));
        check(
                "no rollout is written twice",
                repeated == 0,
                repeated + " of " + rollouts + (refused.isEmpty() ? "" : ", " + refused.size() + " refused"));
        if (!losses.isEmpty()) {
            settled(came);
        }
        Map<String, Integer> missing = new TreeMap<>();
        releases.keySet().stream()
                .filter(prompt -> !superseded.contains(prompt))
                .forEach(prompt -> {
                    int left = groupSize - came.getOrDefault(prompt, Set.of()).size();
                    if (left > 0) {
                        missing.put(prompt, left);
                    }
                });
        lost = missing.values().stream().mapToLong(Integer::longValue).sum();
        int released = releases.size() * groupSize;
        check(
                "every sample that was released came",
                lost == 0,
                lost == 0 ? released + " released" : lost + " of " + released + " did not, by prompt: " + missing);
    }

    private static void came(Map<String, Set<String>> came, String group, String rollout) {
        came.computeIfAbsent(group, prompt -> new HashSet<>()).add(rollout);
    }

    /** Whose own record is lost has come, too, where it is known what became of it. */
    private void settled(Map<String, Set<String>> came) {
        Deserializer<Outcome> outcomes =
                AvroSerde.of(Outcome.class, connection.registry()).deserializer();
        Deserializer<Trajectory> trajectories =
                AvroSerde.of(Trajectory.class, connection.registry()).deserializer();
        Deserializer<LearnerBatch> batches =
                AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
        scan(
                connection.topics().outcomes(),
                record -> read(outcomes, record)
                        .ifPresent(outcome -> came(came, outcome.getGroupId(), outcome.getRolloutId())));
        scan(
                connection.topics().trajectories(),
                record -> read(trajectories, record)
                        .ifPresent(trajectory -> came(came, trajectory.getGroupId(), trajectory.getRolloutId())));
        scan(
                connection.topics().batches(),
                record -> read(batches, record)
                        .ifPresent(batch -> batch.getEntries()
                                .forEach(entry -> came(came, entry.getGroupId(), entry.getRolloutId()))));
    }

    /** Dead letters, and which rollouts are among them. */
    private void refused() {
        Map<String, Integer> unasked = new TreeMap<>();
        int[] all = {0};
        scan(connection.topics().deadLetters(), record -> {
            if (RedriveMark.of(record).isPresent() || isInjected(record)) {
                return;
            }
            all[0]++;
            String topic = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
            String reason = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON);
            Optional<Place> source = source(record, topic);
            if (source.isPresent()
                    && topic.equals(connection.topics().rollouts())
                    && !injected.contains(source.get())) {
                refused.add(source.get());
            }
            boolean isOfOldEpoch = reason.equals(WRONG_EPOCH) && newestEpoch > 0;
            if (!reason.equals(QUARANTINED)
                    && !isOfOldEpoch
                    && source.filter(injected::contains).isEmpty()) {
                unasked.merge(topic + " " + reason, 1, Integer::sum);
            }
        });
        check(
                "dead letters are only what was injected, or sent by a generator in quarantine",
                unasked.isEmpty(),
                unasked.isEmpty()
                        ? all[0] + " dead letters, " + injected.size() + " records that nobody should write"
                        : unasked.toString());
    }

    private static Optional<Place> source(ConsumerRecord<byte[], byte[]> record, String topic) {
        String partition = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_PARTITION);
        String offset = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_OFFSET);
        return partition.matches("\\d{1,9}") && offset.matches("\\d{1,18}")
                ? Optional.of(new Place(topic, Integer.parseInt(partition), Long.parseLong(offset)))
                : Optional.empty();
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
