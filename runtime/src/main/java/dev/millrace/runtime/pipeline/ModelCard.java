package dev.millrace.runtime.pipeline;

import dev.millrace.policy.weights.Dtype;
import dev.millrace.runtime.pipeline.ModelExport.Done;
import dev.millrace.runtime.pipeline.ModelExport.Start;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.PolicyFeed;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** The {@code README.md} of an exported model: where it comes from. */
final class ModelCard {
    private static final Map<String, String> NAMES = Map.of("F32", "float32", "BF16", "bfloat16", "F16", "float16");

    private ModelCard() {}

    static String text(RunIdentity run, Done done) {
        PolicyVersion version = done.manifest();
        String types = new TreeSet<>(done.types())
                .stream().map(type -> NAMES.getOrDefault(type, type)).collect(Collectors.joining(", "));
        List<String[]> rows = List.of(
                row("run", "`" + run.runId() + "`"),
                row("epoch", Integer.toString(version.getEpoch())),
                row(
                        "version",
                        version.getVersion()
                                + (version.getBatchId() < 0
                                        ? ", the start of the run"
                                        : ", made by batch " + version.getBatchId())),
                row(
                        "published",
                        Instant.ofEpochMilli(version.getPublishedAtMs()).toString()),
                row("optimiser steps", Long.toString(version.getOptimizerSteps())),
                row("rollouts consumed", Long.toString(version.getRolloutsConsumed())),
                row("tokens trained", Long.toString(version.getTokensTrained())),
                row("trained", adapter(version)),
                row("weights (SHA-256)", "`" + version.getWeights().getSha256() + "`"),
                row(
                        "written as",
                        types
                                + (done.adapter()
                                        ? ", the adapter bit for bit"
                                        : done.isExact()
                                                ? ", the version bit for bit"
                                                : ", rounded from the version's " + name(done.own()))),
                row("began with", start(done.start())),
                row(
                        "start's weights (SHA-256)",
                        done.start().sha256().map(hash -> "`" + hash + "`").orElse("not known any more")));
        return "---\nlibrary_name: " + (done.adapter() ? "peft" : "transformers")
                + "\npipeline_tag: text-generation\ntags: [millrace, reinforcement-learning]\n---\n\n# "
                + run.runId() + ", version " + version.getVersion()
                + "\n\nTrained by reinforcement learning with Millrace.\n\n| | |\n| --- | --- |\n"
                + rows.stream()
                        .map(row -> "| " + row[0] + " | " + row[1] + " |\n")
                        .collect(Collectors.joining())
                + "\nThe hashes are over the bytes of all tensors as little-endian " + name(PolicyFeed.dtypeOf(version))
                + ", in the decoder's order, as the run's\nmanifests have them."
                + (version.getAdapter() == null ? "" : " That of the weights is the adapter's.") + "\n";
    }

    private static String adapter(PolicyVersion version) {
        return PolicyFeed.adapterOf(version)
                .map(low -> "an adapter of rank " + low.rank() + ", alpha " + alpha(low.alpha()) + " to "
                        + String.join(", ", low.targetModules())
                        + ", on the start's weights")
                .orElse("all weights");
    }

    private static String alpha(double alpha) {
        return alpha == Math.rint(alpha) ? Long.toString((long) alpha) : Double.toString(alpha);
    }

    private static String name(Dtype dtype) {
        return NAMES.getOrDefault(dtype.name(), dtype.name());
    }

    private static String[] row(String name, String value) {
        return new String[] {name, value};
    }

    private static String start(Start start) {
        if (start.checkpoint().isEmpty()) {
            return "random weights";
        }
        String name = String.valueOf(Path.of(start.checkpoint()).getFileName());
        return "`" + name + "`"
                + start.lack().map(lack -> ", which was not available").orElse("");
    }
}
