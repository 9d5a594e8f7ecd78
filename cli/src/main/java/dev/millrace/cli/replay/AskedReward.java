package dev.millrace.cli.replay;

import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.generator.environment.remote.VerdictQuestion;
import dev.millrace.replay.Verifier;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A reward function, asked about recorded rollouts in the place of those that are being sampled. */
final class AskedReward implements Verifier {
    private final String option;
    private final RewardFunction function;
    private final @Nullable Tokenizer tokenizer;
    private final Function<String, Optional<String>> rows;

    /**
     * @param tokenizer of the run; null where it is not at hand, which a remote reward alone does with
     * @param rows what is known beside a group's prompt; empty where it is gone
     */
    AskedReward(
            String option,
            RewardFunction function,
            @Nullable Tokenizer tokenizer,
            Function<String, Optional<String>> rows) {
        this.option = option;
        this.function = function;
        this.tokenizer = tokenizer;
        this.rows = rows;
    }

    @Override
    public Verdict verify(Trajectory rollout) {
        VerifiedReward found;
        try {
            found = function instanceof RemoteReward remote ? remote(remote, rollout) : local(rollout);
        } catch (RefusedRequestException e) {
            throw e;
        } catch (RuntimeException e) {
            Throwable why = e instanceof CompletionException && e.getCause() != null ? e.getCause() : e;
            throw new RefusedRequestException(
                    option + " does not say what rollout " + rollout.getRolloutId() + " is worth: " + why.getMessage(),
                    e);
        }
        if (!found.turnRewards().isEmpty() || !found.tokenRewards().isEmpty()) {
            throw new RefusedRequestException(option + " gives rewards to turns or tokens of rollout "
                    + rollout.getRolloutId() + ", and a replay takes one number for a rollout");
        }
        return new Verdict(found.reward(), found.components());
    }

    private VerifiedReward remote(RemoteReward remote, Trajectory rollout) {
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        Response response = new Response(rollout);
        return remote.ask(new VerdictQuestion(
                        rollout.getRolloutId(),
                        Optional.ofNullable(tokenizer).map(text -> text.decode(prompt)),
                        Optional.ofNullable(tokenizer)
                                .map(text -> finished(rollout, prompt, "", response, text)
                                        .text()),
                        prompt,
                        response.tokens,
                        response.mask,
                        rows.apply(rollout.getGroupId()),
                        Optional.of(rollout.getFinishReason()),
                        rollout.getReward()))
                .toCompletableFuture()
                .join();
    }

    private VerifiedReward local(Trajectory rollout) {
        String state = rows.apply(rollout.getGroupId())
                .orElseThrow(() ->
                        new RefusedRequestException(option + " judges by the row of the prompt, and that of group "
                                + rollout.getGroupId()
                                + " is not on the log any more; replay an archive that was exported in time, or"
                                + " ask a program (--rewarder)"));
        function.requireJudgeable(state);
        Tokenizer text = Objects.requireNonNull(tokenizer, "without one nothing local is asked");
        return function.reward(
                finished(rollout, PackedInts.toArray(rollout.getPromptTokens()), state, new Response(rollout), text));
    }

    private static FinishedResponse finished(
            Trajectory rollout, int[] prompt, String state, Response response, Tokenizer text) {
        return new FinishedResponse(
                prompt,
                state,
                response,
                new VerifiedReward(rollout.getReward(), Map.copyOf(rollout.getRewardComponents())),
                text,
                List.of(),
                rollout.getRolloutId());
    }

    private static final class Response implements Transcript {
        private final int[] tokens;
        private final byte[] mask;

        Response(Trajectory rollout) {
            this.tokens = PackedInts.toArray(rollout.getResponseTokens());
            this.mask = PackedMask.toArray(rollout.getMask());
        }

        @Override
        public int length() {
            return tokens.length;
        }

        @Override
        public int token(int position) {
            return tokens[position];
        }

        @Override
        public boolean byPolicy(int position) {
            return mask[position] == 1;
        }
    }
}
