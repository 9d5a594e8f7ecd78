package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.gateway.SessionDesk.SessionBranches;
import dev.millrace.gateway.SessionDesk.SessionVerdict;
import dev.millrace.gateway.SessionEnding.BranchEnding;
import dev.millrace.schemas.Branch;
import dev.millrace.schemas.BranchReason;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SessionBranchesTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final EngineIdentity ENGINE = new EngineIdentity("e", "1", "float32", null);
    private static final String FIRST = "{'role': 'user', 'content': 'a'}";
    private static final String SAID = FIRST + ", {'role': 'assistant', 'content': 'yes'}";
    private static final String TOOL = SAID + ", {'role': 'tool', 'content': '1'}";

    private final Session session = Played.session();

    private PlayedTurn answer(String messages, String sampled) {
        return Played.answer(session, Played.chat(messages), sampled);
    }

    private List<BranchEnding> ends(PlayedTurn main, String verdict) {
        SessionBranches branches = branches(main, verdict);
        List<ReleasedSample> samples = new ArrayList<>();
        for (int i = 0; i < branches.count(); i++) {
            samples.add(new ReleasedSample(session.sample().prompt(), 2 + i));
        }
        return branches.rollouts(
                samples, SessionRollout.given(4, Map.of("right", 2.0), List.of()), "g/1", "g0", "policy", ENGINE, 9);
    }

    private SessionBranches branches(PlayedTurn main, String verdict) {
        try {
            return new SessionBranches(session, main, SessionVerdict.of(JSON.readTree(verdict.replace('\'', '"'))));
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    private static String text(ByteBuffer tokens) {
        return Played.TOKENIZER.decode(PackedInts.toArray(tokens));
    }

    @Test
    void shouldTrainOnAFurtherBranchFromWhereItIsItsOwn() {
        answer(FIRST, "yes$");
        PlayedTurn main = answer(TOOL, "ok");
        PlayedTurn other = answer(SAID + ", {'role': 'tool', 'content': '2'}", "no$");
        Rollout rollout = ends(main, "{'branches': [{'turn': 2, 'reward': 3, 'reward_components': {'x': 1}}]}")
                .get(0)
                .rollout();

        assertThat(rollout.getRolloutId()).isEqualTo("g/2");
        assertThat(rollout.getSampleIndex()).isEqualTo(2);
        assertThat(rollout.getBranch())
                .isEqualTo(new Branch("g/1", other.parent().tokens().length, BranchReason.EDIT, null));
        assertThat(text(rollout.getPromptTokens()))
                .as("what the first turn said is trained on in the session's own rollout")
                .isEqualTo("user:a$assistant:yes$tool:2$assistant:");
        assertThat(text(rollout.getResponseTokens())).isEqualTo("no$");
        assertThat(PackedMask.toArray(rollout.getMask())).containsOnly(1);
        assertThat(rollout.getReward()).isEqualTo(3);
        assertThat(rollout.getRewardComponents()).containsOnly(Map.entry("x", 1.0));
    }

    @Test
    void shouldGiveAShareOfTheSessionsRewardAndSayWhich() {
        answer(FIRST, "yes$");
        PlayedTurn main = answer(TOOL, "ok");
        answer("{'role': 'user', 'content': 'b'}", "no$");
        Rollout rollout = ends(main, "{'branches': [{'turn': 2, 'reward_share': 0.25}]}")
                .get(0)
                .rollout();
        assertThat(rollout.getReward()).isEqualTo(1);
        assertThat(rollout.getRewardComponents()).containsOnly(Map.entry("right", 0.5));
        assertThat(rollout.getBranch())
                .as("both begin with 'user:'")
                .isEqualTo(new Branch("g/1", "user:".length(), BranchReason.EDIT, 0.25));
        assertThat(text(rollout.getPromptTokens())).isEqualTo("user:b$assistant:");
    }

    @Test
    void shouldMakeARolloutOfEachBranchButOfAnswersThatTheAgentLetFall() {
        answer(FIRST, "hm$"); // 0: asked again
        PlayedTurn first = answer(FIRST, "yes$"); // 1
        answer(TOOL, "ok"); // 2: a branch of its own
        answer("{'role': 'user', 'content': 'sub'}", "sub$"); // 3: another
        PlayedTurn main = answer(SAID + ", {'role': 'tool', 'content': 'short'}", "end$"); // 4
        assertThat(main.parent()).isSameAs(first);
        List<BranchEnding> ends = ends(main, "{'branches': 'all'}");
        assertThat(ends).extracting(BranchEnding::lastTurn).containsExactly(2, 3);
        assertThat(ends).extracting(end -> end.rollout().getReward()).containsExactly(4.0, 4.0);
        assertThat(ends)
                .extracting(end -> end.rollout().getBranch().getRewardShare())
                .containsExactly(1.0, 1.0);
        assertThat(ends.get(0).rollout().getBranch().getReason()).isNotNull();
        assertThat(ends.get(1).rollout().getBranch().getReason()).isEqualTo(BranchReason.EDIT);
        assertThat(ends(main, "{'branches': [{'turn': 0}]}"))
                .as("one that is named is made")
                .hasSize(1);
    }

    @Test
    void shouldNameABranchOfABranchAsItsParent() {
        answer(FIRST, "yes$");
        PlayedTurn main = answer(TOOL, "ok");
        answer("{'role': 'user', 'content': 'b'}", "no$"); // 2
        answer(
                "{'role': 'user', 'content': 'b'}, {'role': 'assistant', 'content': 'no'}, {'role': 'tool', 'content': '1'}",
                "x$");
        List<BranchEnding> ends = ends(main, "{'branches': [{'turn': 2}, {'turn': 3}]}");
        assertThat(ends.get(1).rollout().getBranch().getParentRolloutId()).isEqualTo("g/2");
        assertThat(text(ends.get(1).rollout().getPromptTokens())).isEqualTo("user:b$assistant:no$tool:1$assistant:");
    }

    @Test
    void shouldRefuseWhatDoesNotFit() {
        answer(FIRST, "yes$");
        PlayedTurn main = answer(TOOL, "ok");
        answer("{'role': 'user', 'content': 'b'}", "no$");
        assertThatThrownBy(() -> branches(main, "{'branches': [{'turn': 0}]}"))
                .hasMessage("the branch that ends with turn 0 has no turn that is not part of one that is trained on"
                        + " already");
        assertThatThrownBy(() -> branches(main, "{'branches': [{'turn': 7}]}"))
                .hasMessage("there is no turn 7 in this session");
        assertThatThrownBy(() -> branches(main, "{'branches': [{'turn': 2, 'turn_rewards': [1, 2]}]}"))
                .hasMessageStartingWith("turn_rewards must be one for each of the 1 turns");
        assertThatThrownBy(() -> branches(main, "{'branches': [{'turn': 2, 'reward_share': 1.5}]}"))
                .hasMessage("branches[0].reward_share must be from 0 to 1: 1.5");
        assertThatThrownBy(() -> branches(main, "{'branches': [{'turn': 2, 'reward': 1, 'reward_share': 1}]}"))
                .hasMessage("branches[0].reward_share must be left out where branches[0].reward is given: 1");
        assertThatThrownBy(() -> branches(main, "{'branches': 'some'}"))
                .hasMessage("branches must be \"all\", or a list of objects with turn: \"some\"");
        assertThatThrownBy(() -> branches(main, "{'branches': [{'turn': 2, 'share': 1}]}"))
                .hasMessageStartingWith("branches[0].share is no field here");
        assertThatThrownBy(() -> branches(main, "{'status': 'failed', 'branches': [{'turn': 2}]}"))
                .hasMessageStartingWith("branches must be left out of a session that failed");
        assertThat(branches(main, "{'status': 'failed', 'branches': 'all'}").count())
                .isZero();
    }
}
