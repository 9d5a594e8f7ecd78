package dev.millrace.cli.measure;

import dev.millrace.cli.Main;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.report.ReportOrigin;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.Figure;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace load-test figures}: every benchmark and workload whose figures are published. */
@Command(
        name = "figures",
        description = "Runs every benchmark and workload whose figures are published, one after the other, each in a "
                + "process of its own, and lays their reports out as load-tests/results. Reports of the same commit "
                + "are kept, but none of a tree with changes.",
        footer = {"", "About an hour on two cores. Exit codes: 0 every report is there; 1 a part failed."})
public final class FiguresCommand extends ScreenCommand {
    /** Exit status if a part failed. */
    private static final int FAILED = 1;

    /** Of a workload's report, what is not published; {@code --redraw} makes it again. */
    private static final List<String> UNPUBLISHED = List.of("report.html", "lags.csv", "steps.csv");

    @Option(names = "--report", paramLabel = "DIR", required = true, description = "Folder of all reports.")
    private Path reports;

    @Option(
            names = "--only",
            arity = "1..*",
            split = ",",
            paramLabel = "NAME",
            description = "Run only these, such as topology or knee (default: all).")
    private List<String> only = List.of();

    @Option(
            names = "--workloads",
            paramLabel = "DIR",
            description = "Folder of the workload files (default: load-tests/workloads).")
    private Path workloads = Path.of("load-tests", "workloads");

    @Override
    public Integer call() throws IOException, InterruptedException {
        List<Figure> figures = chosen();
        String commit = ReportOrigin.here("", null).commit();
        say(
                "parts: %d, commit %s; estimated %.0f minutes for the parts with a known time",
                figures.size(),
                commit,
                figures.stream()
                                .mapToDouble(figure -> figure.seconds().orElse(0))
                                .sum()
                        / 60);
        List<String> failed = new ArrayList<>();
        for (Figure figure : figures) {
            if (isOneTree(commit) && isMeasured(figure, commit)) {
                say("%s: already measured", figure.name());
            } else if (!measure(figure, commit)) {
                failed.add(figure.name());
            }
        }
        if (!failed.isEmpty()) {
            say("failed: %s; the same command runs only these again", String.join(", ", failed));
        }
        return failed.isEmpty() ? 0 : FAILED;
    }

    private List<Figure> chosen() throws IOException {
        List<Figure> all;
        try {
            all = Figure.all(workloads);
        } catch (NoSuchFileException e) {
            throw new RefusedRequestException(
                    "cannot measure figures: there is no folder " + workloads
                            + "; run from a checkout, or name the folder of the workload files with --workloads",
                    e);
        }
        List<String> names = all.stream().map(Figure::name).toList();
        for (String name : only) {
            if (!names.contains(name)) {
                throw mistake("--only must name parts: " + name + ", expected " + String.join(", ", names));
            }
        }
        return all.stream()
                .filter(figure -> only.isEmpty() || only.contains(figure.name()))
                .toList();
    }

    /** False for {@code unknown}, and for one with changes, which may be others now. */
    private static boolean isOneTree(String commit) {
        return commit.matches("[0-9a-f]+");
    }

    private boolean isMeasured(Figure figure, String commit) {
        return figure.measured(reports)
                .filter(origin -> origin.commit().equals(commit))
                .isPresent();
    }

    /** True if it has left its report, whether or not the report's goals hold. */
    private boolean measure(Figure figure, String commit) throws IOException, InterruptedException {
        Path folder = Optional.ofNullable(reports.resolve(figure.report()).getParent())
                .orElse(reports);
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName(), "load-test"));
        command.addAll(figure.arguments());
        command.addAll(List.of("--report", folder.toString()));
        Path report = reports.resolve(figure.report());
        Files.deleteIfExists(report);
        Path log = Files.createTempFile("millrace-" + figure.name() + "-", ".log");
        long began = System.nanoTime();
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroy));
        int status = process.waitFor();
        double seconds = (System.nanoTime() - began) / 1e9;
        if (!isMeasured(figure, commit)) {
            say(
                    "%s: failed after %.0f s%s; its output is in %s",
                    figure.name(),
                    seconds,
                    figure.measured(reports)
                            .map(origin ->
                                    ", its report is of " + origin.commit() + " since the tree was changed meanwhile")
                            .orElse(""),
                    log);
            return false;
        }
        Files.delete(log);
        Files.writeString(
                report, Files.readString(report).replace("--report " + folder + "\"", "--report DIR\"")); // its command
        for (String file : figure.workload().isPresent() ? UNPUBLISHED : List.<String>of()) {
            Files.deleteIfExists(folder.resolve(file));
        }
        say(
                "%s: %.0f s%s, load average %.1f at the start%s",
                figure.name(),
                seconds,
                figure.seconds().isPresent()
                        ? String.format(
                                Locale.ROOT,
                                " (estimate %.0f)",
                                figure.seconds().getAsDouble())
                        : "",
                figure.measured(reports).orElseThrow().loadAverage(),
                status == 0 ? "" : "; it misses a goal");
        return true;
    }

    private void say(String format, Object... values) {
        out().println(String.format(Locale.ROOT, format, values));
    }
}
