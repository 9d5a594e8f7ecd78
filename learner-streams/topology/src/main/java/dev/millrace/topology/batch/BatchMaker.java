package dev.millrace.topology.batch;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.DecidedBatch;
import dev.millrace.stages.MemberLogProbs;
import dev.millrace.stages.TrajectoryNotes;
import dev.millrace.topology.batch.MemberVectors.Vectors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * Builds the batch record of groups: packs their members into one ragged batch and applies the algorithm. Pure, except for the
 * memory of the advantage.
 */
final class BatchMaker {
    private final RunIdentity run;
    private final Algorithm algorithm;
    private final Set<StageInput> inputs;
    private final boolean recordWeights;
    private final Optional<AssemblyMemory> memory;

    /** @param memory of the advantage; empty if it keeps nothing */
    BatchMaker(RunIdentity run, Algorithm algorithm, boolean recordWeights, Optional<AssemblyMemory> memory) {
        this.memory = memory;
        this.inputs = algorithm.inputs();
        this.run = run;
        this.algorithm = algorithm;
        this.recordWeights = recordWeights;
    }

    /** Vectors to read from trajectories. */
    Set<StageInput> inputs() {
        return inputs;
    }

    /** Groups packed into a ragged batch, with the vectors of their members and the versions of their tokens. */
    record Layout(List<Member> members, List<Vectors> vectors, TokenBatch tokens, BatchVersions versions) {
        /**
         * @param groups the members of each
         * @param vectors of every member, by rollout id
         */
        static Layout of(List<List<Member>> groups, Map<String, Vectors> vectors) {
            List<Member> members = new ArrayList<>();
            List<Vectors> own = new ArrayList<>();
            int[] groupOf = new int[groups.stream().mapToInt(List::size).sum()];
            for (int g = 0; g < groups.size(); g++) {
                List<Member> ofGroup = groups.get(g);
                Arrays.fill(groupOf, members.size(), members.size() + ofGroup.size(), g);
                members.addAll(ofGroup);
            }
            int[] offsets = new int[members.size() + 1];
            for (int s = 0; s < members.size(); s++) {
                String rolloutId = members.get(s).sample().rolloutId();
                own.add(Objects.requireNonNull(vectors.get(rolloutId), rolloutId));
                offsets[s + 1] = Math.addExact(offsets[s], members.get(s).tokens());
            }
            byte[] mask = new byte[offsets[members.size()]];
            for (int s = 0; s < members.size(); s++) {
                System.arraycopy(
                        own.get(s).mask(), 0, mask, offsets[s], members.get(s).tokens());
            }
            TokenBatch tokens = new TokenBatch(offsets, mask, groupOf);
            return new Layout(
                    members,
                    own,
                    tokens,
                    new BatchVersions(
                            tokens,
                            members.stream()
                                    .map(member -> member.versions().spans())
                                    .toList()));
        }
    }

    /** Effect of the staleness limit on a group. */
    enum Freshness {
        /** It has tokens to train on. */
        SOME,
        /** All its tokens are too stale. */
        ALL_STALE,
        /** It has no trainable tokens. */
        NOTHING_TRAINABLE
    }

    /**
     * Versions of a batch.
     *
     * @param assembled newest at assembly
     * @param atStep expected at step start; staleness counts from it
     */
    record BatchVersion(long assembled, long atStep) {}

    /** Returns what the staleness limit leaves of a group in a step that starts at this version. */
    Freshness freshness(Group group, long atStep) {
        int trainable = 0;
        int stale = 0;
        for (Member member : group.members()) {
            trainable += member.trainableTokens();
            stale += member.trainableTokensBefore(atStep - algorithm.staleness().maxVersions());
        }
        if (trainable == 0) {
            return Freshness.NOTHING_TRAINABLE;
        }
        return stale == trainable ? Freshness.ALL_STALE : Freshness.SOME;
    }

    /**
     * Builds the batch of these groups, in their order.
     *
     * @param groups at least one of them with something to train on at the version of the step
     * @param vectors of every member, by rollout id
     * @param order report about their choice, before the stages' reports
     * @throws IllegalArgumentException if a stage fails on the batch
     */
    LearnerBatch make(
            long batchId,
            List<Group> groups,
            Map<String, Vectors> vectors,
            BatchVersion version,
            long assembledAtMs,
            StageReport order) {
        Layout layout = Layout.of(groups.stream().map(Group::members).toList(), vectors);
        StageFacts known = facts(layout, version.atStep(), assembledAtMs);
        StageFacts facts = memory.map(kept -> kept.before(known)).orElse(known);
        Decision decision = algorithm.decide(facts);
        List<StageReport> choice = new ArrayList<>(List.of(order));
        memory.ifPresent(kept -> choice.add(kept.after(batchId, facts)));
        return DecidedBatch.of(
                new DecidedBatch.Assembly(run, batchId, assembledAtMs, version.assembled()),
                layout.members().stream().map(BatchMaker::undecided).toList(),
                choice,
                facts,
                decision,
                recordWeights);
    }

    private static BatchEntry undecided(Member member) {
        return new BatchEntry(
                member.sample().rolloutId(),
                member.sample().groupId(),
                member.place().partition(),
                member.place().offset(),
                member.place().rollout().getPartition(),
                member.place().rollout().getOffset(),
                member.reward(),
                0.0,
                member.oldestVersion(),
                0,
                null,
                null,
                null,
                null,
                null);
    }

    /** Facts that the stages read. */
    static StageFacts facts(Layout layout, long atStep, long assembledAtMs) {
        boolean[] withoutOld = new boolean[layout.members().size()];
        for (int s = 0; s < withoutOld.length; s++) {
            withoutOld[s] = layout.vectors().get(s).withoutOld();
        }
        StageFacts.Builder facts = logProbs(layout)
                .addTo(StageFacts.of(
                        layout.tokens(),
                        layout.members().stream().mapToDouble(Member::reward).toArray()));
        return TrajectoryNotes.addTo(
                        facts,
                        layout.tokens(),
                        layout.vectors().stream().map(Vectors::notes).toList())
                .withoutOld(withoutOld)
                .versions(atStep, layout.versions())
                .agesMs(layout.members().stream()
                        .mapToLong(member -> assembledAtMs - member.finishedAtMs())
                        .toArray())
                .build();
    }

    private static MemberLogProbs logProbs(Layout layout) {
        int tokens = layout.tokens().tokenCount();
        MemberLogProbs packed = new MemberLogProbs(new float[tokens], new float[tokens], new float[tokens]);
        for (int s = 0; s < layout.members().size(); s++) {
            MemberLogProbs of = layout.vectors().get(s).logProbs();
            int at = layout.tokens().start(s);
            System.arraycopy(of.behavior(), 0, packed.behavior(), at, of.behavior().length);
            System.arraycopy(of.old(), 0, packed.old(), at, of.old().length);
            System.arraycopy(of.proximal(), 0, packed.proximal(), at, of.proximal().length);
        }
        return packed;
    }
}
