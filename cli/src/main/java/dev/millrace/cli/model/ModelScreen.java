package dev.millrace.cli.model;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.huggingface.StoredTensor;
import dev.millrace.policy.session.PassMemory;
import dev.millrace.policy.tokenizer.TokenizerDirectory;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.report.Lines;
import dev.millrace.weights.VersionSize;
import dev.millrace.weights.WeightsConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Output of {@code model inspect} for a directory. */
final class ModelScreen {
    /** Length of the sequence whose gradient is estimated. */
    private static final int GRADIENT_TOKENS = 512;

    private final CheckpointDirectory checkpoint;
    private final int loraRank;
    private final List<String> lines = new ArrayList<>();
    private final List<String> unsupported;

    private ModelScreen(CheckpointDirectory checkpoint, int loraRank) throws IOException {
        this.checkpoint = checkpoint;
        this.loraRank = loraRank;
        this.unsupported = new ArrayList<>(checkpoint.unsupported());
    }

    /** @throws CheckpointException if there is no config.json */
    static ModelScreen of(CheckpointDirectory checkpoint, int loraRank) throws IOException {
        ModelScreen screen = new ModelScreen(checkpoint, loraRank);
        screen.write();
        return screen;
    }

    boolean isSupported() {
        return unsupported.isEmpty();
    }

    List<String> lines() {
        return lines;
    }

    private void write() throws IOException {
        lines.add("model " + checkpoint.path());
        JsonNode config = checkpoint.config();
        say("family", text(config, "model_type") + architectures(config));
        if (unsupported.isEmpty()) {
            DecoderShape shape = checkpoint.shape();
            shape(shape);
            files();
            try {
                checkpoint.checkHeaders();
            } catch (CheckpointException e) {
                unsupported.add(e.getMessage());
            }
            tokenizer();
            costs(shape);
        } else {
            raw(config);
            files();
        }
        lines.add("");
        if (unsupported.isEmpty()) {
            lines.add("It can be trained.");
        } else {
            lines.add("It cannot be trained:");
            unsupported.forEach(reason -> lines.addAll(Lines.wrapped("  ", reason)));
        }
    }

    private void tokenizer() {
        if (Files.exists(checkpoint.path().resolve(TokenizerDirectory.FILE))) {
            try {
                new TokenizerDirectory(checkpoint.path().toString(), "").open();
            } catch (IllegalArgumentException e) {
                unsupported.add(e.getMessage());
            }
        }
    }

    private void shape(DecoderShape shape) {
        DecoderTraits traits = shape.traits();
        say("parameters", count(shape.parameterCount()));
        say(
                "shape",
                shape.layers() + " layers of width " + count(shape.hiddenSize()) + ", " + shape.heads()
                        + " heads on " + shape.kvHeads() + " key heads of " + shape.headSize()
                        + (traits.experts().present() ? "" : ", feed-forward " + count(shape.intermediateSize())));
        Experts experts = traits.experts();
        if (experts.present()) {
            say(
                    "experts",
                    experts.count() + " of width " + count(experts.width()) + " in each layer, a token goes through "
                            + experts.perToken() + (experts.normalised() ? ", weights normalised" : ""));
        }
        List<WholeTensor> cut =
                shape.wholes().stream().filter(WholeTensor::isCut).toList();
        if (!cut.isEmpty()) {
            WholeTensor first = cut.get(0);
            say(
                    "tensors",
                    first.name() + " has " + count(first.elementCount()) + " numbers and lies in "
                            + first.pieces().size() + ", which have " + count(shape.maxTensorElements()) + " at most"
                            + others(cut));
        }
        say("vocabulary", count(shape.vocabSize()) + " tokens, head " + (shape.tiedHead() ? "tied" : "of its own"));
        say(
                "positions",
                "at most " + count(shape.maxPositions()) + " tokens, rope theta " + number(shape.ropeTheta()) + ", "
                        + scaling(traits.ropeScaling()));
        if (traits.slidingWindow() > 0) {
            say(
                    "window",
                    count(traits.slidingWindow()) + " tokens"
                            + (traits.fullLayers() > 0 ? ", from layer " + traits.fullLayers() + " on" : ""));
        }
        List<String> extras = Stream.of(
                        shape.qkvBias() ? "biases on queries, keys and values" : "",
                        traits.outputBias() ? "a bias on the attention's output" : "",
                        traits.mlpBias() ? "biases in the feed-forward layers" : "",
                        traits.queryKeyNorm() ? "norms of queries and keys" : "")
                .filter(extra -> !extra.isEmpty())
                .toList();
        if (!extras.isEmpty()) {
            say("attention", String.join(", ", extras));
        }
    }

    /** Further matrices that are split into several tensors. */
    private static String others(List<WholeTensor> cut) {
        return switch (cut.size()) {
            case 1 -> "";
            case 2 -> "; so does " + cut.get(1).name();
            default -> "; so do " + count(cut.size() - 1) + " other matrices";
        };
    }

    private static String scaling(RopeScaling scaling) {
        if (scaling instanceof RopeScaling.Linear linear) {
            return "stretched linearly by " + number(linear.factor());
        }
        if (scaling instanceof RopeScaling.Llama3 llama3) {
            return "stretched as Llama 3's by " + number(llama3.factor()) + " from "
                    + count(llama3.originalMaxPositions());
        }
        if (scaling instanceof RopeScaling.Yarn yarn) {
            return "stretched by YaRN by " + number(yarn.factor()) + " from " + count(yarn.originalMaxPositions());
        }
        return "not stretched";
    }

