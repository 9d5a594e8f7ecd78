package dev.millrace.cli.measure;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RunLog;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.workloads.RepeatedRun;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace load-test repeat}: the folder of a long run, of a short recorded one. */
@Command(
        name = "repeat",
        description = "Builds a run folder of any length by repeating an archived run, to test 'millrace view'. It "
                + "has no weights and cannot be resumed.",
        footer = {"", "A million rollouts of the task inc take a few minutes and some 2 GB."})
public final class RepeatCommand extends ScreenCommand {
    @Option(names = "--archive", paramLabel = "DIR", required = true, description = "What 'millrace export' wrote.")
    private Path archive;

    @Option(names = "--times", paramLabel = "N", required = true, description = "Number of repetitions.")
    private long times;

    @Option(names = "--run-dir", paramLabel = "DIR", required = true, description = "The new run's folder.")
    private Path folder;

    @Override
    public Integer call() throws Exception {
        if (times < 1 || Files.exists(folder) || !ArchivedRun.isIn(archive)) {
            throw new RefusedRequestException("--times must be at least 1, --run-dir a new folder, and"
                    + " --archive one that 'millrace export' wrote: " + times + ", " + folder + ", " + archive);
        }
        try (ArchivedRun recorded = new ArchivedRun(archive)) {
            String text = recorded.configuration()
                    .orElseThrow(() -> new RefusedRequestException(
                            archive + " has no configuration of its run, which the copies need"));
            RunDirectory directory = RunDirectory.open(folder);
            Files.writeString(RunDirectory.config(folder), text);
            MillraceConfig config = new ConfigLayers()
                    .begunWith(ConfigTree.parse(text, "the archive's configuration"))
                    .resolve();
            try (EmbeddedBroker broker = EmbeddedBroker.start(directory.broker(), BrokerConfig.defaults());
                    RunLog log = config.open(
                            Map.of("bootstrap.servers", broker.bootstrapServers()),
                            config.sizedTopics().keptForEver(),
                            Optional.of(text))) {
                long rollouts = new RepeatedRun(recorded, log.connection()).write(times, now -> {
                    out().printf("%,d rollouts%n", now);
                });
                out().printf("%,d rollouts in %s%n", rollouts, folder);
            } finally {
                directory.close();
            }
        }
        return 0;
    }
}
