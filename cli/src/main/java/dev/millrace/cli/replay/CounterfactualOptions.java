package dev.millrace.cli.replay;

import dev.millrace.cli.HelpHeading;
import dev.millrace.runtime.config.ConfigException;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

@HelpHeading("Counterfactual training")
final class CounterfactualOptions {
    @Option(
            names = "--retrain",
            description = "Retrain over the recorded batches from --from-version (default: the oldest) to"
                    + " --to-version, with the run's settings, which must reproduce the recorded weights bit for"
                    + " bit, and with each --corrections.")
    boolean retrain;

    @Option(
            names = "--live",
            description = "With --retrain: sample new, equally stale rollouts of the recorded prompts in place of "
                    + "the recorded ones.")
    boolean live;

    @Option(
            names = "--seeds",
            paramLabel = "N",
            defaultValue = "1",
            description = "With --live: seeds to sample with (default: ${DEFAULT-VALUE}); the first is the recorded "
                    + "one.")
    int seeds;

    @Option(
            names = "--gradients",
            description = "Compare the gradient of recorded batches under each --corrections with the run's and "
                    + "with an on-policy gradient, from --from-version to --to-version or at --at-version.")
    boolean gradients;

    @Option(
            names = "--at-version",
            paramLabel = "V",
            split = ",",
            description = "With --gradients: only the steps from these versions.")
    List<Long> atVersions = new ArrayList<>();

    @Option(
            names = "--evaluate-every",
            paramLabel = "N",
            defaultValue = "8",
            description = "With --retrain: steps between evaluations (default: ${DEFAULT-VALUE}).")
    int evaluateEvery;

    @Option(
            names = "--evaluation-prompts",
            paramLabel = "N",
            defaultValue = "256",
            description = "Prompts per evaluation, always the same (default: ${DEFAULT-VALUE}); 0 for none.")
    int evaluationPrompts;

    @Option(
            names = "--reference-groups",
            paramLabel = "N",
            defaultValue = "64",
            description =
                    "With --gradients: groups for the on-policy gradient (default: ${DEFAULT-VALUE}); 0 for none.")
    int referenceGroups;

    boolean isGiven() {
        return retrain || gradients;
    }

    /** @throws ConfigException if one is invalid, or belongs to a replay that was not requested */
    void check() {
        if (!gradients && !atVersions.isEmpty()) {
            throw new ConfigException(
                    "--at-version chooses steps for --gradients; give that too, or a range with --from-version and --to-version");
        }
        if (live && !retrain) {
            throw new ConfigException("--live needs --retrain; give that too");
        }
        if (seeds < 1) {
            throw new ConfigException("--seeds must be at least 1: " + seeds);
        }
        if (seeds > 1 && !live) {
            throw new ConfigException("--seeds=" + seeds
                    + " sets sampling seeds, and without --live nothing is sampled: give that too, or leave"
                    + " out --seeds");
        }
        if (evaluateEvery < 1) {
            throw new ConfigException("--evaluate-every must be at least 1: " + evaluateEvery);
        }
        if (evaluationPrompts < 0 || referenceGroups < 0) {
            throw new ConfigException("--evaluation-prompts and --reference-groups must be at least 0: "
                    + evaluationPrompts + " and " + referenceGroups);
        }
    }
}
