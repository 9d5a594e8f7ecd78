package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/** Restores the stages' input of a recorded batch from its trajectories. */
public final class RecordedFacts {
    private RecordedFacts() {}

    /**
     * The facts of a batch.
     *
     * @param trajectories one per entry that still exists, in entry order
     */
    public static StageFacts of(LearnerBatch batch, List<Trajectory> trajectories) {
        return of(batch, trajectories, Set.of());
    }

    /** The same with the inputs of an algorithm. */
    public static StageFacts of(LearnerBatch batch, List<Trajectory> trajectories, Set<StageInput> inputs) {
        TokenBatch tokens = layout(trajectories);
        boolean[] withoutOld = new boolean[trajectories.size()];
        for (int s = 0; s < withoutOld.length; s++) {
            withoutOld[s] = trajectories.get(s).getOldLogProbs() == null;
        }
        StageFacts.Builder facts = logProbs(tokens, trajectories)
                .addTo(StageFacts.of(
                        tokens,
                        trajectories.stream().mapToDouble(Trajectory::getReward).toArray()));
        if (inputs.contains(StageInput.BASELINES)) {
            BaselineMemory.addRecorded(facts, batch.getEntries());
        }
        return TrajectoryNotes.addTo(
                        facts,
                        tokens,
                        trajectories.stream()
                                .map(trajectory -> TrajectoryNotes.of(trajectory, inputs))
                                .toList())
                .withoutOld(withoutOld)
                .versions(
                        batch.getExpectedVersion() < 0 ? batch.getAssembledVersion() : batch.getExpectedVersion(),
                        new BatchVersions(
                                tokens,
                                trajectories.stream().map(RecordedFacts::spans).toList()))
                .agesMs(trajectories.stream()
                        .mapToLong(trajectory -> batch.getAssembledAtMs() - trajectory.getFinishedAtMs())
                        .toArray())
                .build();
    }

    private static TokenBatch layout(List<Trajectory> trajectories) {
        int[] offsets = new int[trajectories.size() + 1];
        int[] groups = new int[trajectories.size()];
        for (int s = 0; s < groups.length; s++) {
            Trajectory trajectory = trajectories.get(s);
            offsets[s + 1] = Math.addExact(offsets[s], PackedMask.length(trajectory.getMask()));
            boolean isNext = s > 0
                    && !trajectory.getGroupId().equals(trajectories.get(s - 1).getGroupId());
            groups[s] = s == 0 ? 0 : groups[s - 1] + (isNext ? 1 : 0);
        }
        byte[] mask = new byte[offsets[groups.length]];
        for (int s = 0; s < groups.length; s++) {
            PackedMask.copyTo(trajectories.get(s).getMask(), mask, offsets[s]);
        }
        return new TokenBatch(offsets, mask, groups);
    }

    private static MemberLogProbs logProbs(TokenBatch tokens, List<Trajectory> trajectories) {
        int count = tokens.tokenCount();
        MemberLogProbs packed = new MemberLogProbs(new float[count], new float[count], new float[count]);
        for (int s = 0; s < trajectories.size(); s++) {
            Trajectory of = trajectories.get(s);
            PackedFloats.copyTo(of.getBehaviorLogProbs(), packed.behavior(), tokens.start(s));
            PackedFloats.copyTo(of.getProximalLogProbs(), packed.proximal(), tokens.start(s));
            if (of.getOldLogProbs() == null) {
                Arrays.fill(packed.old(), tokens.start(s), tokens.end(s), Float.NaN);
            } else {
                PackedFloats.copyTo(of.getOldLogProbs(), packed.old(), tokens.start(s));
            }
        }
        return packed;
    }

    private static List<VersionSpan> spans(Trajectory trajectory) {
        return trajectory.getVersionSpans().stream()
                .map(span -> new VersionSpan(span.getVersion(), span.getStart(), span.getEnd()))
                .toList();
    }
}
