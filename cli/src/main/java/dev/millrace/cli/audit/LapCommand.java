package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.trace.Laps;
import dev.millrace.audit.trace.Laps.Lap;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.runtime.report.LapReport;
import dev.millrace.runtime.report.StepWork;
import dev.millrace.runtime.train.WorkFile;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace lap}: breaks down the time from a prompt to the weights trained on it. */
@Command(
        name = "lap",
        description = "Shows where a run's batches wait, from the release of a prompt until a generator serves the "
                + "version trained on it, hop by hop. Follows the last joined rollout of each batch. Times come"
                + " from the records, the cost of a step from the meters of 'train'.",
        footer = {
            "",
            "millrace lap --run-dir runs/<run id>",
            "millrace lap --bootstrap-servers kafka:9092 --run my-run --steps 1000 --json",
            "",
            "Exit codes: 0 laps found; 5 none; 1 a failure; 2 a mistake in the command line."
        })
public final class LapCommand extends ScreenCommand {

    @Mixin
    private RunOptions run;

    @Option(
            names = "--steps",
            paramLabel = "N",
            defaultValue = "200",
            description = "Number of last steps (default ${DEFAULT-VALUE}).")
    private int steps;

    @Option(names = "--json", description = "Print JSON, one entry per lap.")
    private boolean json;

    @Override
    public Integer call() {
        if (steps < 1) {
            throw new ConfigException("--steps must be at least 1: " + steps);
        }
        try (AuditedRun audited = run.read()) {
            Laps laps = Laps.read(audited.records(), steps, RunOptions.PATIENCE);
            if (laps.laps().isEmpty()) {
                throw new NotFoundException(
                        "the run has no step with all records from its prompt to a generator that serves its"
                                + " version; incomplete steps: " + laps.incomplete());
            }
            Optional<StepWork> work = Optional.ofNullable(run.folder()).flatMap(WorkFile::read);
            if (json) {
                ObjectNode all = json(laps);
                work.ifPresent(known -> all.set("work", WorkFile.json(known)));
                out().println(all.toPrettyString());
            } else {
                out().println(audited.title());
                ReportText.lines(LapReport.of(laps, work)).forEach(out()::println);
            }
            return 0;
        }
    }

    private static ObjectNode json(Laps laps) {
        ObjectNode json = new ObjectMapper().createObjectNode();
        json.put("incomplete", laps.incomplete());
        if (laps.laps().size() > 1) {
            json.put("ms_per_step", laps.millisPerStep());
        }
        ArrayNode each = json.putArray("laps");
        for (Lap lap : laps.laps()) {
            ObjectNode one = each.addObject()
                    .put("batch_id", lap.batchId())
                    .put("version", lap.version())
                    .put("finished_at_ms", lap.finishedAtMs())
                    .put("total_ms", lap.total());
            ObjectNode millis = one.putObject("hop_ms");
            lap.millis().forEach((hop, ms) -> millis.put(hop.key(), ms));
        }
        return json;
    }
}
