package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.cli.replay.RewardOptions.AskedReward;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.generator.environment.text.ExactReward;
import dev.millrace.replay.Verifier.Verdict;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OtherRewardsTest {
    private static final int LIMIT = 90_000;

    @TempDir
    private Path directory;

    private static Trajectory rollout(String id) {
        LogCoordinates place = new LogCoordinates("t", 0, 0L);
        return Trajectory.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setPolicyId("policy")
                .setRolloutId(id)
                .setGroupId("g")
                .setOrdinal(0)
                .setSampleIndex(0)
                .setGroupSize(1)
                .setRolloutSource(place)
                .setScoreSource(place)
                .setPromptTokens(PackedInts.of(new int[] {1}))
                .setResponseTokens(PackedInts.of(new int[] {2, 3}))
                .setMask(PackedMask.of(new byte[] {1, 1}))
                .setTemperature(1)
                .setVersionSpans(List.of())
                .setBehaviorLogProbs(PackedFloats.of(new float[2]))
                .setOldLogProbs(PackedFloats.of(new float[2]))
                .setProximalLogProbs(PackedFloats.of(new float[2]))
                .setProximalVersion(0)
                .setReward(0.25)
                .setFinishReason("STOP")
                .setFinishedAtMs(0)
                .setScoredAtMs(0)
                .build();
    }

    private static Verdict ask(String command, String id, int limitMs) {
        RemoteReward program = new RemoteReward("", command, "", limitMs, 1, 0, 1, 4_096);
        return new AskedReward("--rewarder", program, null, group -> Optional.empty()).verify(rollout(id));
    }

    @Test
    void shouldAskTheProgramAboutOneRolloutAfterTheOther() throws IOException {
        Path asked = directory.resolve("asked");
        String script = "while read line; do echo \"$line\" >> " + asked
                + "; n=$((n+1)); echo '{\"rollout_id\": \"g/'$n'\", \"reward\": '$n', \"reward_components\": {\"n\": 7}}'; done";
        assertThat(ask(script, "g/1", LIMIT)).isEqualTo(new Verdict(1, Map.of("n", 7.0)));
        assertThat(ask(script, "g/2", LIMIT)).isEqualTo(new Verdict(2, Map.of("n", 7.0)));
        assertThat(Files.readAllLines(asked).get(1))
                .startsWith("{\"protocol\":1,\"id\":\"g/2#")
                .endsWith(
                        "\"rollout_id\":\"g/2\",\"group_id\":\"g\",\"prompt_tokens\":[1],\"response_tokens\":[2,3],\"mask\":[1,1],"
                                + "\"finish_reason\":\"STOP\",\"reward\":0.25}");
    }

    @Test
    void shouldSayWhatIsWrongWithAnAnswer() {
        assertThatThrownBy(() -> ask("read x; echo '{\"rollout_id\": \"g/2\", \"reward\": 1}'; cat", "g/1", LIMIT))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageStartingWith("--rewarder has no reward for rollout g/1: ")
                .hasMessageEndingWith("answered another request: rollout_id is \"g/2\", asked was \"g/1\"");
        assertThatThrownBy(() -> ask("read x; echo '{\"rollout_id\": \"g/1\", \"reward\": \"1\"}'; cat", "g/1", LIMIT))
                .hasMessageEndingWith("without a finite number as reward: \"1\"");
        assertThatThrownBy(() -> ask("read x; exit 3", "g/1", LIMIT))
                .hasMessage("--rewarder has no reward for rollout g/1: 'read x; exit 3' gives no answer: it ended"
                        + " with status 3");
        assertThatThrownBy(() -> ask("exec sleep 1000", "g/1", 50))
                .hasMessageContaining("it has not answered within 50 ms");
        assertThatThrownBy(() -> ask(
                        "read x; echo '{\"rollout_id\": \"g/1\", \"reward\": 1, \"token_rewards\": [1, 2]}'; cat",
                        "g/1",
                        LIMIT))
                .hasMessageEndingWith(
                        "gives rewards to turns or tokens of rollout g/1, and a replay accepts one number per rollout");
    }

    @Test
    void shouldRefuseAKindThatNeedsARowWhereThePromptIsGone() {
        AskedReward exact =
                new AskedReward("--rewards", ExactReward.defaults(), Symbols.tokenizer(), group -> Optional.empty());
        assertThatThrownBy(() -> exact.verify(rollout("g/1")))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageStartingWith(
                        "--rewards judges by the row of the prompt, and that of group g is no longer on the log");
    }

    @Test
    void shouldReadRewardsFromAFileAndNameWhatIsMissingOrTwice() throws IOException {
        Path file = directory.resolve("rewards.jsonl");
        Files.writeString(file, "{\"rollout_id\": \"g/1\", \"reward\": 2.5}\n\n");
        RewardFile rewards = RewardFile.read(file);
        assertThat(rewards.verify(rollout("g/1"))).isEqualTo(new Verdict(2.5, Map.of()));
        assertThatThrownBy(() -> rewards.verify(rollout("g/2")))
                .hasMessage("--rewards " + file
                        + " has no reward for rollout g/2; give one for each rollout of the batches that are replayed");
        Files.writeString(file, "{\"rollout_id\": \"g/1\", \"reward\": 2.5}\n{\"rollout_id\": \"g/1\", \"reward\": 1}");
        assertThatThrownBy(() -> RewardFile.read(file))
                .hasMessage("--rewards " + file + ": line 2: rollout g/1 has a reward already");
    }
}
