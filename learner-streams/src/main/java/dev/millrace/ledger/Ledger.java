package dev.millrace.ledger;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Collects what the topics say about rollouts and strikes the {@link Balance}.
 *
 * <p>Entries may arrive in any order; nothing is judged before {@link #balance()}. A rollout is known by its
 * record's place on the log, so that a repetition of the same rollout id is a record of its own. Holds about
 * 200 bytes per rollout. Not thread-safe.
 */
public final class Ledger {
    static final int MAX_CONTRADICTIONS = 20;

    private record Place(int partition, long offset) {
    }

    private enum End { TRAINED, MASKED }

    private final Map<Place, String> rollouts = new HashMap<>();
    private final Map<Place, String> droppedFor = new HashMap<>();
    private final Set<Place> deadLettered = new HashSet<>();
    private final Map<Long, Map<String, End>> batches = new HashMap<>();
    private final Set<Long> steppedBatches = new HashSet<>();
    private final List<String> repeated = new ArrayList<>();
    private long repeatedCount;

    /** A record on the rollouts topic; {@code rolloutId} is empty if it cannot be decoded. */
    public void rollout(int partition, long offset, String rolloutId) {
        rollouts.put(new Place(partition, offset), rolloutId);
    }

    /** An outcome about the rollout record at this place. */
    public void dropped(int partition, long offset, String reason) {
        Place place = new Place(partition, offset);
        String before = droppedFor.put(place, reason);
        if (before != null) {
            repeat("rollouts-" + partition + "@" + offset + " was dropped twice: " + before + " and " + reason);
        }
    }

    /** A dead letter that names this rollout record as its source. */
    public void deadLettered(int partition, long offset) {
        if (!deadLettered.add(new Place(partition, offset))) {
            repeat("rollouts-" + partition + "@" + offset + " was dead-lettered twice");
        }
    }

    /** One entry of a batch. */
    public void batched(long batchId, String rolloutId, boolean trained) {
        End before = batches.computeIfAbsent(batchId, id -> new HashMap<>()).put(rolloutId, trained ? End.TRAINED : End.MASKED);
        if (before != null) {
            repeat("rollout " + rolloutId + " is in batch " + batchId + " twice");
        }
    }

    /** The learner committed the step of this batch. */
    public void stepped(long batchId) {
        if (!steppedBatches.add(batchId)) {
            repeat("batch " + batchId + " was trained on twice");
        }
    }

    private void repeat(String sentence) {
        repeatedCount++;
        if (repeated.size() < MAX_CONTRADICTIONS) {
            repeated.add(sentence);
        }
    }

    /** Strikes the balance over everything collected so far. */
    public Balance balance() {
        List<String> contradictions = new ArrayList<>(repeated);
        long contradictionCount = repeatedCount;
        Map<String, End> ends = new HashMap<>();
        Set<String> queued = new HashSet<>();
        for (Map.Entry<Long, Map<String, End>> batch : batches.entrySet()) {
            for (Map.Entry<String, End> entry : batch.getValue().entrySet()) {
                boolean second = steppedBatches.contains(batch.getKey())
                    ? ends.put(entry.getKey(), entry.getValue()) != null || queued.contains(entry.getKey())
                    : !queued.add(entry.getKey()) || ends.containsKey(entry.getKey());
                if (second) {
                    contradictionCount++;
                    add(contradictions, "rollout " + entry.getKey() + " is in two batches");
                }
            }
        }
        Set<String> missing = new HashSet<>(ends.keySet());
        missing.addAll(queued);
        long trained = 0;
        long masked = 0;
        long dead = 0;
        long inFlight = 0;
        Map<String, Long> dropped = new TreeMap<>();
        for (Map.Entry<Place, String> rollout : rollouts.entrySet()) {
            Place place = rollout.getKey();
            String reason = droppedFor.get(place);
            if (deadLettered.contains(place)) {
                dead++;
                if (reason != null) {
                    contradictionCount++;
                    add(contradictions, at(place) + " was dead-lettered and dropped (" + reason + ")");
                }
            } else if (reason != null) {
                dropped.merge(reason, 1L, Long::sum);
            } else if (missing.remove(rollout.getValue())) {
                if (!ends.containsKey(rollout.getValue())) {
                    inFlight++;
                } else if (ends.get(rollout.getValue()) == End.TRAINED) {
                    trained++;
                } else {
                    masked++;
                }
            } else {
                inFlight++;
            }
        }
        for (String id : missing) {
            contradictionCount++;
            add(contradictions, "rollout " + id + " is in a batch but not, or not any more, open on the rollouts topic");
        }
        return new Balance(rollouts.size(), trained, masked, dropped, dead, inFlight, contradictions, contradictionCount);
    }

    private static String at(Place place) {
        return "rollouts-" + place.partition() + "@" + place.offset();
    }

    private static void add(List<String> contradictions, String sentence) {
        if (contradictions.size() < MAX_CONTRADICTIONS) {
            contradictions.add(sentence);
        }
    }
}
