package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.millrace.gateway.SessionDesk.SessionVerdict;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class SessionRolloutTest {
    private static final EngineIdentity ENGINE = new EngineIdentity("e", "1", "float32", null);
    private final Session session = Played.session();

    private PlayedTurn twoTurns() {
        Played.answer(session, Played.chat("{'role': 'user', 'content': 'a'}"), "yes$");
        return Played.answer(
                session,
                Played.chat("{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': 'yes'},"
                        + " {'role': 'tool', 'content': '1'}"),
                "ok");
    }

    @Test
    void shouldPutTurnsOneBehindTheOtherWithWhatCameInBetweenAsContext() {
        SessionRollout branch = new SessionRollout(session, twoTurns());
        Rollout rollout = branch.record(
                SessionRollout.given(0.5, Map.of("x", 1.0), List.of(0.25, 0.75)),
                null,
                null,
                "g0",
                "policy",
                ENGINE,
                9);

        int between = "tool:1$assistant:".length();
        assertThat(rollout.getRolloutId()).isEqualTo("g/1");
        assertThat(Played.TOKENIZER.decode(PackedInts.toArray(rollout.getPromptTokens())))
                .isEqualTo("user:a$assistant:");
        assertThat(Played.TOKENIZER.decode(PackedInts.toArray(rollout.getResponseTokens())))
                .isEqualTo("yes$tool:1$assistant:ok");
        byte[] mask = PackedMask.toArray(rollout.getMask());
        assertThat(mask).startsWith(1, 1, 1, 1, 0).endsWith(0, 1, 1).hasSize(6 + between);
        float[] logProbs = PackedFloats.toArray(rollout.getBehaviorLogProbs());
        assertThat(logProbs).startsWith(-0.5f, -1.5f, -2.5f, -3.5f, 0f).endsWith(0f, -0.5f, -1.5f);
        assertThat(rollout.getTurns())
                .extracting(turn -> turn.getSpeaker())
                .containsExactly(Speaker.POLICY, Speaker.ENVIRONMENT, Speaker.POLICY);
        assertThat(rollout.getVersionSpans())
                .as("the text in between has the version that it answers")
                .containsExactly(new VersionSpan(4L, 0, 2), new VersionSpan(5L, 2, 6 + between));
        assertThat(PackedFloats.toArray(rollout.getCredit().getTurnLevelRewards()))
                .containsExactly(0.25f, 0f, 0.75f);
        assertThat(rollout.getFinishReason()).isEqualTo(FinishReason.LENGTH);
        assertThat(rollout.getSampling().getMaxTokens()).isEqualTo(32);
        assertThat(rollout.getTurns().get(2).getDetails().getUsage().getCompletionTokens())
                .isEqualTo(2);
    }

    @Test
    void shouldBeJudgedByTheRunWhereTheAgentDoesNot() {
        assertThat(new SessionRollout(session, twoTurns()).judged().reward()).isEqualTo(6);
    }

    @Test
    void shouldLeaveASessionOpenWhileTheRunsOwnRewardCannotJudgeIt() {
        AtomicBoolean isJudgeThere = new AtomicBoolean();
        Session judged = Played.session(isJudgeThere::get);
        SessionRollout branch = new SessionRollout(
                judged, Played.answer(judged, Played.chat("{'role': 'user', 'content': 'a'}"), "yes$"));
        SessionVerdict unrewarded = SessionVerdict.of(JsonNodeFactory.instance.objectNode());

        assertThatThrownBy(() -> SessionDesk.reward(branch, unrewarded))
                .isInstanceOfSatisfying(RefusedCallException.class, refused -> {
                    assertThat(refused.status()).isEqualTo(503);
                    assertThat(refused.code()).isEqualTo("not_judged");
                })
                .hasMessage("the run's own reward cannot score the session: the judge at http://127.0.0.1:9/ does not"
                        + " answer; complete it again later, or with a reward");
        assertThat(SessionDesk.reward(
                                branch,
                                SessionVerdict.of(
                                        JsonNodeFactory.instance.objectNode().put("reward", 0.25)))
                        .reward())
                .as("the agent says it itself")
                .isEqualTo(0.25);
        isJudgeThere.set(true);
        assertThat(SessionDesk.reward(branch, unrewarded).reward())
                .as("asked again when the judge is back")
                .isEqualTo(4);
    }
}
