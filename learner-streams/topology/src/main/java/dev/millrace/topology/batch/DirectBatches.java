package dev.millrace.topology.batch;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.batch.BatchMaker.BatchVersion;
import dev.millrace.topology.batch.MemberVectors.Vectors;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Builds batches of given trajectories with the topology's decisions and importance weights, but without a topology:
 * for callers that choose the composition of batches themselves.
 *
 * <p>Immutable and thread-safe.
 */
public final class DirectBatches {
    private final BatchMaker maker;

    public DirectBatches(RunIdentity run, Algorithm algorithm) {
        this.maker = new BatchMaker(run, algorithm, true, Optional.empty());
    }

    /**
     * The batch of these trajectories; entry i points at partition 0, offset i.
     *
     * @param trajectories whole groups, one after the other, each by sample index
     * @param currentVersion at which the step on it starts; no token is newer
     */
    public LearnerBatch make(long batchId, List<Trajectory> trajectories, long currentVersion) {
        Map<String, Group> groups = new LinkedHashMap<>();
        Map<String, Vectors> vectors = new HashMap<>();
        long assembledAtMs = 0;
        for (int i = 0; i < trajectories.size(); i++) {
            Member member =
                    Member.of(trajectories.get(i), 0, i, trajectories.get(i).getScoredAtMs());
            vectors.put(member.sample().rolloutId(), Vectors.of(trajectories.get(i), maker.inputs()));
            assembledAtMs = Math.max(assembledAtMs, member.timestampMs());
            Group group = groups.get(member.sample().groupId());
            if (group == null) {
                groups.put(member.sample().groupId(), new Group(member, member.timestampMs()));
            } else {
                group.add(member);
            }
        }
        return maker.make(
                batchId,
                new ArrayList<>(groups.values()),
                vectors,
                new BatchVersion(currentVersion, currentVersion),
                assembledAtMs,
                new StageReport(
                        "given",
                        (long) trajectories.stream()
                                .mapToInt(t -> t.getMask().remaining())
                                .sum(),
                        0L,
                        (long) trajectories.size(),
                        0L,
                        new TreeMap<>()));
    }
}
