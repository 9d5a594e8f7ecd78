package dev.millrace.generator.staleness;

import dev.millrace.generator.staleness.LostSamplesSearch.Asked;
import dev.millrace.generator.staleness.LostSamplesSearch.Found;
import dev.millrace.log.LogConnection;
import dev.millrace.schemas.rollout.SampleName;
import io.micrometer.core.instrument.Counter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Samples under way that nobody will ever see, because the log has lost their request or their rollout: looks for them once they
 * have been under way for too long, and has them released again under their names.
 *
 * <p>They stay under way all the while, so eta is not touched; should a record of one turn up after all, the first one counts and
 * the other is a repetition. The first time it is a warning, when a group is lost again it is an alarm, until that is settled.
 *
 * <p>What is on the log, and yet was neither trained on nor left by three times the limit, is an alarm: the log may have lost what
 * became of it. Confined to admission's thread.
 */
final class LostSamples implements AutoCloseable {
    static final String ALARM = "samples-lost";

    static final String OVERDUE = "samples-overdue";

    private static final Logger LOG = LoggerFactory.getLogger(LostSamples.class);
    /** How often it is looked, of the limit. */
    private static final int LOOKS = 4;

    private final LogConnection connection;
    private final ReleaseAges ages;
    private final LostSamplesSearch search;
    private final Counter counter;
    private final long everyNanos;
    /** Groups of which samples were lost and are under way still. */
    private final Set<String> lostBefore = new HashSet<>();
    /** By partition that has an alarm, the groups that it is about. */
    private final Map<TopicPartition, Set<String>> alarms = new HashMap<>();

    /** Groups that were looked for and found, and those that were twice. */
    private final Set<String> found = new HashSet<>();

    private final Set<String> overdue = new TreeSet<>();

    private Map<TopicPartition, Long> floor = Map.of();
    private long lookedAt = System.nanoTime();

    /**
     * @param limit a sample may be under way for so long before it is looked for
     * @param counter of samples that were lost
     */
    LostSamples(LogConnection connection, Duration limit, Counter counter) {
        this.connection = connection;
        this.ages = new ReleaseAges(limit);
        this.search = new LostSamplesSearch(connection);
        this.counter = counter;
        this.everyNanos = limit.toNanos() / LOOKS;
    }

    /** Begins with what the log said; see {@link ControllerLog#rolloutFloor()}. */
    void begin(Map<TopicPartition, Long> keptFloor) {
        ages.begin(keptFloor);
        floor = keptFloor;
    }

    /** From where on rollouts of samples under way lie, for a restart. */
    Map<TopicPartition, Long> floor() {
        return floor;
    }

    /**
     * Takes what was found, and begins the next search if it is time.
     *
     * @param newestVersion of the policy
     * @param isRead whether admission has read its topics up to these offsets
     */
    void look(ReleasedSamples samples, long newestVersion, Predicate<Map<TopicPartition, Long>> isRead, long nowNanos) {
        Optional<Found> answer = search.found();
        if (answer.isPresent() && isRead.test(answer.get().deadLetterEnds())) {
            search.forget();
            take(answer.get(), samples, nowNanos);
            raiseOverdue(newestVersion);
        }
        if (search.isBusy() || nowNanos - lookedAt < everyNanos) {
            return;
        }
        lookedAt = nowNanos;
        lowerWhatIsOver(samples);
        List<Asked> asked = new ArrayList<>();
        for (AdmittedGroup group : ages.overdue(samples.groupsUnderWay(), nowNanos)) {
            if (samples.wasQuarantined(group.groupId())) {
                samples.becomesDue(group.groupId());
            } else if (group.partition() >= 0) {
                asked.add(new Asked(
                        group.groupId(),
                        group.releases(),
                        new TopicPartition(connection.topics().prompts(), group.partition()),
                        group.offset(),
                        ages.floorOf(group.groupId())));
            }
        }
        floor = ages.floor();
        search.begin(asked);
    }

