package dev.millrace.audit.ledger;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Which batches were made and which of them were trained on, and whether the two tell the same: every batch once, in a row
 * without a gap, and every step on a batch that is there, with as many rollouts. What contradicts is told the ledger, and so is
 * what became of every rollout of a batch. Steps come first, then batches, then {@link #check}.
 *
 * <p>A record that is there once more, word for word, is a copy: the roles pass it over, and here it is counted as one. So is a
 * batch or step before the first that the log still has, for both are written in their order: a copy of what was deleted; and a
 * batch without a step whose rollouts earlier batches have, all of them.
 */
final class TrainedBatches {
    private final Ledger ledger;
    private final boolean lostSteps;
    private final boolean lostBatches;
    private final Map<Name, TrainingStep> trained = new HashMap<>();
    private final Map<Name, StepWords> words = new HashMap<>();
    private final Map<Name, Integer> assembled = new HashMap<>();
    /** Of the first record of each name. */
    private final Map<Name, RecordDigest> stepDigests = new HashMap<>();

    private final Map<Name, RecordDigest> batchDigests = new HashMap<>();
    /** The first that is kept of each epoch, in the order of the log. */
    private final Map<Integer, Long> firstSteps = new HashMap<>();

    private final Map<Integer, Long> lastSteps = new HashMap<>();
    /** Batches without their step, in the order of the log. */
    private final List<Name> lostInBetween = new ArrayList<>();

    private final Map<Integer, Long> firstBatches = new HashMap<>();
    private final String stepTopic;
    private final String batchTopic;

    private record Name(int epoch, long batchId) {
        @Override
        public String toString() {
            return batchId + (epoch == 0 ? "" : " of epoch " + epoch);
        }
    }

    /**
     * @param stepTopic   how copies of steps are to be called
     * @param lostSteps   whether the log has deleted its first steps
     * @param batchTopic  how copies of batches are to be called
     * @param lostBatches whether it has deleted its first batches
     */
    TrainedBatches(Ledger ledger, String stepTopic, boolean lostSteps, String batchTopic, boolean lostBatches) {
        this.ledger = ledger;
        this.stepTopic = stepTopic;
        this.batchTopic = batchTopic;
        this.lostSteps = lostSteps;
        this.lostBatches = lostBatches;
    }

    /** @param digest of the record that says it */
    void step(TrainingStep step, RecordDigest digest) {
        Name name = new Name(step.getEpoch(), step.getBatchId());
        RecordDigest before = stepDigests.putIfAbsent(name, digest);
        if (digest.equals(before) || isBefore(firstSteps, name) && lostSteps) {
            ledger.copy(stepTopic);
            return;
        }
        if (trained.putIfAbsent(name, withoutEntries(step)) != null) {
            ledger.contradict("batch " + name + " was trained on twice, to version "
                    + trained.get(name).getVersion() + " and to version " + step.getVersion());
            return;
        }
        lastSteps.merge(name.epoch(), name.batchId(), Math::max);
        if (step.getEntries() != null) {
            words.put(name, StepWords.of(step.getEntries()));
        }
    }

    /** One for each rollout is kept otherwise. */
    private static TrainingStep withoutEntries(TrainingStep step) {
        return step.getEntries() == null
                ? step
                : TrainingStep.newBuilder(step).setEntries(null).build();
    }

    /** Whether the log began with a later one. */
    private static boolean isBefore(Map<Integer, Long> firsts, Name name) {
        Long first = firsts.putIfAbsent(name.epoch(), name.batchId());
        return first != null && name.batchId() < first;
    }

    /**
     * @param at where the batch is on the log
     * @param digest of the record that says it
     */
    void batch(LearnerBatch batch, String at, RecordDigest digest) {
        Name name = new Name(batch.getEpoch(), batch.getBatchId());
        RecordDigest before = batchDigests.putIfAbsent(name, digest);
        if (digest.equals(before) || isBefore(firstBatches, name) && lostBatches) {
            ledger.copy(batchTopic);
            return;
        }
        if (!trained.containsKey(name) && !assembled.containsKey(name) && isWhollyOfOthers(batch)) {
            ledger.copy(batchTopic); // under an id of its own: the learner refuses it
            return;
        }
        if (assembled.putIfAbsent(name, batch.getEntries().size()) != null) {
            ledger.contradict("there are two batches " + name + ", the second at " + at);
        }
        if (isSkipped(name)) {
            return; // outcomes say what became of its rollouts
        }
        boolean isStepLost = !trained.containsKey(name) && wasPassed(name);
        if (isStepLost) {
            lostInBetween.add(name);
        }
        boolean stepped = trained.containsKey(name) || isStepLost || wasTrainedBeforeTheLogBegins(name);
        StepWords anew = words.get(name);
        for (int i = 0; i < batch.getEntries().size(); i++) {
            BatchEntry entry = batch.getEntries().get(i);
            String maskedBy =
                    entry.getTrainedTokens() > 0 ? null : entry.getMaskedBy() == null ? "" : entry.getMaskedBy();
            if (anew != null && i < anew.size()) {
                maskedBy = anew.maskedBy(i); // the learner has the last word
            }
            ledger.batched(
                    entry.getRolloutPartition(), entry.getRolloutOffset(), batch.getBatchId(), maskedBy, stepped);
        }
    }

    /** Whether batches before it have every rollout of it. */
    private boolean isWhollyOfOthers(LearnerBatch batch) {
        return !batch.getEntries().isEmpty()
                && batch.getEntries().stream()
                        .allMatch(entry -> ledger.isBatched(entry.getRolloutPartition(), entry.getRolloutOffset()));
    }

    /** Batches are trained on in their order, so one before a later step of its epoch has had its step, and the log has lost that. */
    private boolean wasPassed(Name name) {
        return name.batchId() < lastSteps.getOrDefault(name.epoch(), Long.MIN_VALUE)
                && name.batchId() >= firstSteps.getOrDefault(name.epoch(), Long.MIN_VALUE);
    }

    /** What the log no longer tells of steps, though it has later ones; one sentence each. */
    List<String> gaps() {
        return lostInBetween.stream()
                .map(name -> "the step on batch " + name
                        + " is lost, and later ones are there; its rollouts count as the batch says")
                .toList();
    }

    /** Batches are trained on in their order, so one before the first step that is kept has had its step. */
    private boolean wasTrainedBeforeTheLogBegins(Name name) {
        return lostSteps
                && trained.keySet().stream()
                        .filter(step -> step.epoch() == name.epoch())
                        .allMatch(step -> step.batchId() > name.batchId());
    }

    /** Steps and batches against each other, when all of both are known. */
    void check() {
        trained.forEach((name, step) -> {
            Integer entries = assembled.get(name);
            int inStep = step.getRolloutsTrained() + step.getRolloutsMasked();
            if (entries == null) {
                if (!lostBatches && !isSkipped(name)) {
                    ledger.contradict("version " + step.getVersion() + " was made from batch " + name
                            + ", which is not on the log");
                }
            } else if (entries != inStep && !isSkipped(name)) {
                ledger.contradict(
                        "batch " + name + " has " + entries + " rollouts, and the step on it counted " + inStep);
            }
        });
        Map<Integer, Long> firsts = new HashMap<>();
        assembled.keySet().forEach(name -> firsts.merge(name.epoch(), name.batchId(), Math::min));
        for (Name name : assembled.keySet()) {
            if (name.batchId() > Objects.requireNonNull(firsts.get(name.epoch()))
                    && !assembled.containsKey(new Name(name.epoch(), name.batchId() - 1))
                    && !isSkipped(new Name(name.epoch(), name.batchId() - 1))) {
                ledger.contradict("batch " + name + " is on the log, and the one before it is not");
            }
        }
    }

    /** Whether a batch was given up since the log has lost it, or what it names, which leaves a starved step without a rollout. */
    private boolean isSkipped(Name name) {
        TrainingStep step = trained.get(name);
        return step != null && step.getStarved() && step.getRolloutsTrained() + step.getRolloutsMasked() == 0;
    }

    /** The steps, without what each says of single rollouts, in their order. */
    List<TrainingStep> steps() {
        List<TrainingStep> inOrder = new ArrayList<>(trained.values());
        inOrder.sort(Comparator.comparingInt(TrainingStep::getEpoch).thenComparingLong(TrainingStep::getBatchId));
        return inOrder;
    }

    /**
     * What became of each entry of a batch by its step, in one byte an entry.
     *
     * @param codes 0 for an entry that was trained on, else one more than the place of its stage in {@code stages}
     * @param stages that masked the last token of one; empty for an entry that had none to begin with
     */
    record StepWords(byte[] codes, List<String> stages) {
        private static final int MOST_STAGES = 126;
        private static final String OTHER = "other";

        static StepWords of(List<StepEntry> entries) {
            byte[] codes = new byte[entries.size()];
            List<String> stages = new ArrayList<>();
            for (int i = 0; i < codes.length; i++) {
                if (entries.get(i).getTrainedTokens() == 0) {
                    String stage = entries.get(i).getMaskedBy() == null
                            ? ""
                            : entries.get(i).getMaskedBy();
                    String named = stages.contains(stage) || stages.size() < MOST_STAGES ? stage : OTHER;
                    if (!stages.contains(named)) {
                        stages.add(named);
                    }
                    codes[i] = (byte) (1 + stages.indexOf(named));
                }
            }
            return new StepWords(codes, List.copyOf(stages));
        }

        int size() {
            return codes.length;
        }

        /** The stage that masked the last of an entry's tokens, empty if it had none; null if it was trained on. */
        @Nullable
        String maskedBy(int entry) {
            return codes[entry] == 0 ? null : stages.get(codes[entry] - 1);
        }
    }
}