    /** Facts from an unsupported config. */
    private void raw(JsonNode config) {
        for (String key : List.of(
                "num_hidden_layers",
                "hidden_size",
                "num_attention_heads",
                "num_key_value_heads",
                "vocab_size",
                "max_position_embeddings")) {
            if (config.hasNonNull(key)) {
                lines.addAll(Lines.wrapped("  ", key + " " + config.get(key)));
            }
        }
    }

    private void files() throws IOException {
        try {
            Map<String, StoredTensor> layout = checkpoint.layout();
            Map<String, Long> bytesOf = new TreeMap<>();
            layout.values().forEach(tensor -> bytesOf.merge(tensor.type(), tensor.bytes(), Long::sum));
            long files =
                    layout.values().stream().map(StoredTensor::file).distinct().count();
            say(
                    "files",
                    files + (files == 1 ? " file with " : " files with ") + layout.size() + " tensors, "
                            + bytesOf.entrySet().stream()
                                    .map(each -> bytes(each.getValue()) + " of " + each.getKey())
                                    .collect(Collectors.joining(", ")));
        } catch (CheckpointException e) {
            unsupported.add(e.getMessage());
        }
        TreeSet<String> others = new TreeSet<>();
        for (String name :
                List.of("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")) {
            if (checkpoint.path().resolve(name).toFile().isFile()) {
                others.add(name);
            }
        }
        say("also has", others.isEmpty() ? "no tokenizer" : String.join(", ", others));
    }

    private void costs(DecoderShape shape) {
        long parameters = shape.parameterCount();
        long weights = parameters * Float.BYTES;
        long cache = 2L * shape.layers() * shape.kvHeads() * shape.headSize() * Float.BYTES;
        WeightsConfig defaults = WeightsConfig.defaults().with(Dtype.BF16);
        VersionSize whole = VersionSize.of(shape);
        lines.add("");
        lines.add("memory (as float32)");
        say("weights", bytes(weights) + " for each copy: generator, scorer and learner have one of their own");
        say(
                "learner",
                bytes(weights) + " of gradients and " + bytes(3 * weights)
                        + " of optimiser's masters and moments, in addition to its weights");
        gradient(shape);
        say("generator", bytes(cache) + " of cache for each token; weights twice with multi_version and during a swap");
        lines.add("");
        lines.add("on the log");
        say(
                "version",
                bytes(parameters * Dtype.BF16.bytes()) + " of bfloat16 (weights.dtype), every "
                        + defaults.anchorEvery(whole) + "th; between them what changed");
        int every = defaults.checkpointEvery(whole);
        say(
                "optimiser",
                bytes(3 * weights) + " with every " + (every == 1 ? "" : every + "th ") + "version, for resuming");
        adapters(shape, defaults);
    }

    /** Sequences per pass of the gradient, and their memory. */
    private void gradient(DecoderShape shape) {
        StepConfig step = StepConfig.defaults();
        int length = Math.min(GRADIENT_TOKENS, shape.maxPositions());
        PassMemory kept = PassMemory.of(shape, Optional.empty(), Activations.KEPT, step.logits());
        PassMemory again = PassMemory.of(shape, Optional.empty(), Activations.RECOMPUTED, step.logits());
        long bound = step.limit(shape).bytes();
        long one = kept.bytes(1, length);
        say(
                "gradient",
                bytes(one) + " for one sequence of " + count(length) + " tokens, " + bytes(again.bytes(1, length))
                        + " where its layers are computed again (learner.step.recompute); each of " + step.shards()
                        + " shards may take " + bytes(bound) + " (learner.step.memory_mb), "
                        + (one <= bound
                                ? "so " + kept.sequences(length, step.limit(shape)) + " of these go at once"
                                : "so learner.step.memory_mb must be raised for sequences of that length"));
    }

    /** The same for training adapters instead of the weights. */
    private void adapters(DecoderShape shape, WeightsConfig defaults) {
        VersionSize size;
        try {
            size = VersionSize.of(shape, Optional.of(new LoraShape(loraRank, 1, LoraShape.MODULES)));
        } catch (IllegalArgumentException e) {
            say("adapters", String.valueOf(e.getMessage()));
            return;
        }
        int every = defaults.checkpointEvery(size);
        say(
                "adapters",
                "of rank " + loraRank + " (learner.lora.rank) in place of these: " + count(size.parameters())
                        + String.format(
                                Locale.ROOT, " parameters, %.2g %%", 100.0 * size.parameters() / shape.parameterCount())
                        + "; version " + bytes(defaults.versionBytes(size)) + ", every "
                        + defaults.anchorEvery(size) + "th, optimiser " + bytes(defaults.stateBytes(size))
                        + " with every " + (every == 1 ? "one" : every + "th"));
    }

    private static String architectures(JsonNode config) {
        JsonNode architectures = config.path("architectures");
        return architectures.isArray() && !architectures.isEmpty()
                ? " (" + architectures.get(0).asText() + ")"
                : "";
    }

    private static String text(JsonNode config, String key) {
        return config.path(key).asText("not said");
    }

    private void say(String label, String text) {
        lines.addAll(Lines.labelled(label, text));
    }

    private static String count(long number) {
        return String.format(Locale.ROOT, "%,d", number);
    }

    private static String number(double value) {
        return value == Math.rint(value) ? count((long) value) : Double.toString(value);
    }

    /** Three digits and a unit. */
    private static String bytes(long bytes) {
        String[] units = {"B", "kB", "MB", "GB", "TB"};
        double value = bytes;
        int unit = 0;
        while (value >= 999.5 && unit < units.length - 1) {
            value /= 1000;
            unit++;
        }
        return String.format(
                Locale.ROOT,
                unit == 0 || value >= 99.95 ? "%.0f %s" : value >= 9.995 ? "%.1f %s" : "%.2f %s",
                value,
                units[unit]);
    }
}
