package dev.millrace.topology;

import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static dev.millrace.topology.TopologyHarness.header;
import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.advantage.Credit;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.ReinforcePlusPlus;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Rewards of tokens, under an algorithm whose advantage is made of them. */
class CreditFlowTest {
    private static final Algorithm OF_TOKENS =
            Algorithm.defaults().with(a -> a.advantage(new ReinforcePlusPlus(1, Credit.TOKEN)));

    @TempDir
    Path directory;

    private TopologyHarness topology;

    @BeforeEach
    void open() {
        topology = new TopologyHarness(TopologyConfig.defaults(), OF_TOKENS, directory, 100_000);
    }

    @AfterEach
    void close() {
        topology.close();
    }

    @Test
    void shouldCarryTheRewardsThatTheAlgorithmReads() {
        var credit = dev.millrace.schemas.Credit.newBuilder()
                .setTokenLevelRewards(PackedFloats.of(0f, 1f, 0.5f))
                .build();
        Rollout rollout = rollout("g", 0).setCredit(credit).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        assertThat(topology.trajectories()).extracting(Trajectory::getCredit).containsExactly(credit);
    }

    @Test
    void shouldDeadLetterARolloutThatLacksThemRatherThanDecideWithout() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        assertThat(topology.trajectories()).isEmpty();
        assertThat(topology.deadLetters())
                .singleElement()
                .satisfies(dead -> assertThat(header(dead, "message"))
                        .isEqualTo(
                                "a stage of the algorithm reads rewards per token, and the rollout has none; have them recorded"
                                        + " (reward.credit=true, of an environment that knows them, or a reward record with credit), or"
                                        + " leave that stage out"));
    }

    @Test
    void shouldSayWhoCouldHaveWrittenTheValuesThatARolloutLacks() {
        topology.close();
        topology = new TopologyHarness(
                TopologyConfig.defaults(),
                Algorithm.defaults().with(a -> a.advantage(Gae.defaults())),
                directory.resolve("gae"),
                100_000);
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        assertThat(topology.deadLetters())
                .singleElement()
                .satisfies(dead -> assertThat(header(dead, "message"))
                        .isEqualTo(
                                "a stage of the algorithm reads values, and the rollout has none; have the policy's own critic make them"
                                        + " (algorithm.critic=value_head), or a partner's write them (in the credit of a reward record, or"
                                        + " of the rollout), or leave that stage out"));
    }
}
