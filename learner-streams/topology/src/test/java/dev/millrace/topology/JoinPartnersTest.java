package dev.millrace.topology;

import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.Samples.reward;
import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static dev.millrace.topology.Samples.scoreBy;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.join.JoinConfig;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Rollouts that wait for rewards, reference scores and teacher scores too; every rule in every order of arrival. */
class JoinPartnersTest {
    private static final List<List<JoinSide>> ORDERS = orders(List.of(JoinSide.values()));

    @TempDir
    Path directory;

    private static TopologyConfig config() {
        TopologyConfig defaults = TopologyConfig.defaults();
        JoinConfig join = defaults.join();
        return new TopologyConfig(
                defaults.ingress(),
                new JoinConfig(
                        true,
                        true,
                        true,
                        join.unscoredAfterMs(),
                        join.orphanAfterMs(),
                        join.maxGapMs(),
                        join.payloadCacheBytes(),
                        join.dedupeRetentionMs(),
                        join.dedupeGroups()),
                defaults.groups(),
                defaults.batch(),
                defaults.runtime());
    }

    private static List<List<JoinSide>> orders(List<JoinSide> kinds) {
        if (kinds.isEmpty()) {
            return List.of(List.of());
        }
        List<List<JoinSide>> orders = new ArrayList<>();
        for (JoinSide first : kinds) {
            List<JoinSide> rest = new ArrayList<>(kinds);
            rest.remove(first);
            for (List<JoinSide> order : orders(rest)) {
                List<JoinSide> whole = new ArrayList<>(List.of(first));
                whole.addAll(order);
                orders.add(whole);
            }
        }
        return orders;
    }

    /** Records of one rollout in a topology of its own or of several; a test replaces those that it is about. */
    private final class Arrivals implements AutoCloseable {
        final TopologyHarness topology;
        final Rollout rollout;
        final Map<JoinSide, Runnable> records = new EnumMap<>(JoinSide.class);

        Arrivals() {
            this(new TopologyHarness(config(), directory), "g", 0);
        }

        /** @param offset that the rollout will have */
        Arrivals(TopologyHarness topology, String group, long offset) {
            this.topology = topology;
            this.rollout = rollout(group, 0).build();
            records.put(JoinSide.ROLLOUT, () -> topology.pipe(rollout));
            records.put(
                    JoinSide.SCORE, () -> topology.pipe(score(rollout, offset).build()));
            records.put(
                    JoinSide.REWARD, () -> topology.pipe(reward(rollout, offset).build()));
            records.put(
                    JoinSide.REFERENCE,
                    () -> topology.pipe(
                            JoinSide.REFERENCE,
                            scoreBy(PolicyRole.REFERENCE, rollout, offset).build()));
            records.put(
                    JoinSide.TEACHER,
                    () -> topology.pipe(
                            JoinSide.TEACHER,
                            scoreBy(PolicyRole.TEACHER, rollout, offset).build()));
        }

        void arrive(List<JoinSide> order) {
            order.forEach(kind -> records.get(kind).run());
        }

        @Override
        public void close() {
            topology.close();
        }
    }

    /** Under the name and with the offsets of the first rollout of a topology. */
    private static Trajectory named(Trajectory made) {
        LogCoordinates first = new LogCoordinates(made.getRolloutSource().getTopic(), 0, 0L);
        return Trajectory.newBuilder(made)
                .setRolloutId("g/0")
                .setGroupId("g")
                .setRolloutSource(first)
                .setScoreSource(new LogCoordinates(made.getScoreSource().getTopic(), 0, 0L))
                .setRewardSource(new LogCoordinates(made.getRewardSource().getTopic(), 0, 0L))
                .setReferenceSource(new LogCoordinates(made.getReferenceSource().getTopic(), 0, 0L))
                .setTeacherSource(new LogCoordinates(made.getTeacherSource().getTopic(), 0, 0L))
                .build();
    }

    @Test
    void shouldMakeTheSameTrajectoryInEveryOrder() {
        Set<Trajectory> made = new HashSet<>();
        try (TopologyHarness topology = new TopologyHarness(config(), directory)) {
            for (int i = 0; i < ORDERS.size(); i++) {
                List<JoinSide> order = ORDERS.get(i);
                Arrivals arrivals = new Arrivals(topology, "g-" + i, i);
                arrivals.arrive(order.subList(0, 4));
                assertThat(topology.trajectories())
                        .as("%s, without the last", order)
                        .isEmpty();
                arrivals.arrive(order.subList(4, 5));
                List<Trajectory> trajectories = topology.trajectories();
                assertThat(trajectories).as("%s", order).hasSize(1);
                made.add(named(trajectories.get(0)));
                assertThat(topology.outcomes()).as("%s", order).isEmpty();
                assertThat(topology.meters
                                .get("millrace.pending.rollouts")
                                .gauge()
                                .value())
                        .isZero();
            }
            topology.idle(Duration.ofMinutes(11));
            assertThat(topology.outcomes())
                    .as("long after")
                    .hasSize(ORDERS.size())
                    .allMatch(outcome -> outcome.getStage().equals("groups")); // their siblings never come
        }
        assertThat(ORDERS).hasSize(120);
        assertThat(made).singleElement().satisfies(trajectory -> {
            assertThat(trajectory.getReward()).isEqualTo(0.25);
            assertThat(trajectory.getRewardComponents()).containsExactly(Map.entry("judge", 0.25));
            assertThat(trajectory.getRewardSource().getTopic()).isEqualTo(TOPICS.rewards());
            assertThat(PackedFloats.toArray(trajectory.getReferenceLogProbs())).containsExactly(-2f, -2f, -2f);
            assertThat(trajectory.getReferenceVersion()).isZero();
            assertThat(trajectory.getReferenceSource().getTopic()).isEqualTo(TOPICS.referenceScores());
            assertThat(PackedFloats.toArray(trajectory.getTeacherLogProbs())).containsExactly(-0.25f, -0.25f, -0.25f);
            assertThat(trajectory.getTeacherSource().getTopic()).isEqualTo(TOPICS.teacherScores());
        });
    }

