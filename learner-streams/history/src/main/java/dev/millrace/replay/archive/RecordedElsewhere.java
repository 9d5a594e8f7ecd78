package dev.millrace.replay.archive;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.stages.DecidedBatch;
import dev.millrace.stages.RecordedFacts;
import dev.millrace.stages.StageReports;
import dev.millrace.stages.TrajectoryNotes;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Archives steps of another system: a batch and a record of the training log per step, a rollout and a trajectory per
 * sequence.
 *
 * <p>The other system's decisions are unknown, so batches and steps carry those of the given algorithm, and agree with
 * the archive's configuration. Steps come in order, one at a time. Confined to one thread.
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
     * @param members sequences in group order, at least one; their rollout source is replaced
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
            Map<String, Double> figures,
            long assembledAtMs) {
        if (step <= lastStep) {
            throw new IllegalArgumentException("step " + step + " comes after step " + lastStep);
        }
        List<BatchEntry> entries = new ArrayList<>(members.size());
        for (Trajectory member : members) {
            long place = archive.add(
                    topics.rollouts(), member.getGroupId(), Rollout.class, rollout(member), member.getFinishedAtMs());
            Trajectory placed = Trajectory.newBuilder(member)
                    .setRolloutSource(new LogCoordinates(topics.rollouts(), 0, place))
                    .build();
            long offset =
                    archive.add(topics.trajectories(), placed.getGroupId(), Trajectory.class, placed, assembledAtMs);
            entries.add(entry(placed, offset));
        }
        LearnerBatch undecided = undecided(step, entries, assembledAtMs);
        StageFacts facts = RecordedFacts.of(undecided, members, NOTED);
        Decision decision = algorithm.decide(facts);
        LearnerBatch batch = DecidedBatch.of(
                new DecidedBatch.Assembly(run, batches, assembledAtMs, step),
                entries,
                List.of(choice(facts)),
                facts,
                decision,
                false);
        archive.add(topics.batches(), run.policyId(), LearnerBatch.class, batch, assembledAtMs);
        archive.add(
                topics.trainingLog(),
                run.policyId(),
                TrainingStep.class,
                trainingStep(batch, facts, figures),
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

    private Rollout rollout(Trajectory of) {
        int tokens = of.getMask().remaining();
        return Rollout.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setRolloutId(of.getRolloutId())
                .setGroupId(of.getGroupId())
                .setOrdinal(of.getOrdinal())
                .setSampleIndex(of.getSampleIndex())
                .setGroupSize(of.getGroupSize())
                .setGeneratorId("records")
                .setEnvironment("recorded")
                .setTokenizerHash("")
                .setPromptTokens(of.getPromptTokens())
                .setResponseTokens(of.getResponseTokens())
                .setMask(of.getMask())
                .setBehaviorLogProbs(of.getBehaviorLogProbs())
                .setLogProbDistribution(
                        of.getTemperature() == 1 ? LogProbDistribution.RAW : LogProbDistribution.TEMPERED)
                .setSampling(SamplingParameters.newBuilder()
                        .setTemperature(of.getTemperature())
                        .setTopK(0)
                        .setTopP(1)
                        .setMaxTokens(tokens)
                        .setSeed(0)
                        .build())
                .setTurns(of.getTurns() == null ? List.of(new Turn(Speaker.POLICY, 0, tokens, null)) : of.getTurns())
                .setVersionSpans(of.getVersionSpans())
                .setReward(of.getReward())
                .setRewardComponents(of.getRewardComponents())
                .setFinishReason(finishReason(of.getFinishReason()))
                .setAdmittedVersion(of.getVersionSpans().get(0).getVersion())
                .setStartedAtMs(of.getFinishedAtMs())
                .setFinishedAtMs(of.getFinishedAtMs())
                .setCredit(of.getCredit())
                .build();
    }

    private static FinishReason finishReason(String word) {
        try {
            return FinishReason.valueOf(word.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            return FinishReason.UNKNOWN; // reported by the other system; the trajectory has it
        }
    }

    /**
     * The weights that the step was taken with are unknown, and so is their effective sample size. The diagnosis reads
     * lengths and the stages' reports from the figures.
     */
    private TrainingStep trainingStep(LearnerBatch batch, StageFacts facts, Map<String, Double> figures) {
        Map<String, Double> metrics = new HashMap<>();
        batch.getStages().forEach(report -> StageReports.putInForce(report, metrics));
        metrics.put(
                "response_tokens_mean",
                (double) facts.tokens().tokenCount() / facts.tokens().sequenceCount());
        metrics.putAll(figures);
        List<BatchEntry> entries = batch.getEntries();
        int left = (int)
                entries.stream().filter(entry -> entry.getTrainedTokens() > 0).count();
        boolean hasTokens = batch.getTrainedTokens() > 0;
        return TrainingStep.newBuilder()
                .setRunId(run.runId())
                .setEpoch(run.epoch())
                .setPolicyId(run.policyId())
                .setBatchId(batch.getBatchId())
                .setVersion(batch.getExpectedVersion() + 1)
                .setWeightsSha256("")
                .setRolloutsTrained(left)
                .setRolloutsMasked(entries.size() - left)
                .setTokensTrained(batch.getTrainedTokens())
                .setTokensTrainable(facts.tokens().trainedTokens())
                .setRolloutsConsumed(sequences + entries.size())
                .setRewardMean(entries.stream()
                        .mapToDouble(BatchEntry::getReward)
                        .average()
                        .orElseThrow())
                .setStalenessMean(hasTokens ? batch.getStalenessMean() : null)
                .setStalenessMax(hasTokens ? batch.getStalenessMax() : null)
                .setLearningRate(figures.getOrDefault("learning_rate", 0.0))
                .setMetrics(metrics)
                .setStartedAtMs(batch.getAssembledAtMs())
                .setFinishedAtMs(batch.getAssembledAtMs())
                .build();
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
            missing.remove(StageInput.VERSIONS); // synthetic if no line has them
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
