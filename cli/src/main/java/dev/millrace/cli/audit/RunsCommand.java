package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.log.run.ClusterRuns;
import dev.millrace.log.run.ClusterRuns.ClusterRun;
import dev.millrace.report.Column;
import dev.millrace.report.Lines;
import dev.millrace.report.Table;
import dev.millrace.report.TableText;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRuns;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace runs}: the runs of a cluster, or those under a folder. */
@Command(
        name = "runs",
        description = "Lists the runs of a Kafka cluster, or those under a folder: state, newest version, time of the "
                + "newest record, topics and bytes. --run limits the list to one run and says why it counts as "
                + "running. On a cluster a run is running while a group of it has members, a transaction is open or "
                + "its newest record is younger than 30 s; bytes count all copies.",
        footer = {
            "",
            "millrace runs",
            "millrace runs --bootstrap-servers kafka:9092",
            "millrace runs --bootstrap-servers kafka:9092 --run my-run --json",
            "",
            "Exit codes: 0 the list is complete; 1 a failure; 2 a mistake in the command line."
        })
public final class RunsCommand extends ScreenCommand {
    @Mixin
    private RunOptions run;

    @Option(
            names = "--runs",
            paramLabel = "DIR",
            defaultValue = "runs",
            description = "Folder with runs, where no cluster is given (default ${DEFAULT-VALUE}).")
    private Path runs;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    /** A run in a folder or under a topic prefix; its version is null if unknown. */
    private record Row(
            String id,
            String where,
            String state,
            List<String> notes,
            @Nullable Long version,
            LogSize log) {}

    /** Topics and bytes of a run's log, and the time of its newest record; null if unknown. */
    private record LogSize(
            @Nullable Long lastRecordMs,
            @Nullable Long topics,
            @Nullable Long bytes) {
        static final LogSize UNKNOWN = new LogSize(null, null, null);
    }

    @Override
    public Integer call() {
        MillraceConfig whereabouts = run.over(ConfigTree.empty()).whereabouts();
        List<Row> rows = (whereabouts.run().embedded() || run.folder() != null ? inFolder() : onCluster(whereabouts))
                .stream()
                        .filter(row -> whereabouts.run().id().isEmpty()
                                || row.id().equals(whereabouts.run().id()))
                        .toList();
        if (json) {
            out().println(json(rows).toPrettyString());
        } else if (rows.isEmpty()) {
            out().println("There is no run "
                    + (whereabouts.run().embedded() ? "under " + runs : "that this client may see"));
        } else {
            TableText.lines(table(rows)).forEach(out()::println);
            if (rows.size() == 1) {
                rows.get(0).notes().forEach(note -> paragraph("  ", note));
            }
        }
        return 0;
    }

    private List<Row> onCluster(MillraceConfig whereabouts) {
        try (ClusterRuns cluster = RunOptions.cluster(whereabouts)) {
            return cluster.all().stream().map(RunsCommand::row).toList();
        }
    }

    private static Row row(ClusterRun found) {
        List<String> missing = found.missing();
        List<String> notes = Stream.concat(
                        found.signs().stream(),
                        missing.isEmpty() ? Stream.of() : Stream.of("topics are missing: " + missing))
                .toList();
        return new Row(
                found.claim().map(claim -> claim.run().runId()).orElse(""),
                found.topics().prefix(),
                found.claim().isEmpty()
                        ? "unreadable"
                        : !missing.isEmpty() ? "incomplete" : found.signs().isEmpty() ? "idle" : "running",
                found.claim().isEmpty()
                        ? List.of(
                                "its claim on " + found.topics().run()
                                        + " cannot be read; --set run.schema_registry_url=URL names the registry of its schemas")
                        : notes,
                known(found.newestVersion()),
                new LogSize(
                        known(found.lastRecordMs()),
                        (long) found.holdings().topics().size(),
                        known(found.bytes())));
    }

    private static @Nullable Long known(OptionalLong number) {
        return number.isPresent() ? number.getAsLong() : null;
    }

    private List<Row> inFolder() {
        if (run.folder() == null && !Files.isDirectory(runs)) {
            throw new ConfigException("there is no folder " + runs
                    + " with runs; name one with --runs DIR, or a cluster with --bootstrap-servers HOST:PORT");
        }
        Stream<RunSource> sources = run.folder() != null
                ? Stream.of(new RunSource.Folder(run.folder()))
                : new ViewedRuns(List.of(), runs, runs).sources().stream();
        return sources.map(source -> source instanceof RunSource.Folder folder
                        ? row(folder)
                        : new Row(source.name(), source.options(), "archive", List.of(), null, LogSize.UNKNOWN))
                .toList();
    }

