package dev.millrace.cli.replay;

import dev.millrace.cli.archive.ProgressLine;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.cli.config.ConfigException;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.TaskVerdict;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code millrace replay}: decides a recorded run again. */
@Command(name = "replay", mixinStandardHelpOptions = true, sortOptions = false,
    description = {"Decides a recorded run again. Without --corrections by its own settings: says that every trajectory, batch,",
        "outcome and dead letter comes out byte for byte, or shows the first difference. Reads only: no consumer group, no",
        "writes, so it can run beside the run itself."},
    footer = {"", "millrace replay --run-dir runs/<run id>",
        "millrace replay --archive my-run.archive", "",
        "Exit codes: 0 the same; 4 a difference; 5 not all could be replayed; 1 a failure; 2 a mistake in the command line."})
public final class ReplayCommand implements Callable<Integer> {
    /** Exit status if the replay and the run differ. */
    public static final int DIFFERS = 4;
    /** Exit status if what is recorded is not enough to say. */
    public static final int NOT_PROVED = 5;

    @Mixin
    private RunOptions run;

    @Option(names = "--archive", paramLabel = "DIR", description = "An archive that 'millrace export' wrote, in place of a run.")
    private Path archive;

    @Option(names = "--threads", paramLabel = "N", description = "Tasks that are replayed at once (default: one a processor).")
    private int threads = Runtime.getRuntime().availableProcessors();

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws Exception {
        if (threads < 1) {
            throw new ParameterException(spec.commandLine(), "--threads must be at least 1: " + threads);
        }
        if (archive != null && run.isGiven()) {
            throw new ConfigException("--archive says which run; leave out --run-dir, --run and --bootstrap-servers, or --archive");
        }
        PrintWriter out = spec.commandLine().getOut();
        try (ReplayedRun replayed = archive != null ? ReplayedRun.open(archive, run.file()) : ReplayedRun.open(run)) {
            out.println("run " + replayed.recorded().run().runId() + ", topics " + replayed.recorded().topics().prefix() + "*");
            out.flush();
            return asRecorded(replayed, out);
        }
    }

    private int asRecorded(ReplayedRun replayed, PrintWriter out) throws InterruptedException {
        AsRecorded replay = new AsRecorded(replayed.recorded(), replayed.config().topology(), replayed.maxValueBytes());
        long start = System.nanoTime();
        List<TaskVerdict> verdicts = ProgressLine.during(
            "replaying", replay::passed, replay.toPass(), spec.commandLine().getErr(), () -> replay.replay(threads));
        AsRecordedText.lines(verdicts, replayed.recorded().topics().prefix(), (System.nanoTime() - start) / 1e9,
            replayed.recorded().hasGrown()).forEach(out::println);
        out.flush();
        if (verdicts.stream().anyMatch(verdict -> verdict.difference().isPresent())) {
            return DIFFERS;
        }
        return verdicts.stream().allMatch(TaskVerdict::isProved) ? 0 : NOT_PROVED;
    }
}
