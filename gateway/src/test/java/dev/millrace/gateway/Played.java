package dev.millrace.gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.gateway.Session.SessionId;
import dev.millrace.gateway.TurnPlayer.PromptMatcher;
import dev.millrace.gateway.TurnPlayer.TurnPrompt;
import dev.millrace.generator.sampling.AcceptedPrompt;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.SessionTurn;
import dev.millrace.schemas.TokenUsage;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.kafka.common.TopicPartition;

/** Sessions as tests need them: calls as bodies, turns as what the policy wrote. */
final class Played {
    static final CharacterTokenizer TOKENIZER = new CharacterTokenizer();
    static final PromptMatcher MATCHER = new PromptMatcher(TOKENIZER, TOKENIZER.stopTokens(), 512);
    static final SamplingParameters SAMPLING = new SamplingParameters(1.0, 0, 1.0, 32, 7L, false, 0, 0.0, false);
    private static final ObjectMapper JSON = new ObjectMapper();

    private Played() {}

    static AgentCall call(boolean chat, String body) {
        try {
            return AgentCall.of(chat, JSON.readTree(body.replace('\'', '"')), body, false);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    static AgentCall chat(String messages) {
        return call(true, "{'messages': [" + messages + "]}");
    }

    static AcceptedPrompt prompt(String group, long offset, int samples) {
        return prompt(group, offset, samples, new Counts());
    }

    private static AcceptedPrompt prompt(String group, long offset, int samples, Environment environment) {
        PromptRequest request = PromptRequest.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setGroupId(group)
                .setOrdinal(3)
                .setEnvironment("counts")
                .setEnvironmentState("{}")
                .setPromptTokens(PackedInts.of('q'))
                .setSamples(samples)
                .setSampling(SAMPLING)
                .setTokenizerHash("characters")
                .setAdmittedVersion(4)
                .setReleasedAtMs(1)
                .build();
        return new AcceptedPrompt(request, new int[] {'q'}, environment, new TopicPartition("prompts", 2), offset);
    }

    static Session session() {
        return new Session(SessionId.of(2, 5, 1), new ReleasedSample(prompt("g", 5, 2), 1), "walker", 100);
    }

    /** A task whose rewards are available only while the judge runs. */
    static Session session(BooleanSupplier isJudgeThere) {
        Environment judged = new Counts() {
            @Override
            public VerifiedReward verify(Transcript response) {
                if (!isJudgeThere.getAsBoolean()) {
                    throw new IllegalStateException("the judge at http://127.0.0.1:9/ does not answer");
                }
                return super.verify(response);
            }
        };
        return new Session(SessionId.of(2, 5, 1), new ReleasedSample(prompt("g", 5, 2, judged), 1), "walker", 100);
    }

    /** Has the policy answer a call with a text, by version 4 and from its third token on by version 5. */
    static PlayedTurn answer(Session session, AgentCall call, String sampled) {
        TurnPrompt prompt = MATCHER.match(call, session.turns());
        int[] tokens = TOKENIZER.encode(sampled);
        float[] logProbs = new float[tokens.length];
        for (int i = 0; i < logProbs.length; i++) {
            logProbs[i] = -0.5f - i;
        }
        String textAfter = MATCHER.textAfter(prompt, tokens);
        String given = MATCHER.given(tokens, call.sampling().stop());
        int number = session.takeNumber();
        boolean calls = call.hasTools() && ToolFormat.HERMES.read(given).isPresent();
        SessionTurn record = SessionTurn.newBuilder()
                .setTurn(number)
                .setParentTurn(
                        prompt.parent() == null ? -1 : prompt.parent().record().getTurn())
                .setForkReason(session.forkOf(prompt))
                .setForkTurn(prompt.forkTurn())
                .setForkPosition(prompt.forkPosition())
                .setContextTokens(PackedInts.of(prompt.context()))
                .setSampledTokens(PackedInts.of(tokens))
                .setBehaviorLogProbs(PackedFloats.of(logProbs))
                .setLogProbDistribution(LogProbDistribution.RAW)
                .setSampling(SAMPLING)
                .setVersionSpans(
                        tokens.length > 2
                                ? List.of(new VersionSpan(4L, 0, 2), new VersionSpan(5L, 2, tokens.length))
                                : List.of(new VersionSpan(5L, 0, tokens.length)))
                .setFinishReason(
                        calls
                                ? FinishReason.TOOL_CALLS
                                : sampled.endsWith("$") ? FinishReason.STOP : FinishReason.LENGTH)
                .setReceivedAtMs(100)
                .setStartedAtMs(101)
                .setFirstTokenAtMs(102)
                .setFinishedAtMs(103)
                .setUsage(new TokenUsage(prompt.tokens().length, tokens.length, null))
                .setText(given)
                .setTextCharacters(textAfter == null ? -1 : textAfter.length())
                .setTextSha256(textAfter == null ? "" : DigestUtils.sha256Hex(textAfter))
                .setRequestSha256(call.sha256())
                .build();
        PlayedTurn turn = new PlayedTurn(
                record,
                prompt.parent(),
                GivenAnswer.of(session.id().text(), record, TOKENIZER, TOKENIZER.stopTokens(), ToolFormat.HERMES));
        session.add(turn);
        return turn;
    }

    /** Worth one per token of the policy. */
    private static class Counts implements Environment, Episode {
        @Override
        public String name() {
            return "counts";
        }

        @Override
        public int endToken() {
            return -1;
        }

        @Override
        public Episode begin(String state) {
            return this;
        }

        @Override
        public StepResult afterToken(Transcript response) {
            return StepResult.GO_ON;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            int own = 0;
            for (int i = 0; i < response.length(); i++) {
                own += response.byPolicy(i) ? 1 : 0;
            }
            return new VerifiedReward(own, Map.of("own", (double) own));
        }
    }
}
