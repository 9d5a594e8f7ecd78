package dev.millrace.chaos;

import dev.millrace.chaos.fault.FaultKind;
import dev.millrace.chaos.report.ChaosPage;
import dev.millrace.cli.Main;
import dev.millrace.cli.StopSignals;
import dev.millrace.cli.TypedCommand;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.Scratch;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Injects faults into a run of real processes and reports what the run kept; {@link ChaosIT} runs it. */
@Command(
        name = "chaos",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Starts brokers and roles of a small run as processes, injects faults in a seeded order, and "
                + "checks after each that the run resumed and lost or duplicated nothing. Touches nothing else. "
                + "Needs about 3 GB of memory.",
        footer = {
            "",
            "./mvnw -Pfaults verify -pl cli -am -Dit.test='ChaosIT#shouldKeepEveryPromiseUnderTheGivenFaults' \\",
            "    -Dfailsafe.failIfNoSpecifiedTests=false -Dmillrace.chaos='--minutes 60 --brokers 3 --report /tmp/chaos-7.json'",
            "",
            "Exit codes: 0 every promise was kept; 4 one was not; 1 a failure; 2 a mistake in the command line; 130 stopped."
        })
final class ChaosCommand implements Callable<Integer> {
    /** Exit status if a promise was not kept. */
    public static final int BROKEN = 4;

    private static final double SECONDS_A_MINUTE = 60;
    /** Stands for all kinds that take records away. */
    private static final String LOSSES = "log-loss";

    @Option(
            names = "--minutes",
            paramLabel = "N",
            defaultValue = "10",
            description = "Duration of fault injection (default ${DEFAULT-VALUE}); start and checks come on top.")
    private double minutes;

    @Option(
            names = "--faults",
            paramLabel = "N",
            defaultValue = "2147483647",
            showDefaultValue = Help.Visibility.NEVER,
            description = "Most faults to inject.")
    private int faults;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Decides which faults come in which order (default ${DEFAULT-VALUE}).")
    private long seed;

    @Option(
            names = "--brokers",
            paramLabel = "N",
            defaultValue = "1",
            description = "Brokers; of three each has a copy of everything (default ${DEFAULT-VALUE}).")
    private int brokers;

    @Option(
            names = "--only",
            paramLabel = "KIND",
            split = ",",
            description = "Kinds of faults: ${COMPLETION-CANDIDATES}. tail-lost, retention and unclean-election (or "
                    + "log-loss for all) lose acknowledged records and run only if named.",
            completionCandidates = Kinds.class)
    private List<String> only = new ArrayList<>();

    @Option(names = "--without", paramLabel = "KIND", split = ",", description = "Kinds of faults to leave out.")
    private List<String> without = new ArrayList<>();

    @Option(
            names = "--recovery-seconds",
            paramLabel = "N",
            defaultValue = "120",
            description =
                    "Longest time from the end of a fault until versions are made again (default ${DEFAULT-VALUE}).")
    private int recoverySeconds;

    @Option(
            names = "--dir",
            paramLabel = "DIR",
            description =
                    "Folder for brokers' data and logs, new or empty; kept. Without it a temporary one is removed if all held.")
    private Path directory;

    @Option(names = "--report", paramLabel = "FILE", description = "Write what was found to this file, as JSON.")
    private Path report;

    @Option(
            names = "--page",
            paramLabel = "FILE",
            description = "Do nothing; print the tables of these reports as Markdown. May be given often.")
    private List<Path> page = new ArrayList<>();

    @Spec
    private CommandSpec spec;

    /** The words of all kinds, for the help. */
    static final class Kinds extends ArrayList<String> {
        private static final long serialVersionUID = 1L;

        Kinds() {
            super(FaultKind.allWords());
        }
    }

    /** Returns Millrace's command line with this command. */
    static CommandLine commandLine() {
        return Main.commandLine().addSubcommand(new ChaosCommand());
    }

    @Override
    public Integer call() throws Exception {
        PrintWriter out = spec.commandLine().getOut();
        if (!page.isEmpty()) {
            out.print(ChaosPage.markdown(page.stream().map(ChaosCommand::read).toList()));
            out.flush();
            return 0;
        }
        Path folder = folder();
        ChaosPlan plan = plan(folder);
        if (only.isEmpty()) {
            ChaosPlan.leftOut().forEach((kind, why) -> out.println("left out: " + kind.word() + ", for " + why));
        }
        Thread worker = Thread.currentThread();
        ChaosResult result;
        try {
            result = StopSignals.during(
                    () -> new Chaos(
                                    plan,
                                    ReportOrigin.here(TypedCommand.of(spec), AppInfoParser.getVersion()),
                                    line -> {
                                        out.println(line);
                                        out.flush();
                                    })
                            .run(),
                    worker::interrupt);
        } catch (InterruptedException stopped) {
            out.println("stopped; what was written is in " + folder);
            return StopSignals.INTERRUPTED;
        }
        out.println();
        ReportText.lines(ChaosPage.of(List.of(result))).forEach(out::println);
        if (report != null) {
            JsonFile.write(report, result);
            out.println("the report is " + report);
        }
        if (result.isHeld() && directory == null) {
            new Scratch(folder).close();
        } else {
            out.println("logs and data are in " + folder);
        }
        out.flush();
        return result.isHeld() ? 0 : BROKEN;
    }

    private ChaosPlan plan(Path folder) {
        Set<FaultKind> kinds = only.isEmpty() ? ChaosPlan.everyKind() : kinds("--only", only);
        kinds.removeAll(kinds("--without", without));
        try {
            return new ChaosPlan(
                    Duration.ofMillis((long) (minutes * SECONDS_A_MINUTE * 1_000)),
                    faults,
                    seed,
                    brokers,
                    kinds,
                    folder,
                    Duration.ofSeconds(recoverySeconds),
                    Main.class.getName());
        } catch (IllegalArgumentException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }

    private Set<FaultKind> kinds(String option, List<String> words) {
        Set<FaultKind> kinds = EnumSet.noneOf(FaultKind.class);
        for (String word : words) {
            if (word.equals(LOSSES)) {
                kinds.addAll(ChaosPlan.losses(brokers));
                continue;
            }
            kinds.add(FaultKind.of(word)
                    .orElseThrow(() -> new ConfigException(
                            option + " names no kind of fault: " + word + "; there are " + FaultKind.allWords())));
        }
        return kinds;
    }

    private Path folder() throws IOException {
        if (directory == null) {
            return Path.of(System.getProperty("java.io.tmpdir"), "millrace-chaos-" + UUID.randomUUID());
        }
        if (Files.isDirectory(directory)) {
            try (DirectoryStream<Path> files = Files.newDirectoryStream(directory)) {
                if (files.iterator().hasNext()) {
                    throw new ConfigException(
                            directory
                                    + " is not empty; give --dir a new folder, so that nothing in it is mistaken for this run's");
                }
            }
        }
        return directory.toAbsolutePath();
    }

    private static ChaosResult read(Path file) {
        try {
            ChaosResult read = JsonFile.read(file, ChaosResult.class);
            if (read.format() != ChaosResult.FORMAT) {
                throw new RefusedRequestException(
                        file + " has format " + read.format() + ", this version reads " + ChaosResult.FORMAT);
            }
            return read;
        } catch (IOException e) {
            throw new RefusedRequestException(file + " cannot be read as a report: " + e.getMessage(), e);
        }
    }
}
