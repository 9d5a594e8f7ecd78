package dev.millrace.cli.replay;

import dev.millrace.api.environment.Task;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.replay.report.ReplayTotals;
import dev.millrace.replay.rewards.OtherRewards;
import dev.millrace.replay.rewards.OtherRewards.Comparison;
import dev.millrace.replay.rewards.Verifier;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options of a replay under other rewards than the run's. */
final class RewardOptions {
    @Option(
            names = "--rewards",
            paramLabel = "FILE",
            description =
                    "Rewards in place of the recorded ones: JSON lines of rollout_id and reward, one for each rollout.")
    private Path file;

    @Option(
            names = "--rewarder",
            paramLabel = "COMMAND",
            description = {
                "A program that gives rewards in place of the recorded ones, started through the shell: it reads a JSON object a line",
                "(rollout_id, group_id, prompt, response, prompt_tokens, response_tokens, finish_reason, and the recorded reward) and",
                "answers each with a line of rollout_id and reward."
            })
    private String command;

    @Option(
            names = "--rewarder-timeout",
            paramLabel = "SECONDS",
            description = "Longest wait for an answer of --rewarder (default: ${DEFAULT-VALUE}).")
    private long timeoutSeconds = 60;

    /** A replay's other rewards, and what holds them. */
    record Given(OtherRewards rewards, @Nullable RewardCommand program) implements AutoCloseable {
        @Override
        public void close() {
            if (program != null) {
                program.close();
            }
        }
    }

    boolean isGiven() {
        return file != null || command != null;
    }

    /** Reads the file, or starts the program. */
    Given begin(ReplayedRun run) {
        if (file != null && command != null) {
            throw new ConfigException("--rewards and --rewarder both say what rollouts are worth; give one of them");
        }
        if (timeoutSeconds < 1) {
            throw new ConfigException("--rewarder-timeout must be at least 1 second: " + timeoutSeconds);
        }
        RewardCommand program =
                command == null ? null : new RewardCommand(command, tokenizer(run), Duration.ofSeconds(timeoutSeconds));
        Verifier verifier = program == null ? RewardFile.read(file) : program;
        return new Given(
                new OtherRewards(rollout -> {
                    OtherRewards.refusal(rollout).ifPresent(why -> {
                        throw new RefusedRequestException(why + "; leave out --rewards and --rewarder");
                    });
                    return verifier.verify(rollout);
                }),
                program);
    }

    /** The run's vocabulary, where it is at hand: a program may do with tokens. */
    private static Optional<Tokenizer> tokenizer(ReplayedRun run) {
        try {
            Task task = run.config().task().task();
            task.tokenizer().decode(new int[] {0});
            return Optional.of(task.tokenizer());
        } catch (RuntimeException e) {
            return Optional.empty();
        }
    }

    /** What is said of them behind a replay, whose second alternative sees them under the run's own corrections. */
    static List<String> sentences(Comparison found, ReplayTotals totals) {
        return List.of(String.format(
                Locale.ROOT,
                "%,d rollouts were judged again: %,d have another reward than the record; the mean is %.4f in place of %.4f, and"
                        + " under the run's own corrections the mean |advantage| is %.4f in place of %.4f",
                found.rollouts(),
                found.changed(),
                found.sumOther() / Math.max(1, found.rollouts()),
                found.sumRecorded() / Math.max(1, found.rollouts()),
                totals.meanAbsoluteAdvantage(1),
                totals.meanAbsoluteAdvantage(0)));
    }
}
