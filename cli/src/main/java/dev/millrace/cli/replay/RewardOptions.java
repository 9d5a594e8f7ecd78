package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.cli.HelpHeading;
import dev.millrace.generator.environment.OwnVerdict;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.generator.environment.remote.VerdictQuestion;
import dev.millrace.replay.OtherRewards;
import dev.millrace.replay.OtherRewards.Comparison;
import dev.millrace.replay.RewardTopic;
import dev.millrace.replay.Verifier;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.report.ReplayTotals;
import dev.millrace.replay.retrain.RecordedPrompts;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Options of a replay with other rewards. */
@HelpHeading("Other rewards")
final class RewardOptions {
    private static final String TOPIC = "topic:";

    @Option(
            names = "--rewards",
            paramLabel = "WHAT",
            description = "Other rewards: a FILE of JSON lines with rollout_id and reward; topic:NAME, a topic of "
                    + "the run's cluster with records as on rewards; or a kind of reward, such as numeric or "
                    + "'{kind: remote, url: http://127.0.0.1:8070/}'.")
    private String what;

    @Option(
            names = "--rewarder",
            paramLabel = "COMMAND",
            description = "Shell command that rewards rollouts: reads a JSON object per line and answers each with "
                    + "a line of rollout_id and reward. The same as --rewards '{kind: remote, command: "
                    + "COMMAND}'.")
    private String command;

    @Option(
            names = "--rewarder-timeout",
            paramLabel = "SECONDS",
            description = "Longest wait for an answer of --rewarder (default: ${DEFAULT-VALUE}).")
    private long timeoutSeconds = 60;

    /** A part of a configuration. */
    public record Asked(RewardFunction reward) {}

    /**
     * A replay's other rewards.
     *
     * @param judgesAnew whether the source can judge a newly sampled rollout
     * @param prompts data rows for the verifier; closed with this
     */
    record Given(
            OtherRewards rewards,
            boolean judgesAnew,
            @Nullable RowsOfRun prompts) implements AutoCloseable {
        @Override
        public void close() {
            if (prompts != null) {
                prompts.close();
            }
        }
    }

    boolean isGiven() {
        return what != null || command != null;
    }

    /**
     * Reads the file or the topic, or opens the verifier.
     *
     * @param err receives warnings about missing verifier inputs
     */
    Given begin(ReplayedRun run, PrintWriter err) {
        if (what != null && command != null) {
            throw new ConfigException("--rewards and --rewarder both give rewards; give one of them");
        }
        if (timeoutSeconds < 1 || timeoutSeconds > 3_600) {
            throw new ConfigException("--rewarder-timeout must be 1 to 3600 seconds: " + timeoutSeconds);
        }
        if (command != null) {
            return asking(
                    "--rewarder",
                    new RemoteReward("", command, "", Math.toIntExact(timeoutSeconds * 1_000), 1, 0, 1, 1 << 20),
                    run,
                    err);
        }
        if (what.startsWith(TOPIC)) {
            return given(RewardTopic.read(run.recorded(), what.substring(TOPIC.length())), false, null);
        }
        if (Files.isRegularFile(Path.of(what))) {
            return given(RewardFile.read(Path.of(what)), false, null);
        }
        return asking("--rewards", kind(run.config().reward()), run, err);
    }

    /** The named reward, over the run's settings if it is the run's own kind. */
    private RewardFunction kind(RewardFunction ofRun) {
        ObjectNode tree = ConfigTree.empty();
        JsonNode named = what.startsWith("{")
                ? ConfigTree.parse("reward: " + what, "--rewards").get("reward")
                : ConfigTree.parse("reward: {kind: '" + what.replace("'", "") + "'}", "--rewards")
                        .get("reward");
        tree.set("reward", named);
        RewardFunction function;
        try {
            function = ConfigBinder.bind(new Asked(ofRun), tree).reward();
        } catch (ConfigException e) {
            throw new ConfigException(
                    "--rewards " + what + " is neither a file nor a reward: " + e.getMessage()
                            + "; a topic is named as topic:NAME",
                    e);
        }
        if (function instanceof OwnVerdict) {
            throw new ConfigException(
                    "--rewards verified is the recorded reward; name another reward, a file, or topic:NAME");
        }
        if (function instanceof RemoteReward remote) {
            try {
                remote.requireGiven();
            } catch (IllegalArgumentException e) {
                throw new ConfigException(
                        "--rewards remote needs an address, '{kind: remote, url: http://HOST:PORT/}': "
                                + e.getMessage(),
                        e);
            }
        }
        return function;
    }

