package dev.millrace.cli.measure;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.conformance.CaseResult;
import dev.millrace.conformance.CaseResult.ResultsFile;
import dev.millrace.conformance.ConformanceFamilies;
import dev.millrace.conformance.GoldenComparison;
import dev.millrace.conformance.GoldenComparison.FamilyDifferences;
import dev.millrace.conformance.GoldenFile;
import dev.millrace.conformance.MalformedCaseException;
import dev.millrace.report.TableText;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace conformance}: computes golden cases and compares them with their answers; tests engines. */
@Command(
        name = "conformance",
        description = "Computes golden cases with Millrace's corrections and writes one result per case.",
        subcommands = EngineConformanceCommand.class,
        footer = {
            "",
            "Exit codes: 0 every case was computed or refused (with --check: as the reference did);",
            "1 a case differs from the reference; 2 a case could not be answered (unknown family or option,",
            "malformed case, defect), or a file could not be read or written."
        })
public final class ConformanceCommand extends ScreenCommand {
    private static final int AGREES = 0;
    /** Exit status if an answer differs. */
    private static final int DIFFERS = 1;
    /** Exit status if a case is unanswered. */
    private static final int UNANSWERED = 2;

    @Option(
            names = "--cases",
            paramLabel = "FILE_OR_DIR",
            description = "A case file, or a directory of case files (*.json).")
    private Path cases;

    @Option(names = "--out", paramLabel = "FILE", description = "Where to write the results, as JSON.")
    private Path out;

    @Option(
            names = "--check",
            description = "Compare with the expected answers and print the largest differences per family.")
    private boolean check;

    private final ObjectMapper json = new ObjectMapper();
    private final ConformanceFamilies families;

    public ConformanceCommand() {
        this(ConformanceFamilies.all());
    }

    ConformanceCommand(ConformanceFamilies families) {
        this.families = families;
    }

    @Override
    public Integer call() {
        if (cases == null || out == null) {
            throw mistake("--cases and --out are both needed, or the command engine");
        }
        try {
            return run(GoldenFile.under(cases, json));
        } catch (IOException | MalformedCaseException e) {
            err().println("conformance: " + e.getMessage());
            return UNANSWERED;
        }
    }

    private int run(List<GoldenFile> files) throws IOException {
        Map<String, FamilyDifferences> differences = new TreeMap<>();
        int exit = AGREES;
        int answered = 0;
        try (ResultsFile results = new ResultsFile(out, json)) {
            for (GoldenFile file : files) {
                for (JsonNode golden : file.cases()) {
                    CaseResult result = families.run(golden);
                    results.add(result);
                    answered++;
                    exit = Math.max(exit, judge(golden, result, differences));
                }
            }
        }
        if (check) {
            TableText.lines(FamilyDifferences.table(differences.values())).forEach(out()::println);
        }
        out().println(answered + " results written to " + out);
        return exit;
    }

    private int judge(JsonNode golden, CaseResult result, Map<String, FamilyDifferences> differences) {
        int exit = AGREES;
        if (result instanceof CaseResult.Failed failed) {
            err().println(failed.name() + ": " + failed.message());
            exit = UNANSWERED;
        }
        if (check) {
            FamilyDifferences family = differences.computeIfAbsent(result.family(), FamilyDifferences::new);
            List<String> violations = GoldenComparison.compare(golden, result, family);
            if (!violations.isEmpty()) {
                exit = Math.max(exit, DIFFERS);
                err().println(result.name() + ": " + violations.get(0)
                        + (violations.size() > 1 ? " (and " + (violations.size() - 1) + " more)" : ""));
            }
        }
        return exit;
    }
}