    @Test
    void shouldNameWhatDidNotCome() {
        Map<JoinSide, String> reasons = Map.of(
                JoinSide.SCORE,
                "unscored",
                JoinSide.REWARD,
                "unrewarded",
                JoinSide.REFERENCE,
                "unreferenced",
                JoinSide.TEACHER,
                "untaught");
        for (JoinSide missing : JoinSide.partners()) {
            List<List<JoinSide>> orders =
                    ORDERS.stream().filter(order -> order.get(4) == missing).toList();
            List<Arrivals> all = new ArrayList<>();
            try (TopologyHarness topology = new TopologyHarness(config(), directory.resolve(missing.name()))) {
                for (int i = 0; i < orders.size(); i++) {
                    all.add(new Arrivals(topology, "g-" + i, i));
                    all.get(i).arrive(orders.get(i).subList(0, 4));
                }
                topology.idle(Duration.ofSeconds(599));
                assertThat(topology.outcomes()).as("before their time").isEmpty();
                topology.idle(Duration.ofSeconds(2));
                assertThat(topology.outcomes()).hasSize(orders.size()).allSatisfy(outcome -> {
                    assertThat(outcome.getReason()).isEqualTo(reasons.get(missing));
                    assertThat(outcome.getSource().getTopic()).isEqualTo(TOPICS.rollouts());
                    assertThat(outcome.getDetail()).startsWith("no " + missing.noun() + " came within 600000 ms");
                });
                for (int i = 0; i < orders.size(); i++) {
                    all.get(i).arrive(List.of(missing));
                    assertThat(topology.outcomeNames())
                            .as("%s, too late", orders.get(i))
                            .singleElement()
                            .asString()
                            .startsWith(
                                    "orphan-" + missing.name().toLowerCase(java.util.Locale.ROOT) + " g-" + i + "/0 ");
                }
                assertThat(topology.trajectories()).isEmpty();
            }
        }
    }

    @Test
    void shouldNameTheFirstOfSeveralThatDidNotComeAndTellOfAll() {
        try (Arrivals arrivals = new Arrivals()) {
            arrivals.arrive(List.of(JoinSide.TEACHER, JoinSide.ROLLOUT, JoinSide.SCORE));
            arrivals.topology.idle(Duration.ofMinutes(11));
            assertThat(arrivals.topology.outcomes()).singleElement().satisfies(outcome -> {
                assertThat(outcome.getReason()).isEqualTo("unrewarded");
                assertThat(outcome.getDetail())
                        .startsWith("no reward and no reference score came within 600000 ms of activity");
            });
        }
    }

    @Test
    void shouldLetEveryPartnerLeaveWhoseRolloutDoesNotCome() {
        try (Arrivals arrivals = new Arrivals()) {
            arrivals.arrive(List.of(JoinSide.SCORE, JoinSide.REWARD, JoinSide.REFERENCE, JoinSide.TEACHER));
            arrivals.topology.idle(Duration.ofSeconds(61));
            assertThat(new TreeSet<>(arrivals.topology.outcomeNames()))
                    .containsExactly(
                            "orphan-reference g/0 reference-scores@0",
                            "orphan-reward g/0 rewards@0",
                            "orphan-score g/0 scores@0",
                            "orphan-teacher g/0 teacher-scores@0");
            arrivals.arrive(List.of(JoinSide.ROLLOUT));
            assertThat(arrivals.topology.outcomeNames()).containsExactly("unscored g/0 rollouts@0");
        }
    }

    @Test
    void shouldSayWhatCouldNotBeMadeInEveryOrder() {
        for (List<JoinSide> order : ORDERS) {
            try (Arrivals arrivals = new Arrivals()) {
                arrivals.records.put(
                        JoinSide.REWARD,
                        () -> arrivals.topology.pipe(reward(arrivals.rollout, 0)
                                .setReward(0)
                                .setUnavailable("the judge gave up")
                                .build()));
                arrivals.records.put(
                        JoinSide.TEACHER,
                        () -> arrivals.topology.pipe(
                                JoinSide.TEACHER,
                                scoreBy(PolicyRole.TEACHER, arrivals.rollout, 0)
                                        .setVectors(List.of())
                                        .setUnavailable("no weights")
                                        .build()));
                arrivals.arrive(order);
                List<Outcome> outcomes = arrivals.topology.outcomes();
                assertThat(outcomes).as("%s", order).singleElement().satisfies(outcome -> {
                    assertThat(outcome.getReason()).isEqualTo("reward-unavailable");
                    assertThat(outcome.getDetail()).isEqualTo("the judge gave up");
                });
                assertThat(arrivals.topology.trajectories()).isEmpty();
            }
        }
    }