    private static Given asking(String option, RewardFunction function, ReplayedRun run, PrintWriter err) {
        RowsOfRun rows = new RowsOfRun(run.recorded());
        Tokenizer tokenizer = null;
        try {
            tokenizer = run.config().task().task().tokenizer();
            tokenizer.decode(new int[] {0});
        } catch (RuntimeException e) {
            String why = "the run's tokenizer is not available: " + e.getMessage();
            if (!(function instanceof RemoteReward)) {
                rows.close();
                throw new RefusedRequestException(
                        option + " names a reward that reads text, and " + why
                                + "; put it there, or use a program that works on token ids (--rewarder)",
                        e);
            }
            tokenizer = null;
            err.println(option + " gets token ids and no text, since " + why);
        }
        return given(new AskedReward(option, function, tokenizer, rows::of), true, rows);
    }

    private static Given given(Verifier verifier, boolean judgesAnew, @Nullable RowsOfRun rows) {
        return new Given(
                new OtherRewards(rollout -> {
                    OtherRewards.refusal(rollout).ifPresent(why -> {
                        throw new RefusedRequestException(why + "; leave out --rewards and --rewarder");
                    });
                    return verifier.verify(rollout);
                }),
                judgesAnew,
                rows);
    }

    /** Lines after a replay, whose second alternative has these rewards under the recorded corrections. */
    static List<String> sentences(Comparison found, ReplayTotals totals) {
        return List.of(String.format(
                Locale.ROOT,
                "%s, and under the recorded corrections the mean |advantage| is %.4f in place of %.4f",
                judged(found),
                totals.meanAbsoluteAdvantage(1),
                totals.meanAbsoluteAdvantage(0)));
    }

    /** Number of rewarded rollouts, and the comparison. */
    static String judged(Comparison found) {
        return String.format(
                Locale.ROOT,
                "%,d rollouts were scored again: %,d have another reward than the record; the mean is %.4f in place of %.4f",
                found.rollouts(),
                found.changed(),
                found.sumOther() / Math.max(1, found.rollouts()),
                found.sumRecorded() / Math.max(1, found.rollouts()));
    }

    /** Applies a reward function to recorded rollouts. */
    static final class AskedReward implements Verifier {
        private final String option;
        private final RewardFunction function;
        private final @Nullable Tokenizer tokenizer;
        private final Function<String, Optional<String>> rows;

        /**
         * @param tokenizer of the run; null if unavailable, which only a remote reward supports
         * @param rows data row of a group's prompt; empty if the log lost it
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
                        option + " has no reward for rollout " + rollout.getRolloutId() + ": " + why.getMessage(), e);
            }
            if (!found.turnRewards().isEmpty() || !found.tokenRewards().isEmpty()) {
                throw new RefusedRequestException(option + " gives rewards to turns or tokens of rollout "
                        + rollout.getRolloutId() + ", and a replay accepts one number per rollout");
            }
            return new Verdict(found.reward(), found.components());
        }

        private VerifiedReward remote(RemoteReward remote, Trajectory rollout) {
            int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
            Response response = new Response(rollout);
            return remote.ask(new VerdictQuestion(
                            rollout.getRolloutId(),
                            Optional.ofNullable(tokenizer)
                                    .map(text -> new VerdictQuestion.Texts(
                                            text.decode(prompt),
                                            finished(rollout, prompt, "", response, text)
                                                    .text())),
                            new VerdictQuestion.Tokens(prompt, response.tokens, response.mask),
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
                                    + " is no longer on the log; replay an archive that was exported in time, or"
                                    + " use a program (--rewarder)"));
            function.requireJudgeable(state);
            Tokenizer text = Objects.requireNonNull(tokenizer, "without one nothing local is asked");
            return function.reward(finished(
                    rollout, PackedInts.toArray(rollout.getPromptTokens()), state, new Response(rollout), text));
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

    /** Data rows of a recorded run's prompts, by group; read at the first request. Thread-safe. */
    static final class RowsOfRun implements AutoCloseable {
        private static final int KEPT = 1_024;

        private final RecordedRun run;
        private final Map<String, Optional<String>> newest = new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1;

            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Optional<String>> eldest) {
                return size() > KEPT;
            }
        };
        private @Nullable RecordedPrompts prompts;

        RowsOfRun(RecordedRun run) {
            this.run = run;
        }

        /** The environment's state; empty if the prompt is deleted. */
        synchronized Optional<String> of(String group) {
            if (prompts == null) {
                prompts = RecordedPrompts.all(run);
            }
            RecordedPrompts all = prompts;
            return newest.computeIfAbsent(group, any -> all.find(any).map(PromptRequest::getEnvironmentState));
        }

        @Override
        public synchronized void close() {
            if (prompts != null) {
                prompts.close();
                prompts = null;
            }
        }
    }
}