    private static Row row(RunSource.Folder source) {
        Path folder = source.path();
        MillraceConfig whereabouts;
        try {
            whereabouts = new ConfigLayers()
                    .begunWith(ConfigTree.read(RunDirectory.config(folder)))
                    .whereabouts();
        } catch (ConfigException e) {
            return new Row(
                    source.name(),
                    folder.toString(),
                    "unreadable",
                    List.of(String.valueOf(e.getMessage())),
                    null,
                    LogSize.UNKNOWN);
        }
        String id = whereabouts.run().id().isEmpty()
                ? source.name()
                : whereabouts.run().id();
        try {
            Long version = newestVersion(folder.resolve("steps.csv"));
            String state = state(source, version != null);
            if (!whereabouts.run().embedded()) {
                List<String> where =
                        List.of("its log is on " + whereabouts.run().bootstrapServers());
                return new Row(id, folder.toString(), state, where, version, LogSize.UNKNOWN);
            }
            List<Path> files = files(folder.resolve("broker"), whereabouts.run().topics());
            long bytes = 0;
            long writtenMs = 0;
            for (Path file : files) {
                bytes += Files.size(file);
                writtenMs = Math.max(
                        writtenMs,
                        file.toString().endsWith(".log")
                                ? Files.getLastModifiedTime(file).toMillis()
                                : 0);
            }
            long topics = files.stream().map(file -> topic(file)).distinct().count();
            LogSize log = new LogSize(writtenMs == 0 ? null : writtenMs, topics, bytes);
            return new Row(id, folder.toString(), state, List.of(), version, log);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read the files of " + folder + ": " + e.getMessage(), e);
        }
    }

    /** State in the page's terms. */
    private static String state(RunSource.Folder source, boolean hasStep) {
        if (source.mayGrow()) {
            return "running";
        }
        if (source.summary().isPresent()) {
            return "finished";
        }
        return !source.wasTrained() ? "ended" : hasStep ? "killed" : "ended before its first step";
    }

    /** The files of the run's own topics. */
    private static List<Path> files(Path broker, RunTopics topics) throws IOException {
        if (!Files.isDirectory(broker)) {
            return List.of();
        }
        try (Stream<Path> all = Files.walk(broker, 2)) {
            return all.filter(file -> file.getNameCount() == broker.getNameCount() + 2 && Files.isRegularFile(file))
                    .filter(file -> topic(file).startsWith(topics.prefix()))
                    .toList();
        }
    }

    /** Partition folder: the second to last name. */
    private static String topic(Path file) {
        return file.getName(file.getNameCount() - 2).toString().replaceFirst("-[0-9]+$", "");
    }

    /** From the last row of the steps; null before the first step. */
    private static @Nullable Long newestVersion(Path steps) throws IOException {
        if (!Files.exists(steps)) {
            return null;
        }
        try (BufferedReader lines = Files.newBufferedReader(steps)) {
            String head = lines.readLine();
            int column = head == null ? -1 : List.of(head.split(",", -1)).indexOf("version");
            String last = null;
            for (String line = head; line != null; line = lines.readLine()) {
                last = line;
            }
            return column < 0 || last == null || last.equals(head) ? null : Long.valueOf(last.split(",", -1)[column]);
        }
    }

    private static Table table(List<Row> rows) {
        return Table.of(
                "",
                List.of(
                        Column.text("run", Row::id),
                        Column.text("where", Row::where),
                        Column.text("state", Row::state),
                        Column.countWhereKnown("version", Row::version),
                        Column.text(
                                "newest record",
                                row -> row.log().lastRecordMs() == null
                                        ? null
                                        : Lines.time(row.log().lastRecordMs())),
                        Column.countWhereKnown("topics", row -> row.log().topics()),
                        Column.countWhereKnown("bytes", row -> row.log().bytes())),
                rows);
    }

    private static ArrayNode json(List<Row> rows) {
        ArrayNode json = new ObjectMapper().createArrayNode();
        for (Row row : rows) {
            ObjectNode each = json.addObject()
                    .put("run_id", row.id())
                    .put("where", row.where())
                    .put("state", row.state());
            row.notes().forEach(each.putArray("notes")::add);
            each.put("newest_version", row.version())
                    .put("last_record_ms", row.log().lastRecordMs())
                    .put("topics", row.log().topics())
                    .put("bytes", row.log().bytes());
        }
        return json;
    }
}