    @Test
    void shouldRefuseAPartnerThatDoesNotFitAndTakeAnother() {
        for (List<JoinSide> order : ORDERS) {
            try (Arrivals arrivals = new Arrivals()) {
                Rollout longer = rollout("g", 0, 2, 4, -1f, 3).build();
                arrivals.records.put(
                        JoinSide.REFERENCE,
                        () -> arrivals.topology.pipe(
                                JoinSide.REFERENCE,
                                scoreBy(PolicyRole.REFERENCE, longer, 0).build()));
                arrivals.arrive(order);
                assertThat(arrivals.topology.deadLetterNames())
                        .as("%s", order)
                        .containsExactly("misfit vectors.REFERENCE");
                assertThat(arrivals.topology.trajectories()).isEmpty();
                arrivals.topology.pipe(
                        JoinSide.REFERENCE,
                        scoreBy(PolicyRole.REFERENCE, arrivals.rollout, 0).build());
                assertThat(arrivals.topology.trajectories()).as("%s", order).hasSize(1);
                assertThat(arrivals.topology.outcomes()).as("%s", order).isEmpty();
            }
        }
    }

    @Test
    void shouldCallTheSecondOfAKindADuplicateWheneverItComes() {
        for (JoinSide twice : JoinSide.values()) {
            try (Arrivals arrivals = new Arrivals()) {
                arrivals.arrive(List.of(twice, twice));
                List<JoinSide> others = new ArrayList<>(EnumSet.complementOf(EnumSet.of(twice)));
                arrivals.arrive(others);
                arrivals.arrive(List.of(twice));
                String topic = twice.topic(TOPICS).substring(TOPICS.prefix().length());
                assertThat(arrivals.topology.outcomeNames())
                        .as("%s", twice)
                        .containsExactly("duplicate g/0 " + topic + "@1", "duplicate g/0 " + topic + "@2");
                assertThat(arrivals.topology.trajectories()).hasSize(1);
            }
        }
    }

    @Test
    void shouldNotUseWhatIsAboutAnotherRecordOfTheRollout() {
        try (Arrivals arrivals = new Arrivals()) {
            arrivals.topology.pipe(reward(arrivals.rollout, 7).setReward(9).build());
            arrivals.arrive(List.of(JoinSide.ROLLOUT));
            assertThat(arrivals.topology.outcomeNames()).containsExactly("orphan-reward g/0 rewards@0");
            arrivals.arrive(List.of(JoinSide.REWARD, JoinSide.SCORE, JoinSide.REFERENCE, JoinSide.TEACHER));
            assertThat(arrivals.topology.trajectories())
                    .extracting(Trajectory::getReward)
                    .containsExactly(0.25);
        }
    }

    @Test
    void shouldRefuseWhatIsNoRewardAndNoReferenceScore() {
        try (Arrivals arrivals = new Arrivals()) {
            arrivals.topology.pipe(
                    reward(arrivals.rollout, 0).setReward(Double.NaN).build());
            arrivals.topology.pipe(reward(arrivals.rollout, 0)
                    .setRewardComponents(Map.of("judge", Double.NaN))
                    .build());
            arrivals.topology.pipe(reward(arrivals.rollout, 0).setEpoch(1).build());
            arrivals.topology.pipe(
                    JoinSide.REFERENCE,
                    scoreBy(PolicyRole.TEACHER, arrivals.rollout, 0).build());
            arrivals.topology.pipe(JoinSide.TEACHER, score(arrivals.rollout, 0).build());
            assertThat(arrivals.topology.deadLetterNames())
                    .containsExactly(
                            "reward reward",
                            "reward reward_components.judge",
                            "wrong-epoch epoch",
                            "vectors vectors[0]",
                            "vectors vectors[0]");
        }
    }

    @Test
    void shouldNotReadTopicsThatNobodyAskedFor() {
        try (TopologyHarness topology = new TopologyHarness(TopologyConfig.defaults(), directory)) {
            Rollout rollout = rollout("g", 0).build();
            topology.pipe(score(rollout, topology.pipe(rollout)).build());
            assertThat(topology.trajectories()).singleElement().satisfies(trajectory -> {
                assertThat(trajectory.getReward()).isEqualTo(1.0);
                assertThat(trajectory.getRewardSource()).isNull();
                assertThat(trajectory.getReferenceLogProbs()).isNull();
                assertThat(trajectory.getReferenceVersion()).isEqualTo(-1);
            });
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> topology.pipe(reward(rollout, 0).build()))
                    .withMessageContaining("rewards");
        }
    }
}
