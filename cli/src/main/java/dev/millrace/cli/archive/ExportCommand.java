package dev.millrace.cli.archive;

import dev.millrace.archive.LiveRun;
import dev.millrace.archive.RecordedRun.Range;
import dev.millrace.archive.RunExport;
import dev.millrace.cli.audit.AuditedRun;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.cli.config.ConfigBinder;
import dev.millrace.cli.config.ConfigException;
import dev.millrace.cli.config.ConfigTree;
import dev.millrace.schemas.run.RunTopics;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.kafka.common.TopicPartition;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace export}: writes a run to files. */
@Command(name = "export", mixinStandardHelpOptions = true, sortOptions = false,
    description = {"Writes what a run has recorded to a folder: an Avro container file for each partition, and index.json with",
        "hashes, schemas and the run's identity. Reads only; works while the run goes on and afterwards."},
    footer = {"", "millrace export --run-dir runs/<run id> --to my-run.archive",
        "millrace export --bootstrap-servers kafka:9092 --run my-run --to my-run.archive --without weights,optimizer-state"})
public final class ExportCommand implements Callable<Integer> {
    @Mixin
    private RunOptions run;

    @Option(names = "--to", paramLabel = "DIR", required = true, description = "New or empty folder.")
    private Path to;

    @Option(names = "--without", paramLabel = "TOPIC", split = ",",
        description = "Topics to leave out, without the prefix, such as optimizer-state.")
    private List<String> without = List.of();

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        try (AuditedRun audited = run.open();
             LiveRun recorded = new LiveRun(audited.connection(), Optional.of(ConfigTree.write(ConfigBinder.unbind(audited.config()))))) {
            RunExport export = new RunExport(recorded);
            Map<TopicPartition, Range> ranges = export.everythingBut(left(recorded.topics()));
            long offsets = ranges.values().stream().mapToLong(range -> range.end() - range.from()).sum();
            out.println(audited.title());
            out.flush();
            long records = ProgressLine.during(
                "exporting", export::passed, offsets, spec.commandLine().getErr(), () -> export.to(to, ranges));
            out.printf("%,d records of %d partitions are in %s%n", records, ranges.size(), to);
            out.flush();
            return 0;
        }
    }

    private Set<String> left(RunTopics topics) {
        Set<String> names = new HashSet<>();
        for (String name : without) {
            if (!topics.all().contains(topics.prefix() + name)) {
                throw new ConfigException("a run has no topic '" + name + "'; --without takes some of "
                    + topics.all().stream().map(topic -> topic.substring(topics.prefix().length())).sorted().toList());
            }
            names.add(topics.prefix() + name);
        }
        return names;
    }
}