    private void take(Found answer, ReleasedSamples samples, long nowNanos) {
        ages.ended(answer.rolloutEnds());
        answer.waiting().forEach(request -> ages.looked(request.groupId(), false, nowNanos));
        boolean isSure = answer.removed().isEmpty();
        Map<TopicPartition, List<Asked>> lost = new HashMap<>();
        for (Asked request : answer.gone()) {
            long missing = missing(request, answer.rolloutIds(), samples);
            if (missing > 0) {
                lost.computeIfAbsent(request.partition(), p -> new ArrayList<>())
                        .add(request);
            }
            if (missing > 0 && isSure) {
                counter.increment(missing);
                samples.becomesDue(request.groupId());
                found.remove(request.groupId());
            } else {
                if (missing == 0 && !found.add(request.groupId())) {
                    overdue.add(request.groupId());
                }
                ages.looked(request.groupId(), true, nowNanos);
            }
        }
        lost.forEach((partition, requests) -> say(partition, requests, answer.removed()));
        lost.values().forEach(requests -> requests.forEach(request -> lostBefore.add(request.groupId())));
    }

    private void raiseOverdue(long newestVersion) {
        if (!overdue.isEmpty()) {
            connection
                    .alarms()
                    .raise(
                            OVERDUE,
                            connection.topics().rollouts(),
                            overdue.size() + (overdue.size() == 1 ? " group" : " groups") + ", such as "
                                    + overdue.iterator().next()
                                    + ", under way for three times admission.release_again_after_ms, with rollouts on the log: neither a"
                                    + " batch nor an outcome nor a dead letter has come of them; the log may have lost it, unless"
                                    + " training is that slow",
                            connection.command("rollback --to-version " + newestVersion));
        }
    }

    /** Samples of a request that are under way since that release, and of which there is no rollout. */
    private static long missing(Asked request, Set<String> rolloutIds, ReleasedSamples samples) {
        return samples.underWay(request.groupId())
                .filter(group -> group.releases() == request.releases())
                .map(group -> group.underWay().stream()
                        .filter(sample -> !rolloutIds.contains(new SampleName(request.groupId(), sample).rolloutId()))
                        .count())
                .orElse(0L);
    }

    private void say(TopicPartition partition, List<Asked> requests, String removed) {
        LongSummaryStatistics offsets =
                requests.stream().mapToLong(Asked::offset).summaryStatistics();
        String which = requests.size() == 1
                ? "the request at offset " + offsets.getMin()
                : requests.size() + " requests at offsets " + offsets.getMin() + " to " + offsets.getMax();
        String sentence = "samples of " + which + " of " + partition + ", answered or gone, are not on "
                + connection.topics().rollouts();
        if (!removed.isEmpty()) {
            raise(
                    partition,
                    requests,
                    sentence + "; whether they were there cannot be told, since retention has removed " + removed
                            + ": they stay under way");
        } else if (requests.stream().anyMatch(request -> lostBefore.contains(request.groupId()))) {
            raise(
                    partition,
                    requests,
                    sentence + ": the log has lost them, not for the first time; they are released again each time");
        } else {
            LOG.warn("{}: the log has lost them, and they are released again under their names", sentence);
        }
    }

    private void raise(TopicPartition partition, List<Asked> requests, String sentence) {
        requests.forEach(request ->
                alarms.computeIfAbsent(partition, p -> new HashSet<>()).add(request.groupId()));
        connection.alarms().raise(ALARM, partition.toString(), sentence, connection.command("repair"));
    }

    private void lowerWhatIsOver(ReleasedSamples samples) {
        lostBefore.removeIf(groupId -> samples.underWay(groupId).isEmpty());
        found.removeIf(groupId -> samples.underWay(groupId).isEmpty());
        if (overdue.retainAll(found) && overdue.isEmpty()) {
            connection.alarms().lower(OVERDUE, connection.topics().rollouts());
        }
        alarms.entrySet().removeIf(alarm -> {
            alarm.getValue().retainAll(lostBefore);
            if (alarm.getValue().isEmpty()) {
                connection.alarms().lower(ALARM, alarm.getKey().toString());
            }
            return alarm.getValue().isEmpty();
        });
    }

    @Override
    public void close() {
        search.close();
    }
}
