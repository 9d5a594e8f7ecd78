package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.cli.HelpHeading;
import dev.millrace.generator.environment.OwnVerdict;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.replay.OtherRewards;
import dev.millrace.replay.OtherRewards.Comparison;
import dev.millrace.replay.RewardTopic;
import dev.millrace.replay.Verifier;
import dev.millrace.replay.report.ReplayTotals;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options of a replay under other rewards than the run's. */
@HelpHeading("Other rewards")
final class RewardOptions {
    private static final String TOPIC = "topic:";

    @Option(
            names = "--rewards",
            paramLabel = "WHAT",
            description = {
                "Rewards in place of the recorded ones: a FILE with JSON lines of rollout_id and reward, one for each rollout;",
                "topic:NAME, a topic of the run's cluster with records as on rewards; or a kind of reward, built in, remote or a plug-in's,",
                "such as numeric or '{kind: remote, url: http://127.0.0.1:8070/}', which is asked about each rollout."
            })
    private String what;

    @Option(
            names = "--rewarder",
            paramLabel = "COMMAND",
            description = {
                "A program that gives rewards in place of the recorded ones, started through the shell: it reads a JSON object a line",
                "(id, rollout_id, prompt, response, prompt_tokens, response_tokens, mask, metadata, finish_reason, and the recorded reward) and",
                "answers each with a line of rollout_id and reward. The same as --rewards '{kind: remote, command: COMMAND}'."
            })
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
     * @param judgesAnew whether whoever gives them can be asked about a rollout that is sampled now
     * @param prompts whose rows they are judged by; closed with this
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
     * Reads the file or the topic, or gets ready to ask.
     *
     * @param err is told what a verifier will lack
     */
    Given begin(ReplayedRun run, PrintWriter err) {
        if (what != null && command != null) {
            throw new ConfigException("--rewards and --rewarder both say what rollouts are worth; give one of them");
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

    /** What is named, over the run's own settings where it is the run's own kind. */
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
                    "--rewards " + what + " is no file, and names no reward: " + e.getMessage()
                            + "; a topic is named as topic:NAME",
                    e);
        }
        if (function instanceof OwnVerdict) {
            throw new ConfigException(
                    "--rewards verified is what the record says already; name another reward, a file, or topic:NAME");
        }
        if (function instanceof RemoteReward remote) {
            try {
                remote.requireGiven();
            } catch (IllegalArgumentException e) {
                throw new ConfigException(
                        "--rewards remote needs whom to ask, '{kind: remote, url: http://HOST:PORT/}': "
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
            String why = "the run's tokenizer is not at hand: " + e.getMessage();
            if (!(function instanceof RemoteReward)) {
                rows.close();
                throw new RefusedRequestException(
                        option + " names a reward that reads text, and " + why
                                + "; put it there, or ask a program that does with token ids (--rewarder)",
                        e);
            }
            tokenizer = null;
            err.println(option + " is told token ids and no text, since " + why);
            err.flush();
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

    /** What is said of them behind a replay, whose second alternative sees them under the run's own corrections. */
    static List<String> sentences(Comparison found, ReplayTotals totals) {
        return List.of(String.format(
                Locale.ROOT,
                "%s, and under the run's own corrections the mean |advantage| is %.4f in place of %.4f",
                judged(found),
                totals.meanAbsoluteAdvantage(1),
                totals.meanAbsoluteAdvantage(0)));
    }

    /** How many were judged, and how that compares. */
    static String judged(Comparison found) {
        return String.format(
                Locale.ROOT,
                "%,d rollouts were judged again: %,d have another reward than the record; the mean is %.4f in place of %.4f",
                found.rollouts(),
                found.changed(),
                found.sumOther() / Math.max(1, found.rollouts()),
                found.sumRecorded() / Math.max(1, found.rollouts()));
    }
}
