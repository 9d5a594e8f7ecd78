package dev.millrace.cli.correct;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.correct.SequenceFile.SequenceLine;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace correct}: importance weights, rejection and diagnostics for a file of sequences. */
@Command(
        name = "correct",
        description = "Computes weights, mask and diagnostics of a rollout correction for a file of sequences.",
        footer = {
            "",
            "Input: one JSON object per line with id, mask (0 or 1 per token), and, for a preset, the log-probs of the ratio's two",
            "policies, one per token: behavior_log_probs, old_log_probs, proximal_log_probs, current_log_probs.",
            "A log-prob is from -350 to 0; it may be null where the mask is 0. The file is one batch.",
            "Output: id, mask without the rejected tokens, rejected_tokens, and weights if the preset makes them.",
            "A metric that is not finite is printed, and absent from the file of metrics.",
            "",
            "For an algorithm: id, mask, reward, group, and what its stages read: behavior_, old_, proximal_, reference_ and",
            "teacher_log_probs, entropies, squared_probabilities, values, token_rewards, versions, turns and forced, one per",
            "token; age_ms and greedy_reward; turn_rewards, one per turn; reward_components by name.",
            "Output then: id, mask, masked_tokens, masked_by, advantage or advantages, and weights.",
            "",
            "A bad line is reported with its number and left out; the rest is corrected.",
            "Exit codes: 0 every line was corrected; 1 some were not, or none could be; 2 a mistake in the options."
        })
public final class CorrectCommand extends ScreenCommand {
    private static final int ALL_CORRECTED = 0;
    /** Exit status if lines were skipped. */
    private static final int SOME_LEFT_OUT = 1;

    @ArgGroup(multiplicity = "1")
    private What what;

    /** Either of the two inputs. */
    static final class What {
        @Option(
                names = "--preset",
                paramLabel = "NAME",
                completionCandidates = PresetNames.class,
                description = "One of verl's presets: ${COMPLETION-CANDIDATES}.")
        private @Nullable String preset;

        @Option(
                names = "--algorithm",
                paramLabel = "WHAT",
                description = "Algorithm with all stages: a name, such as m2po or decoupled_geo_rs(0.99_1.01), or a "
                        + "YAML file with keys of algorithm.")
        private @Nullable String algorithm;
    }

    @Option(
            names = "--version",
            paramLabel = "N",
            description = "With --algorithm: the version at which the step starts. Default: the newest in the file.")
    private @Nullable Long version;

    @Option(
            names = "--set",
            paramLabel = "PARAMETER=VALUE",
            description =
                    "A parameter of the preset, such as rs_threshold=0.05, or a key of the algorithm, such as weights.threshold=1.5; "
                            + "repeatable.")
    private Map<String, String> parameters = new LinkedHashMap<>();

    @Option(
            names = "--ratio",
            paramLabel = "RATIO",
            description =
                    "With --preset: which ratio is corrected: ${COMPLETION-CANDIDATES}. Default: what training compares under "
                            + "it, anchor (proximal/behavior) for decoupled presets, and full (current/behavior) for bypass presets.")
    private @Nullable RatioKind ratio;

    @Option(
            names = "--in",
            required = true,
            paramLabel = "FILE",
            description = "The sequences, one JSON object per line.")
    private Path in;

    @Option(names = "--out", required = true, paramLabel = "FILE", description = "Where the corrected sequences go.")
    private Path out;

    @Option(
            names = "--metrics",
            paramLabel = "FILE",
            description = "Where the metrics go, as JSON; they are printed too.")
    private @Nullable Path metricsFile;

    @Override
    public Integer call() {
        requireDifferentFiles();
        return what.algorithm != null ? stages(what.algorithm) : preset(Objects.requireNonNull(what.preset));
    }

