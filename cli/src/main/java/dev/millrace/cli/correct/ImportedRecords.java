package dev.millrace.cli.correct;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.BuiltArchive;
import dev.millrace.replay.archive.RecordedElsewhere;
import dev.millrace.report.Lines;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.NamedCorrections;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** {@code millrace import --records}: converts files of records to an archive, or only checks them. */
public final class ImportedRecords {
    private static final int MADE = 0;
    /** Exit status if {@code import --records} finds bad lines. */
    private static final int REFUSED = 1;

    private static final int MOST_SHOWN = 20;
    /** Trained sequences were fresh enough for their trainer. */
    private static final long ANY_AGE = 1_000_000_000;

    private final List<String> patterns;
    private final RunIdentity run;
    private final String named;
    private Algorithm algorithm;
    private final PrintWriter out;
    private final PrintWriter err;
    private long shown;

    /** @param algorithm a name, or a YAML file with keys of {@code algorithm}: recorded as the batches' algorithm */
    public ImportedRecords(List<String> patterns, String runId, String algorithm, PrintWriter out, PrintWriter err) {
        this.patterns = patterns;
        try {
            this.run = new RunIdentity(runId, 0, "policy");
        } catch (IllegalArgumentException e) {
            throw new ConfigException("--run " + runId + ": " + e.getMessage(), e);
        }
        this.named = algorithm;
        this.algorithm = algorithm(algorithm);
        this.out = out;
        this.err = err;
    }

    private static Algorithm algorithm(String named) {
        StalenessRules anyAge = new StalenessRules(ANY_AGE, 0, 0);
        try {
            return Files.isRegularFile(Path.of(named))
                    ? NamedCorrections.read(
                            named,
                            ConfigTree.read(Path.of(named)),
                            NamedAlgorithms.of("none").with(a -> a.staleness(anyAge)))
                    : NamedAlgorithms.of(named).with(a -> a.staleness(anyAge));
        } catch (IllegalArgumentException e) {
            throw new ConfigException("--algorithm " + named + ": " + e.getMessage(), e);
        }
    }

    /**
     * Checks whether an archive could be made, without writing it.
     *
     * @return the exit status
     */
    public int verify() {
        try {
            Path folder = Files.createTempDirectory("millrace-records");
            try {
                return make(folder.resolve("archive"), false);
            } finally {
                Files.deleteIfExists(folder);
            }
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "no folder for temporary files: " + e.getMessage() + "; set java.io.tmpdir", e);
        }
    }

    /**
     * Makes the archive.
     *
     * @param folder new or empty
     * @return the exit status
     */
    public int archive(Path folder) {
        return make(folder, true);
    }

    private int make(Path folder, boolean keeps) {
        List<Path> files = RecordsImport.files(patterns);
        RunTopics topics = new RunTopics("millrace." + run.runId() + ".");
        try (BuiltArchive archive = new BuiltArchive(folder, run, topics)) {
            RecordsImport records = new RecordsImport(archive, run, topics, this::algorithmOf, this::bad);
            Optional<RecordedElsewhere> read = records.read(files);
            if (records.badLines() > 0) {
                err.println(records.badLines() + " lines or rows are bad, and no archive was made; fix or remove them");
                return REFUSED;
            }
            if (read.isEmpty()) {
                throw new RefusedRequestException(
                        "--records " + String.join(", ", patterns) + ": there is no line and no row in "
                                + files.stream().map(Path::toString).collect(Collectors.joining(", ")));
            }
            RecordedElsewhere steps = read.get();
            lines(steps, run.runId(), named).forEach(out::println);
            if (keeps) {
                archive.finish(origin(steps), configuration());
                out.println();
                out.println("millrace doctor --archive " + folder);
                out.println("millrace replay --archive " + folder + " --corrections m2po --corrections token_tis");
            }
            return MADE;
        } catch (IOException e) {
            throw new RefusedRequestException("cannot read the records: " + e.getMessage(), e);
        }
    }

    /** Disables comparisons of old log-probs if there are none. */
    private Algorithm algorithmOf(boolean haveOld) {
        if (!haveOld) {
            try {
                algorithm = algorithm.with(a -> a.missingOldLogProbs(MissingOldLogProbs.INTERPOLATE));
            } catch (IllegalArgumentException e) {
                throw new RefusedRequestException(
                        "--algorithm " + named + " compares old log-probs, and the records have none: "
                                + e.getMessage(),
                        e);
            }
        }
        return algorithm;
    }

    private void bad(String place, String problem) {
        if (shown++ < MOST_SHOWN) {
            err.println(place + ": " + problem);
        } else if (shown == MOST_SHOWN + 1) {
            err.println("and more");
        }
    }

    private String origin(RecordedElsewhere steps) {
        return "records of another system, " + steps.sequences() + " sequences of " + steps.steps()
                + " steps; its decisions are unknown, and their batches hold what " + named + " decides";
    }

    /** Minimal configuration for a replay: the run's name and its algorithm. */
    private String configuration() {
        ObjectNode tree = ConfigTree.empty();
        tree.putObject("run").put("id", run.runId()).put("recorded", true);
        tree.putObject("weights").put("keep_versions", 0); // bounds the age of a rollout
        tree.set("algorithm", ConfigBinder.unbind(algorithm));
        ConfigBinder.bind(MillraceConfig.defaults(), tree.deepCopy()); // so that readers can bind it
        return ConfigTree.write(tree);
    }

    /** Message for a request that such an archive cannot answer. */
    public static String whatCanBeAsked(ArchivedRun archive) {
        return "the archive was made of " + archive.origin().orElse("records")
                + ": other corrections can be tried on it (--corrections), but nothing replayed or retrained, since"
                + " it has no weights; retrain with the correction in the original system";
    }

    /** @param algorithm its name, for the line about advantages */
    private static List<String> lines(RecordedElsewhere steps, String run, String algorithm) {
        List<String> all = new ArrayList<>();
        all.addAll(Lines.wrapped(
                "",
                say(
                        "run %s: %,d steps, %,d sequences, %,d response tokens (%,d trained), at most %,d versions old",
                        run,
                        steps.steps(),
                        steps.sequences(),
                        steps.tokens(),
                        steps.trainedTokens(),
                        steps.stalest())));
        Set<StageInput> missing = steps.missing();
        if (missing.contains(StageInput.VERSIONS)) {
            all.addAll(Lines.wrapped(
                    "",
                    "some lines have no sampling version and count as sampled at step start: these records tell"
                            + " nothing about staleness"));
        }
        if (steps.advantagesCompared() > 0) {
            all.addAll(Lines.wrapped(
                    "",
                    say(
                            "the advantages of %,d of %,d sequences are those that %s makes; the largest difference is %.3g",
                            steps.advantagesAgreed(),
                            steps.advantagesCompared(),
                            algorithm,
                            steps.furthestAdvantage())));
        }
        all.addAll(Lines.wrapped(
                "",
                "not on every line: " + missing.stream().map(StageInput::text).collect(Collectors.joining(", "))));
        Map<String, List<String>> byLack = new LinkedHashMap<>();
        steps.ruledOut()
                .forEach((name, lacks) -> byLack.computeIfAbsent(
                                lacks.stream().map(StageInput::text).collect(Collectors.joining(" and ")),
                                unseen -> new ArrayList<>())
                        .add(name));
        if (byLack.isEmpty()) {
            all.add("every named algorithm can decide about them");
        }
        byLack.forEach((lack, names) ->
                all.addAll(Lines.wrapped("  ", "without " + lack + " not: " + String.join(", ", names))));
        return all;
    }

    private static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
