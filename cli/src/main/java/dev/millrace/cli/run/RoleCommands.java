package dev.millrace.cli.run;

import dev.millrace.cli.Logs;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.StopSignals;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.log.run.RoleRights;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.SingleRole;
import dev.millrace.scorer.ScorerPurpose;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Function;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Roles as commands against a Kafka cluster: {@code admit}, {@code generate}, {@code gateway}, {@code score}, {@code
 * stream}, {@code learn}. They share the run's id, read its configuration from the log, and start in any order: each
 * waits, within a limit, for what it needs.
 */
public final class RoleCommands {
    private RoleCommands() {}

    /** Runs one role until a signal or a failure. */
    abstract static class RoleCommand extends ScreenCommand {
        @Mixin
        private ConfigOptions configuration;

        @Option(names = "--reconfigure", description = "Let recorded keys change; roles started later use them.")
        private boolean reconfigure;

        /** @param creates whether the role may create the run */
        final int run(RoleRights rights, boolean creates, Function<Pipeline, Role> role) throws Exception {
            Logs.ofRole();
            SingleRole single = new SingleRole(configuration::over, rights, creates, reconfigure, out());
            return StopSignals.during(() -> single.run(role), single::stop) ? 0 : StopSignals.INTERRUPTED;
        }
    }

    private static final String FOOTER =
            "Needs --bootstrap-servers and --set run.id=NAME; the run's configuration is on its log. Ends with Ctrl-C.";

    /** Releases prompts. */
    @Command(
            name = "admit",
            footer = {"", FOOTER},
            description = "Releases prompts to generators, at most admission.eta versions ahead of the learner. One "
                    + "per run.")
    public static final class Admit extends RoleCommand {
        @Override
        public Integer call() throws Exception {
            return run(RoleRights.ADMISSION, true, Pipeline::admission);
        }
    }

    /** Samples. */
    @Command(
            name = "generate",
            footer = {"", FOOTER, "Several generators share the prompts; give each a generator.id of its own."},
            description = "Samples rollouts with the newest weights and publishes them.")
    public static final class Generate extends RoleCommand {
        @Override
        public Integer call() throws Exception {
            return run(RoleRights.GENERATOR, false, Pipeline::generator);
        }
    }

    /** Serves agents. */
    @Command(
            name = "gateway",
            footer = {
                "",
                FOOTER,
                "Replaces a generator. Several share the prompts; give each a generator.id of its own."
            },
            description = "Serves samples as sessions to agents that speak the OpenAI API, and publishes their "
                    + "rollouts.")
    public static final class Gateway extends RoleCommand {
        @Override
        public Integer call() throws Exception {
            return run(
                    RoleRights.GATEWAY,
                    false,
                    pipeline -> pipeline.gateway(url -> {
                        out().println("agents open sessions at " + url + "/v1/sessions");
                    }));
        }
    }

    /** Recomputes log-probs. */
    @Command(
            name = "score",
            footer = {"", FOOTER, "Several scorers share the rollouts; give each a scorer.id of its own."},
            description = "Recomputes rollouts' log-probs on the learner's engine and publishes them.")
    public static final class Score extends RoleCommand {
        @Option(
                names = "--for",
                paramLabel = "PURPOSE",
                defaultValue = "LEARNER",
                description = "Policy to score: ${COMPLETION-CANDIDATES}. REFERENCE and TEACHER use "
                        + "scorer.reference or scorer.teacher.")
        private ScorerPurpose purpose;

        @Override
        public Integer call() throws Exception {
            return run(
                    RoleRights.valueOf(purpose.role().toUpperCase(Locale.ROOT)),
                    false,
                    pipeline -> pipeline.scorer(purpose));
        }
    }

    /** Runs the topology. */
    @Command(
            name = "stream",
            footer = {"", FOOTER, "Several instances share the partitions."},
            description = "Runs the Kafka Streams topology: joins rollouts and scores, corrects, assembles batches.")
    public static final class Stream extends RoleCommand {
        @Option(
                names = "--state-dir",
                paramLabel = "DIR",
                required = true,
                description = "Folder for this instance's state; restored from the log if lost.")
        private Path stateDirectory;

        @Override
        public Integer call() throws Exception {
            return run(RoleRights.TOPOLOGY, false, pipeline -> pipeline.topology(stateDirectory));
        }
    }

    /** Trains and publishes. */
    @Command(
            name = "learn",
            footer = {"", FOOTER, "One per run: a second one takes over and the first stops."},
            description = "Trains on batches and publishes each new version of the weights, exactly once.")
    public static final class Learn extends RoleCommand {
        @Option(
                names = "--first-version",
                description = "Publish the initial weights as version 0 if the run has none, and exit: for another "
                        + "trainer. With run.recorded=true create the run, without weights, for a recorder.")
        private boolean firstVersion;

        @Override
        public Integer call() throws Exception {
            return run(RoleRights.LEARNER, true, firstVersion ? Pipeline::firstVersion : Pipeline::learner);
        }
    }
}
