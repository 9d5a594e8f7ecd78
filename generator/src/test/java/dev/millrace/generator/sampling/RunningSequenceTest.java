package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.Guess;
import dev.millrace.generator.environment.OwnVerdict;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

class RunningSequenceTest {
    private static final int[] PROMPT = {Symbols.BEGIN, Symbols.SEPARATOR};
    private final RolloutRecords records = new RolloutRecords("generator-0");

    @Test
    void shouldWriteDownAMultiTurnRolloutWithItsMaskTurnsAndSpans() {
        RunningSequence sequence = sequence(new Guess(), "7/3", 6);

        assertThat(sequence.sampled(Symbols.digit(5), -0.5f, -0.5f, 3)).isFalse(); // the environment speaks
        assertThat(sequence.known()).isEqualTo(4);
        assertThat(sequence.sequenceToken(3)).isEqualTo(Symbols.HIGHER);
        assertThat(sequence.sampled(Symbols.digit(8), -0.25f, -0.25f, 4)).isFalse();
        assertThat(sequence.finishReason()).isNull();
        assertThat(sequence.sampled(Symbols.digit(7), -0.125f, -0.125f, 4)).isFalse();

        Rollout rollout = records.of(sequence, 20);
        assertThat(rollout.getFinishReason()).isEqualTo(FinishReason.ENVIRONMENT);
        assertThat(PackedInts.toArray(rollout.getResponseTokens()))
                .containsExactly(
                        Symbols.digit(5),
                        Symbols.HIGHER,
                        Symbols.digit(8),
                        Symbols.LOWER,
                        Symbols.digit(7),
                        Symbols.FOUND);
        assertThat(PackedMask.toArray(rollout.getMask())).containsExactly(1, 0, 1, 0, 1, 0);
        assertThat(PackedFloats.toArray(rollout.getBehaviorLogProbs()))
                .containsExactly(-0.5f, 0f, -0.25f, 0f, -0.125f, 0f);
        // what the environment said belongs to the span it answered
        assertThat(rollout.getVersionSpans()).containsExactly(new VersionSpan(3L, 0, 2), new VersionSpan(4L, 2, 6));
        assertThat(rollout.getTurns())
                .containsExactly(
                        new Turn(Speaker.POLICY, 0, 1, null), new Turn(Speaker.ENVIRONMENT, 1, 2, null),
                        new Turn(Speaker.POLICY, 2, 3, null), new Turn(Speaker.ENVIRONMENT, 3, 4, null),
                        new Turn(Speaker.POLICY, 4, 5, null), new Turn(Speaker.ENVIRONMENT, 5, 6, null));
        assertThat(rollout.getReward()).isEqualTo(1.0); // found with the last of three guesses
        assertThat(rollout.getRolloutId()).isEqualTo("0-9/2");
        assertThat(rollout.getSampleIndex()).isEqualTo(2);
        assertThat(rollout.getGroupSize()).isEqualTo(4);
        assertThat(rollout.getStartedAtMs()).isEqualTo(10);
        assertThat(rollout.getFinishedAtMs()).isEqualTo(20);
        assertThat(rollout.getLogProbDistribution()).isEqualTo(LogProbDistribution.RAW);
        assertThat(rollout.getTemperedLogProbs()).isNull();
    }

    @Test
    void shouldWriteDownWhatTurnsAndTokensAreWorthWhereTheEnvironmentSays() {
        RunningSequence guessing = sequence(new Guess(), "7/3", 6);
        guessing.sampled(Symbols.digit(5), -0.5f, -0.5f, 3);
        guessing.sampled(Symbols.digit(7), -0.25f, -0.25f, 3);
        Credit perTurn = records.of(guessing, 20).getCredit();
        assertThat(PackedFloats.toArray(perTurn.getTurnLevelRewards())) // the environment's turns between the policy's
                .containsExactly(0f, 0f, 1f, 0f);
        assertThat(perTurn.getTokenLevelRewards()).isNull();

        RunningSequence answering = sequence(new FixedAnswer(), "1234", 4);
        for (int digit : new int[] {1, 3, 3, 4}) {
            answering.sampled(Symbols.digit(digit), -1f, -1f, 0);
        }
        Credit perToken = records.of(answering, 20).getCredit();
        assertThat(PackedFloats.toArray(perToken.getTokenLevelRewards())).containsExactly(0.25f, 0f, 0.25f, 0.25f);
        assertThat(perToken.getTurnLevelRewards()).isNull();
        assertThat(perToken.getTokenLevelAdvantages()).isNull();
    }

