package dev.millrace.replay.retrain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.OtherRewards;
import dev.millrace.replay.Verifier.Verdict;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.retrain.FreshRollouts.FreshRolloutOptions;
import dev.millrace.replay.retrain.FreshRollouts.RolloutSource;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.WeightsConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class FreshRolloutsTest {
    private static final Variant OWN = RetrainingTest.variant("recorded", Algorithm.defaults(), 1e-2);
    private static final Variant FASTER = RetrainingTest.variant("faster", OWN.algorithm(), 2e-2);
    private static LearntRun learnt;

    /**
     * An engine of a kind: the run's weights give the recorded rollout, others change its tokens. Records its calls.
     */
    private static final class Replayed implements RolloutSource {
        final List<String> asked = new ArrayList<>();
        final List<Long> seeds = new ArrayList<>();
        private final Map<String, Trajectory> known = new TreeMap<>();

        private final LearntRun learnt;
        private final String refusal;

        Replayed() {
            this(null);
        }

        Replayed(String refusal) {
            this(FreshRolloutsTest.learnt, refusal);
        }

        private Replayed(LearntRun learnt, String refusal) {
            this.learnt = learnt;
            this.refusal = refusal;
            learnt.trajectories.forEach(trajectory -> known.put(trajectory.getRolloutId(), trajectory));
        }

        @Override
        public Optional<String> refusal(PromptRequest request) {
            return Optional.ofNullable(refusal);
        }

        @Override
        public List<Rollout> sample(List<Sample> samples, LongFunction<Weights> weights) {
            return samples.stream().map(sample -> sample(sample, weights)).toList();
        }

        private Rollout sample(Sample sample, LongFunction<Weights> weights) {
            seeds.add(sample.request().getSampling().getSeed());
            boolean isRecorded = sample.request().getSampling().getSeed() == 40;
            for (VersionSpan span : sample.versions()) {
                String sha256 = VersionHash.of(weights.apply(span.getVersion()));
                asked.add(sample.request().getGroupId() + " " + span.getVersion() + " " + sha256);
                isRecorded &= learnt.hashes.get((int) span.getVersion()).equals(sha256);
            }
            Rollout recorded =
                    SyntheticRollouts.rollout(known.get(sample.request().getGroupId() + "/" + sample.index()));
            if (isRecorded) {
                return recorded;
            }
            int[] tokens = PackedInts.toArray(recorded.getResponseTokens());
            return Rollout.newBuilder(recorded)
                    .setReward(1 - recorded.getReward() / 2)
                    .setResponseTokens(PackedInts.of(IntStream.of(tokens)
                            .map(token -> (token + 1) % SyntheticRollouts.SHAPE.vocabSize())
                            .toArray()))
                    .build();
        }
    }

    @BeforeAll
    static void learn() {
        learnt = new LearntRun(OWN);
    }

    /** A source that gives a run's own weights its own rollouts. */
    static RolloutSource recorded(LearntRun run) {
        return new Replayed(run, null);
    }

    static RetrainingTest.Heard live(
            RecordedRun run, RolloutSource source, long from, long draws, Variant... variants) {
        RetrainingTest.Heard heard = new RetrainingTest.Heard();
        try (RecordedVersions versions = new RecordedVersions(run, WeightsConfig.defaults())) {
            VersionInterval range = VersionInterval.of(from, null, versions);
            try (FreshRollouts sampling = new FreshRollouts(run, versions, range, source, Engine.cpu(), 1024, false)) {
                new Retraining(
                                run,
                                versions,
                                Engine.cpu(),
                                List.of(variants),
                                Optional.of(new FreshRolloutOptions(sampling, draws)),
                                Optional.empty(),
                                3)
                        .replay(range, heard);
            }
        }
        return heard;
    }

    @Test
    void shouldSampleTheRecordedRolloutsAndMakeTheRecordedWeightsUnderTheRunsOwnSettings() {
        for (long from = 0; from < LearntRun.STEPS; from++) {
            List<VariantStep> steps =
                    live(learnt.run, new Replayed(), from, 0, OWN).of(0);
            assertThat(steps).hasSize((int) (LearntRun.STEPS - from)).allSatisfy(step -> {
                assertThat(step.isAsRecorded()).isTrue();
                assertThat(step.rolloutsAsRecorded()).isEqualTo(LearntRun.MEMBERS);
            });
        }
    }

    @Test
    void shouldSampleByTheCoursesOwnWeightsOfTheRecordedVersionsAndByTheRunsBeforeTheFirst() {
        for (int from : new int[] {0, 2}) {
            Replayed source = new Replayed();
            List<VariantStep> faster = live(learnt.run, source, from, 0, FASTER).of(0);
            List<String> expected = new ArrayList<>();
            for (Trajectory trajectory :
                    learnt.trajectories.subList(from * LearntRun.MEMBERS, learnt.trajectories.size())) {
                for (VersionSpan span : trajectory.getVersionSpans()) {
                    int version = (int) span.getVersion();
                    expected.add(trajectory.getGroupId() + " " + version + " "
                            + (version <= from
                                    ? learnt.hashes.get(version)
                                    : faster.get(version - from - 1).weightsSha256()));
                }
            }
            assertThat(source.asked).isEqualTo(expected);
            assertThat(source.asked)
                    .as("the last batch's first tokens and the others")
                    .hasSize((LearntRun.STEPS - from + 1) * LearntRun.MEMBERS);
            assertThat(faster.get(0).isAsRecorded()).isFalse();
        }
    }

    @Test
    void shouldLearnFromWhatItSampledOnceACourseHasParted() {
        RetrainingTest.Heard heard = live(learnt.run, new Replayed(), 0, 0, OWN, FASTER);
        assertThat(heard.of(0)).allMatch(VariantStep::isAsRecorded);
        List<VariantStep> faster = heard.of(1);
        assertThat(faster)
                .extracting(VariantStep::rolloutsAsRecorded)
                .as("versions 0, 0, 0 and 0 to 1")
                .containsExactly(6, 6, 6, 0);
        assertThat(faster.get(3).batchReward()).isNotEqualTo(heard.of(0).get(3).batchReward());
        List<VariantStep> overTheRecord = RetrainingTest.retrain(
                        learnt.run, Optional.empty(), 0, LearntRun.STEPS, OWN, FASTER)
                .of(1);
        assertThat(faster.subList(0, 3))
                .extracting(VariantStep::weightsSha256)
                .isEqualTo(overTheRecord.subList(0, 3).stream()
                        .map(VariantStep::weightsSha256)
                        .toList());
        assertThat(faster.get(3).weightsSha256())
                .isNotEqualTo(overTheRecord.get(3).weightsSha256());
    }

    @Test
    void shouldGiveTheSameBitsAtEveryRepetitionAndOthersWithOtherDraws() {
        List<String> once = hashes(live(learnt.run, new Replayed(), 0, 7, OWN, FASTER));
        Replayed source = new Replayed();
        assertThat(hashes(live(learnt.run, source, 0, 7, OWN, FASTER))).isEqualTo(once);
        assertThat(source.seeds).containsOnly(47L);
        assertThat(hashes(live(learnt.run, new Replayed(), 0, 0, OWN, FASTER))).doesNotContainAnyElementsOf(once);
    }

    private static List<String> hashes(RetrainingTest.Heard heard) {
        return heard.steps.stream()
                .flatMap(step -> step.variants().stream())
                .map(step -> step.orElseThrow().weightsSha256())
                .toList();
    }

    @Test
    void shouldRefuseWhatCannotBeSampledAgain() {
        var prompts = learnt.run.of("test.prompts");
        var lost = prompts.remove(5L);
        assertThatThrownBy(() -> live(learnt.run, new Replayed(), 0, 0, OWN))
                .isInstanceOf(ArchiveException.class)
                .hasMessageStartingWith("the prompt of group g5 is not on test.prompts, so it cannot be sampled again");
        assertThat(live(learnt.run, new Replayed(), 2, 0, OWN).of(0))
                .as("whose batches have other groups")
                .allMatch(VariantStep::isAsRecorded);
        learnt.run.put(lost);
        assertThatThrownBy(() -> live(learnt.run, new Replayed("its tools are elsewhere"), 0, 0, OWN))
                .isInstanceOf(ArchiveException.class)
                .hasMessage("group g0 cannot be sampled again: its tools are elsewhere");
    }

    /** Changes the first rollout of the first relearned batch; has no effect on other batches. */
    private static void requireRefused(Consumer<Trajectory.Builder> part, String what) {
        Trajectory.Builder other = Trajectory.newBuilder(learnt.trajectories.get(LearntRun.MEMBERS));
        part.accept(other);
        var own = learnt.with(other.build(), LearntRun.MEMBERS);
        try {
            Replayed source = new Replayed();
            assertThatThrownBy(() -> live(learnt.run, source, 1, 0, OWN))
                    .isInstanceOf(ArchiveException.class)
                    .hasMessageStartingWith("rollout " + other.getRolloutId() + " " + what
                            + ", and its writer cannot score a newly sampled rollout; leave out --live");
            assertThat(source.asked).as("refused before anything is sampled").isEmpty();
            assertThat(live(learnt.run, new Replayed(), 2, 0, OWN).of(0)).allMatch(VariantStep::isAsRecorded);
        } finally {
            learnt.run.put(own);
        }
    }

    @Test
    void shouldRefuseRolloutsThatOthersHadAPartIn() {
        LogCoordinates somewhere = new LogCoordinates("test.partners", 0, 0L);
        requireRefused(rollout -> rollout.setRewardSource(somewhere), "has a reward record (topic rewards)");
        requireRefused(
                rollout -> rollout.setReferenceLogProbs(rollout.getProximalLogProbs()),
                "carries log-probs of a reference (topic reference-scores)");
        requireRefused(
                rollout -> rollout.setTeacherLogProbs(rollout.getProximalLogProbs()),
                "carries log-probs of a teacher (topic teacher-scores)");
    }

    @Test
    void shouldSampleWhatAPartnerRewardedWhereSomebodyElseRewardsIt() {
        Trajectory partners = Trajectory.newBuilder(learnt.trajectories.get(LearntRun.MEMBERS))
                .setRewardSource(new LogCoordinates("test.partners", 0, 0L))
                .build();
        var own = learnt.with(partners, LearntRun.MEMBERS);
        RetrainingTest.Heard heard = new RetrainingTest.Heard();
        try (RecordedVersions versions = new RecordedVersions(learnt.run, WeightsConfig.defaults())) {
            VersionInterval range = VersionInterval.of(1L, null, versions);
            try (FreshRollouts sampling =
                    new FreshRollouts(learnt.run, versions, range, new Replayed(), Engine.cpu(), 1024, true)) {
                new Retraining(
                                learnt.run,
                                versions,
                                Engine.cpu(),
                                List.of(OWN.rewarded()),
                                Optional.of(new FreshRolloutOptions(sampling, 0)),
                                Optional.empty(),
                                3)
                        .rewardedBy(new OtherRewards(rollout -> new Verdict(1 - rollout.getReward(), Map.of())))
                        .replay(range, heard);
            }
        } finally {
            learnt.run.put(own);
        }
        double recorded = learnt.trajectories.subList(LearntRun.MEMBERS, 2 * LearntRun.MEMBERS).stream()
                .mapToDouble(Trajectory::getReward)
                .average()
                .orElseThrow();
        assertThat(heard.of(0)).hasSize(LearntRun.STEPS - 1);
        assertThat(heard.of(0).get(0).batchReward()).isCloseTo(1 - recorded, within(1e-9));
    }

    @Test
    void shouldRefuseWhereTheWeightsThatSampledAreGone() {
        var weights = learnt.run.of("test.weights");
        var all = new TreeMap<>(weights);
        try (RecordedVersions versions = new RecordedVersions(learnt.run, WeightsConfig.defaults())) {
            weights.headMap(versions.manifest(0).getWeights().getLastOffset(), true)
                    .clear();
        }
        try {
            assertThatThrownBy(() -> live(learnt.run, new Replayed(), 1, 0, OWN))
                    .isInstanceOf(ArchiveException.class)
                    .hasMessageStartingWith("version 0 sampled for a batch of the range and must sample again");
        } finally {
            weights.putAll(all);
        }
    }
}
