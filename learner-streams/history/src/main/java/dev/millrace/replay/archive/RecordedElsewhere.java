package dev.millrace.replay.archive;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.stages.DecidedBatch;
import dev.millrace.stages.RecordedFacts;
import dev.millrace.stages.TrajectoryNotes;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Archives steps of another system: a batch per step, a trajectory per sequence.
 *
 * <p>The other system's decisions are unknown, so batches carry those of the given algorithm, and agree with the
 * archive's configuration. Steps come in order, one at a time. Confined to one thread.
 */
public final class RecordedElsewhere {
    private static final Set<StageInput> NOTED = noted();
    /** Tolerance between separate single-precision computations. */
    private static final double AGREEMENT = 1e-3;

    private final BuiltArchive archive;
    private final RunIdentity run;
    private final RunTopics topics;
    private final Algorithm algorithm;
    private final Set<StageInput> everywhere = EnumSet.allOf(StageInput.class);
    private long lastStep = -1;
    private long batches;
    private long sequences;
    private long tokens;
    private long trained;
    private long oldest;
    private long compared;
    private long agreed;
    private double furthest;

    /** @param algorithm recorded for the batches */
    public RecordedElsewhere(BuiltArchive archive, RunIdentity run, RunTopics topics, Algorithm algorithm) {
        this.archive = archive;
        this.run = run;
        this.topics = topics;
        this.algorithm = algorithm;
    }

    private static Set<StageInput> noted() {
        Set<StageInput> noted = EnumSet.noneOf(StageInput.class);
        for (StageInput input : StageInput.values()) {
            if (TrajectoryNotes.isNoted(input)) {
                noted.add(input);
            }
        }
        return noted;
    }

    /**
     * Adds a step.
     *
     * @param step version at its start, ascending
     * @param members sequences in group order, at least one
     * @param isKnown inputs that all of them have in addition to any trajectory's
     * @param advantages of the other system, per member one per response token; null if unknown
     * @param assembledAtMs Unix milliseconds
     * @throws IllegalArgumentException if one lacks an input of the algorithm
     */
    public void step(
            long step,
            List<Trajectory> members,
            Set<StageInput> isKnown,
            List<double @Nullable []> advantages,
            long assembledAtMs) {
        if (step <= lastStep) {
            throw new IllegalArgumentException("step " + step + " comes after step " + lastStep);
        }
        List<BatchEntry> entries = new ArrayList<>(members.size());
        for (Trajectory member : members) {
            long offset =
                    archive.add(topics.trajectories(), member.getGroupId(), Trajectory.class, member, assembledAtMs);
            entries.add(entry(member, offset));
        }
        LearnerBatch undecided = undecided(step, entries, assembledAtMs);
        StageFacts facts = RecordedFacts.of(undecided, members, NOTED);
        Decision decision = algorithm.decide(facts);
        archive.add(
                topics.batches(),
                run.policyId(),
                LearnerBatch.class,
                DecidedBatch.of(
                        run, batches, assembledAtMs, step, entries, List.of(choice(facts)), facts, decision, false),
                assembledAtMs);
        compare(advantages, decision);
        everywhere.retainAll(knownOf(facts, members, isKnown));
        lastStep = step;
        batches++;
        sequences += members.size();
        tokens += facts.tokens().tokenCount();
        trained += facts.tokens().trainedTokens();
        for (BatchEntry entry : entries) {
            oldest = Math.max(oldest, step - entry.getOldestVersion());
        }
    }

    private void compare(List<double @Nullable []> theirs, Decision decision) {
        TokenBatch left = decision.left();
        for (int s = 0; s < theirs.size(); s++) {
            double[] own = theirs.get(s);
            if (own == null) {
                continue;
            }
            double most = 0;
            for (int t = 0; t < own.length; t++) {
                int at = left.start(s) + t;
                if (left.isTrained(at)) {
                    double ours = decision.tokenAdvantages().isPresent()
                            ? decision.tokenAdvantages().get()[at]
                            : decision.advantages()[s];
                    most = Math.max(most, Math.abs(own[t] - ours));
                }
            }
            compared++;
            agreed += most <= AGREEMENT ? 1 : 0;
            furthest = Math.max(furthest, most);
        }
    }

    private static Set<StageInput> knownOf(StageFacts facts, List<Trajectory> members, Set<StageInput> isKnown) {
        Set<StageInput> known = EnumSet.of(StageInput.BEHAVIOR, StageInput.PROXIMAL);
        known.addAll(isKnown);
        if (members.stream().allMatch(member -> member.getOldLogProbs() != null)) {
            known.add(StageInput.OLD);
        }
        NOTED.stream().filter(facts::has).forEach(known::add);
        return known;
    }

    private LearnerBatch undecided(long step, List<BatchEntry> entries, long assembledAtMs) {
        return new LearnerBatch(
                run.runId(),
                run.epoch(),
                run.policyId(),
                batches,
                step,
                step,
                entries,
                List.of(),
                0L,
                null,
                null,
                null,
                1.0,
                0.0,
                0L,
                assembledAtMs);
    }

    /** The other system chose the members. */
    private static StageReport choice(StageFacts facts) {
        return new StageReport(
                "records",
                (long) facts.tokens().trainedTokens(),
                0L,
                (long) facts.tokens().sequenceCount(),
                0L,
                Map.of());
    }

    private static BatchEntry entry(Trajectory member, long offset) {
        return new BatchEntry(
                member.getRolloutId(),
                member.getGroupId(),
                0,
                offset,
                member.getRolloutSource().getPartition(),
                member.getRolloutSource().getOffset(),
                member.getReward(),
                0.0,
                member.getVersionSpans().stream()
                        .mapToLong(VersionSpan::getVersion)
                        .min()
                        .orElse(-1),
                0,
                null,
                null,
                null,
                null);
    }

    public long steps() {
        return batches;
    }

    public long sequences() {
        return sequences;
    }

    public long tokens() {
        return tokens;
    }

    public long trainedTokens() {
        return trained;
    }

    /** Largest lag of a trained token, in versions. */
    public long stalest() {
        return oldest;
    }

    public long advantagesCompared() {
        return compared;
    }

    /** Of these, equal within {@value #AGREEMENT} to the algorithm's. */
    public long advantagesAgreed() {
        return agreed;
    }

    /** Largest difference of an advantage from the algorithm's. */
    public double furthestAdvantage() {
        return furthest;
    }

    /** Named algorithms that cannot decide these records, with missing inputs. */
    public Map<String, Set<StageInput>> ruledOut() {
        Map<String, Set<StageInput>> ruledOut = new LinkedHashMap<>();
        NamedAlgorithms.all().forEach((name, named) -> {
            Set<StageInput> missing = EnumSet.noneOf(StageInput.class);
            missing.addAll(named.inputs());
            missing.removeAll(everywhere);
            missing.remove(StageInput.VERSIONS); // made up where no line says them
            if (!missing.isEmpty()) {
                ruledOut.put(name, missing);
            }
        });
        return ruledOut;
    }

    /** Stage inputs that some sequence lacks. */
    public Set<StageInput> missing() {
        Set<StageInput> missing = EnumSet.allOf(StageInput.class);
        missing.removeAll(everywhere);
        return missing;
    }
}