    @Test
    void shouldWriteDownNoCreditWhereTheRewardIsTheResponses() {
        PromptRequest request = request(new FixedAnswer(), "12")
                .setSampling(Requests.sampling(1, 0, 1, 2))
                .build();
        Environments environments =
                new Environments(List.of(new FixedAnswer()), OwnVerdict.defaults(), Symbols.tokenizer());
        RunningSequence sequence =
                new RunningSequence(Requests.accepted(request, PROMPT, environments.playing(request)), 0, 16, 10);
        sequence.sampled(Symbols.digit(1), -1f, -1f, 0);
        sequence.sampled(Symbols.digit(2), -1f, -1f, 0);
        Rollout rollout = records.of(sequence, 20);
        assertThat(rollout.getReward()).isEqualTo(1);
        assertThat(rollout.getCredit()).isNull();
    }

    @Test
    void shouldCostTheRolloutWhereRewardsAreNotOneForEachTokenOrTurn() {
        RunningSequence tokens =
                sequence(rewarding(new VerifiedReward(1, Map.of()).withTokenRewards(List.of(1.0))), "", 2);
        tokens.sampled(Symbols.digit(1), -1f, -1f, 0);
        tokens.sampled(Symbols.digit(2), -1f, -1f, 0);
        assertFailed(
                tokens, "its reward: there are 1 rewards for the 2 tokens of the response; give one to each, or none");
        RunningSequence turns =
                sequence(rewarding(new VerifiedReward(1, Map.of()).withTurnRewards(List.of(1.0, 2.0))), "", 1);
        turns.sampled(Symbols.digit(1), -1f, -1f, 0);
        assertFailed(turns, "its reward: there are 2 rewards for the 1 turns of the policy; give one to each, or none");
        assertThatThrownBy(() -> new VerifiedReward(1, Map.of()).withTurnRewards(List.of(0.0, 1e40)))
                .hasMessage("the reward of a turn must be finite: 1.0E40 at turn 1");
    }

    @Test
    void shouldCostTheRolloutWhereItsEnvironmentThrowsOrSaysWhatIsNoToken() {
        RunningSequence thrown = sequence(
                saying(response -> {
                    throw new IllegalStateException("the sandbox is gone");
                }),
                "",
                4);
        assertThat(thrown.sampled(Symbols.digit(1), -1f, -1f, 3)).isFalse();
        assertFailed(thrown, "environment saying: the sandbox is gone");
        assertThat(records.of(thrown, 20).getVersionSpans()).containsExactly(new VersionSpan(3L, 0, 1));

        RunningSequence foreign = sequence(saying(response -> StepResult.insert(16)), "", 4);
        assertThat(foreign.sampled(Symbols.digit(1), -1f, -1f, 3)).isFalse();
        assertThat(foreign.length()).isEqualTo(1);
        assertFailed(foreign, "environment saying: it said token 16, which is not among the 16 of the vocabulary");
    }

    @Test
    void shouldTellOfAnEpisodeThatCannotBeginAfterTheFirstToken() {
        RunningSequence sequence = sequence(new FixedAnswer(), "no digits", 4);
        assertThat(sequence.finishReason()).isNull();
        assertThat(sequence.sampled(Symbols.digit(1), -1f, -1f, 3)).isFalse();
        assertThat(sequence.failure()).startsWith("environment fixed-answer: ");
        assertThat(records.of(sequence, 20).getFinishReason()).isEqualTo(FinishReason.FAILED);
    }

    @Test
    void shouldLetAnEnvironmentOpenBeforeThePolicysFirstToken() {
        RunningSequence sequence = sequence(
                opening(response -> response.length() == 0 ? StepResult.insert(Symbols.HIGHER) : StepResult.END),
                "",
                4);
        assertThat(sequence.waits()).isTrue();
        assertThat(sequence.stepEnvironment()).isFalse();
        assertThat(sequence.waits()).isFalse();
        assertThat(sequence.sampled(Symbols.digit(1), -1f, -1f, 3)).isFalse();
        Rollout rollout = records.of(sequence, 20);
        assertThat(PackedMask.toArray(rollout.getMask())).containsExactly(0, 1);
        assertThat(rollout.getVersionSpans()).containsExactly(new VersionSpan(3L, 0, 2));
        assertThat(rollout.getFinishReason()).isEqualTo(FinishReason.ENVIRONMENT);
    }

    @Test
    void shouldFailAfterTheFirstTokenWhereAnOpeningEndsOrLeavesNoRoom() {
        RunningSequence over = sequence(opening(response -> StepResult.END), "", 4);
        over.stepEnvironment();
        over.sampled(Symbols.digit(1), -1f, -1f, 3);
        assertFailed(over, "environment saying: the episode ended before the policy wrote a token");
        RunningSequence full = sequence(opening(response -> StepResult.insert(3, 4)), "", 2);
        full.stepEnvironment();
        full.sampled(Symbols.digit(1), -1f, -1f, 3);
        assertFailed(
                full,
                "environment saying: it opened with 2 tokens, and a response has 2 (max_tokens), and the policy needs"
                        + " one");
    }