    private int stages(String named) {
        if (ratio != null) {
            throw mistake(
                    "--ratio belongs to --preset; what an algorithm's weights compare follows from its objective");
        }
        AlgorithmCorrection correction = AlgorithmCorrection.of(named, parameters);
        AlgorithmCorrection.Corrected corrected;
        try {
            corrected = correction.correct(
                    in,
                    version == null ? OptionalLong.empty() : OptionalLong.of(version),
                    (number, problem) -> err().println(in + ":" + number + ": " + problem));
        } catch (IOException e) {
            throw new RefusedRequestException("cannot read " + in + ": " + reason(e), e);
        }
        try {
            correction.write(out, corrected);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + out + ": " + reason(e), e);
        }
        writeMetrics(corrected.metrics());
        correction.report(corrected, out()::println);
        return corrected.badLines() == 0 ? ALL_CORRECTED : SOME_LEFT_OUT;
    }

    private int preset(String preset) {
        if (version != null) {
            throw mistake("--version belongs to --algorithm; a preset looks at no versions");
        }
        RolloutCorrectionConfig config = config(preset);
        RatioKind kind = ratio != null ? ratio : defaultRatio(config);
        SequenceFile file = read(kind);
        if (file.lines().isEmpty()) {
            throw new RefusedRequestException(in + " has no line to correct");
        }
        TokenBatch batch = file.batch();
        if (batch.trainedTokens() == 0) {
            throw new RefusedRequestException(
                    in + " has no trained token: every mask is 0, so there is nothing to correct");
        }
        RolloutCorrectionResult result = new RolloutCorrection(config).apply(batch, file.ratio(batch, kind));
        write(file, batch, result);
        report(file, batch, result, kind);
        return file.badLines() == 0 ? ALL_CORRECTED : SOME_LEFT_OUT;
    }

    private void requireDifferentFiles() {
        requireDifferent("--in", in, "--out", out);
        if (metricsFile != null) {
            requireDifferent("--in", in, "--metrics", metricsFile);
            requireDifferent("--out", out, "--metrics", metricsFile);
        }
    }

    private void requireDifferent(String option, Path file, String other, Path otherFile) {
        try {
            if (isSame(file, otherFile)) {
                throw mistake(option + " " + file + " and " + other + " " + otherFile
                        + " are one file, and writing would replace what is there; give " + other
                        + " another name");
            }
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot tell whether " + file + " and " + otherFile + " are one file: " + reason(e), e);
        }
    }

    private RolloutCorrectionConfig config(String preset) {
        try {
            return Preset.labelled(preset).settings(parameters).resolve();
        } catch (IllegalArgumentException e) {
            throw mistake(String.valueOf(e.getMessage()), e);
        }
    }

    private static RatioKind defaultRatio(RolloutCorrectionConfig config) {
        return config.mode() == ObjectiveMode.DECOUPLED ? RatioKind.ANCHOR : RatioKind.FULL;
    }

    private SequenceFile read(RatioKind kind) {
        try {
            return SequenceFile.read(in, kind, (number, problem) -> err().println(in + ":" + number + ": " + problem));
        } catch (IOException e) {
            throw new RefusedRequestException("cannot read " + in + ": " + reason(e), e);
        }
    }

    private void write(SequenceFile file, TokenBatch batch, RolloutCorrectionResult result) {
        try {
            new CorrectedFile(out).write(file.lines(), batch, result);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + out + ": " + reason(e), e);
        }
        writeMetrics(result.metrics());
    }

    private void writeMetrics(Map<String, Double> metrics) {
        if (metricsFile != null) {
            Map<String, Double> finite = new LinkedHashMap<>(metrics);
            finite.values().removeIf(value -> !Double.isFinite(value)); // JSON has no number for them
            try {
                WholeFile.write(
                        metricsFile,
                        beside -> new ObjectMapper()
                                .enable(SerializationFeature.INDENT_OUTPUT)
                                .writeValue(beside.toFile(), finite));
            } catch (IOException e) {
                throw new RefusedRequestException("cannot write " + metricsFile + ": " + reason(e), e);
            }
        }
    }

    private void report(SequenceFile file, TokenBatch batch, RolloutCorrectionResult result, RatioKind kind) {
        PrintWriter to = out();
        result.metrics().forEach((name, value) -> to.println(String.format(Locale.ROOT, "%-56s %.9g", name, value)));
        List<String> left = result.metrics().entrySet().stream()
                .filter(metric -> !Double.isFinite(metric.getValue()))
                .map(Map.Entry::getKey)
                .toList();
        if (metricsFile != null && !left.isEmpty()) {
            to.println("not in " + metricsFile + ", since JSON has no number for them: " + String.join(", ", left));
        }
        to.println("weights, rejection and metrics compare " + kind.target() + " with " + kind.sampler() + ": "
                + kind.target() + "_log_probs - " + kind.sampler() + "_log_probs");
        to.println(batch.sequenceCount() + " sequences, " + batch.trainedTokens() + " trained tokens, ratio "
                + kind.target() + "/" + kind.sampler() + ": " + result.rejectedTokens() + " tokens rejected in "
                + result.rejectedSequences() + " sequences; " + file.badLines() + " lines left out");
    }

    private static String reason(IOException e) {
        return e instanceof NoSuchFileException ? "there is no such file" : e.toString();
    }

    /** The names of the presets, for help and completion. */
    static final class PresetNames implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Arrays.stream(Preset.values()).map(Preset::label).iterator();
        }
    }

    /** Writes the corrected sequences, all of them or none. */
    static final class CorrectedFile {
        private final JsonFactory json = new JsonFactory();
        private final Path path;

        CorrectedFile(Path path) {
            this.path = path;
        }

        /** @throws RefusedRequestException naming sequence and token of a weight that is not finite; nothing is written then */
        void write(List<SequenceLine> lines, TokenBatch batch, RolloutCorrectionResult result) throws IOException {
            WholeFile.write(path, beside -> {
                try (JsonGenerator out = json.createGenerator(beside.toFile(), JsonEncoding.UTF8)) {
                    out.setPrettyPrinter(new MinimalPrettyPrinter("\n"));
                    for (int s = 0; s < lines.size(); s++) {
                        write(out, lines.get(s), batch, result, s);
                    }
                    out.writeRaw('\n');
                }
            });
        }

        private static void write(
                JsonGenerator out, SequenceLine line, TokenBatch batch, RolloutCorrectionResult result, int s)
                throws IOException {
            int left = 0;
            out.writeStartObject();
            out.writeStringField("id", line.id());
            out.writeArrayFieldStart("mask");
            for (int t = batch.start(s); t < batch.end(s); t++) {
                out.writeNumber(result.mask()[t]);
                left += result.mask()[t];
            }
            out.writeEndArray();
            out.writeNumberField("rejected_tokens", batch.trainedTokens(s) - left);
            if (result.weights().isPresent()) {
                float[] weights = result.weights().get();
                out.writeArrayFieldStart("weights");
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    out.writeNumber(finite(weights[t], line, t - batch.start(s)));
                }
                out.writeEndArray();
            }
            out.writeEndObject();
        }

        /** Not representable as a JSON number, and a text could be misread. */
        private static float finite(float weight, SequenceLine line, int token) {
            if (!Float.isFinite(weight)) {
                throw new RefusedRequestException(
                        "the weight of token " + token + " of " + line.id() + " is not finite: " + weight);
            }
            return weight;
        }
    }

    /**
     * True if both paths are the same file, through links too. A missing file is compared by its parent folder.
     */
    private static boolean isSame(Path one, Path other) throws IOException {
        return Files.exists(one) && Files.exists(other)
                ? Files.isSameFile(one, other)
                : place(one).equals(place(other));
    }

    private static Path place(Path path) throws IOException {
        Path absolute = path.toAbsolutePath().normalize();
        Path folder = absolute.getParent();
        return folder != null && Files.isDirectory(folder)
                ? folder.toRealPath().resolve(absolute.getFileName())
                : absolute;
    }
}