    @Test
    void shouldWaitForAVerdictThatTakesTimeAndFailWithIt() {
        CompletableFuture<VerifiedReward> verdict = new CompletableFuture<>();
        RunningSequence rewarded = sequence(judging(verdict), "", 1);
        rewarded.sampled(Symbols.digit(1), -1f, -1f, 3);
        rewarded.judge();
        assertThat(rewarded.isJudged()).isFalse();
        verdict.complete(new VerifiedReward(0.75, Map.of("style", 0.25)));
        assertThat(rewarded.isJudged()).isTrue();
        assertThat(records.of(rewarded, 20).getReward()).isEqualTo(0.75);
        assertThat(records.of(rewarded, 20).getRewardComponents()).containsExactly(Map.entry("style", 0.25));

        RunningSequence failed =
                sequence(judging(CompletableFuture.failedFuture(new IllegalStateException("no answer"))), "", 1);
        failed.sampled(Symbols.digit(1), -1f, -1f, 3);
        failed.judge();
        assertThat(failed.isJudged()).isTrue();
        assertFailed(failed, "its reward: no answer");
    }

    private void assertFailed(RunningSequence sequence, String error) {
        Rollout rollout = records.of(sequence, 20);
        assertThat(rollout.getError()).isEqualTo(error);
        assertThat(rollout.getFinishReason()).isEqualTo(FinishReason.FAILED);
        assertThat(rollout.getReward()).isZero();
        assertThat(rollout.getCredit()).isNull();
    }

    private static Environment saying(Function<Transcript, StepResult> says) {
        return playing(says, false, Optional.empty());
    }

    private static Environment opening(Function<Transcript, StepResult> says) {
        return playing(says, true, Optional.empty());
    }

    private static Environment judging(CompletionStage<VerifiedReward> verdict) {
        return playing(response -> StepResult.GO_ON, false, Optional.of(verdict));
    }

    private static Environment playing(
            Function<Transcript, StepResult> says, boolean opens, Optional<CompletionStage<VerifiedReward>> verdict) {
        return new Environment() {
            @Override
            public String name() {
                return "saying";
            }

            @Override
            public int endToken() {
                return -1;
            }

            @Override
            public Episode begin(String state) {
                return new Episode() {
                    @Override
                    public boolean opens() {
                        return opens;
                    }

                    @Override
                    public StepResult afterToken(Transcript response) {
                        return says.apply(response);
                    }

                    @Override
                    public VerifiedReward verify(Transcript response) {
                        return new VerifiedReward(1, Map.of());
                    }

                    @Override
                    public Optional<CompletionStage<VerifiedReward>> verifyLater(Transcript response) {
                        return verdict;
                    }
                };
            }
        };
    }

    /** Gives every response the same verdict. */
    private static Environment rewarding(VerifiedReward verdict) {
        return new Environment() {
            @Override
            public String name() {
                return "rewarding";
            }

            @Override
            public int endToken() {
                return -1;
            }

            @Override
            public Episode begin(String state) {
                return new Episode() {
                    @Override
                    public StepResult afterToken(Transcript response) {
                        return StepResult.GO_ON;
                    }

                    @Override
                    public VerifiedReward verify(Transcript response) {
                        return verdict;
                    }
                };
            }
        };
    }

    @Test
    void shouldEndWithLengthWhenTheEnvironmentsWordsDoNotFit() {
        RunningSequence sequence = sequence(new Guess(), "7/3", 1);
        assertThat(sequence.sampled(Symbols.digit(5), -1f, -1f, 0)).isFalse();
        assertThat(sequence.finishReason()).isEqualTo(FinishReason.LENGTH);
        assertThat(sequence.length()).isEqualTo(1);
        assertThat(sequence.verdict().orElseThrow().reward()).isZero();
    }

    @Test
    void shouldEndWithLengthWhenTheLastTokenIsTheEnvironments() {
        RunningSequence sequence = sequence(new Guess(), "7/3", 2);
        sequence.sampled(Symbols.digit(5), -1f, -1f, 0);
        assertThat(sequence.finishReason()).isEqualTo(FinishReason.LENGTH);
        assertThat(sequence.length()).isEqualTo(2);
    }

    @Test
    void shouldEndWhenTheEnvironmentSaysSoEvenAtTheLastToken() {
        RunningSequence sequence = sequence(new FixedAnswer(), "12", 2);
        assertThat(sequence.sampled(Symbols.digit(1), -1f, -1f, 0)).isTrue();
        assertThat(sequence.sampled(Symbols.digit(3), -1f, -1f, 0)).isFalse();
        assertThat(sequence.finishReason()).isEqualTo(FinishReason.ENVIRONMENT);
        assertThat(sequence.verdict().orElseThrow().reward()).isEqualTo(0.5);
    }

    @Test
    void shouldStopAtTheEndTokenOfAnEnvironmentThatHasOne() {
        RunningSequence sequence = sequence(new UntilEnd(), "", 5);
        assertThat(sequence.sampled(Symbols.digit(1), -1f, -1f, 0)).isTrue();
        assertThat(sequence.sampled(Symbols.END, -1f, -1f, 0)).isFalse();
        assertThat(sequence.finishReason()).isEqualTo(FinishReason.STOP);
        assertThat(sequence.verdict().orElseThrow().reward()).isEqualTo(2.0); // the end token is part of the response
    }

    @Test
    void shouldRecordBothLogProbsWhereTheDistributionWasCut() {
        PromptRequest request = request(new FixedAnswer(), "12")
                .setSampling(Requests.sampling(0.7, 3, 1, 2))
                .build();
        RunningSequence sequence =
                new RunningSequence(Requests.accepted(request, PROMPT, new FixedAnswer()), 0, 16, 10);
        sequence.sampled(Symbols.digit(1), -0.5f, -0.75f, 0);
        sequence.sampled(Symbols.digit(2), -0.25f, -1f, 0);
        Rollout rollout = records.of(sequence, 11);
        assertThat(rollout.getLogProbDistribution()).isEqualTo(LogProbDistribution.TRUNCATED);
        assertThat(PackedFloats.toArray(rollout.getBehaviorLogProbs())).containsExactly(-0.5f, -0.25f);
        assertThat(PackedFloats.toArray(rollout.getTemperedLogProbs())).containsExactly(-0.75f, -1f);
        assertThat(ComparedDistribution.sampled(Requests.sampling(0.7, 0, 1, 2)))
                .isEqualTo(LogProbDistribution.TEMPERED);
        assertThat(ComparedDistribution.sampled(Requests.sampling(1, 0, 0.9, 2)))
                .isEqualTo(LogProbDistribution.TRUNCATED);
    }

    @Test
    void shouldKeepEveryTokenOfALongResponse() {
        PromptRequest request = request(new UntilEnd(), "")
                .setSampling(Requests.sampling(1, 0, 1, 300))
                .build();
        RunningSequence sequence = new RunningSequence(Requests.accepted(request, PROMPT, new UntilEnd()), 0, 16, 10);
        for (int i = 0; i < 300; i++) {
            sequence.sampled(2 + i % 14, -i - 1f, -i - 1f, i / 100);
        }
        Rollout rollout = records.of(sequence, 11);
        assertThat(rollout.getFinishReason()).isEqualTo(FinishReason.LENGTH);
        assertThat(PackedInts.get(rollout.getResponseTokens(), 299)).isEqualTo(2 + 299 % 14);
        assertThat(PackedFloats.get(rollout.getBehaviorLogProbs(), 299)).isEqualTo(-300f);
        assertThat(rollout.getVersionSpans())
                .containsExactly(
                        new VersionSpan(0L, 0, 100), new VersionSpan(1L, 100, 200), new VersionSpan(2L, 200, 300));
    }

    @Test
    void shouldDrawByGroupAndSampleAndPositionAlone() {
        RunningSequence one = sequence(new Guess(), "7/3", 6);
        RunningSequence same = sequence(new Guess(), "1/3", 6);
        assertThat(one.uniform(2)).isEqualTo(same.uniform(2)).isNotEqualTo(one.uniform(3));
        RunningSequence sibling = new RunningSequence(one.prompt(), 1, 16, 10);
        assertThat(sibling.uniform(2)).isNotEqualTo(one.uniform(2));
    }

    @Test
    void shouldRefuseALogProbThatIsNoNumber() {
        RunningSequence sequence = sequence(new Guess(), "7/3", 6);
        assertThatThrownBy(() -> sequence.sampled(Symbols.digit(5), Float.NaN, -1f, 12))
                .hasMessageContaining("version 12")
                .hasMessageContaining("response position 0 of 0-9/2")
                .hasMessageContaining("NaN");
    }

    private static RunningSequence sequence(Environment environment, String state, int maxTokens) {
        PromptRequest request = request(environment, state)
                .setSampling(Requests.sampling(1, 0, 1, maxTokens))
                .build();
        return new RunningSequence(Requests.accepted(request, PROMPT, environment), 2, 16, 10);
    }

    private static PromptRequest.Builder request(Environment environment, String state) {
        return Requests.request(9, PROMPT, environment.name(), state, 4);
    }
}
