package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.AlgorithmBuilder;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.None;
import dev.millrace.replay.Alternative;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.VerlKeys;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Resolves {@code --corrections}: a file with keys of {@code algorithm} that override the run's or those of a variant
 * that the file names; one of verl's presets, which replaces the run's weights and rejection; a named algorithm; or
 * {@code none}.
 */
public final class NamedCorrections {
    private static final String SECTION = "algorithm";

    private NamedCorrections() {}

    /** @throws ConfigException if it names none of these, or the named parts contradict each other */
    public static Alternative parse(String named, Algorithm ofRun) {
        if (named.equals("none")) {
            try {
                return new Alternative("none", none(ofRun));
            } catch (IllegalArgumentException e) {
                throw new ConfigException(
                        "--corrections none does not fit the run's objective, which includes a correction: "
                                + e.getMessage() + "; --corrections ppo or grpo names a whole algorithm in its place",
                        e);
            }
        }
        Path file = Path.of(named);
        if (Files.isRegularFile(file)) {
            return new Alternative(file.getFileName().toString(), read(named, ConfigTree.read(file), ofRun));
        }
        if (named.endsWith(".yaml") || named.endsWith(".yml")) {
            throw new ConfigException("there is no file " + named + " with corrections");
        }
        try {
            return new Alternative(
                    named,
                    NamedAlgorithms.withPreset(ofRun, named)
                            .orElseGet(() -> NamedAlgorithms.of(named)
                                    .with(a -> a.staleness(ofRun.staleness())
                                            .missingOldLogProbs(ofRun.missingOldLogProbs()))));
        } catch (IllegalArgumentException e) {
            throw new ConfigException(
                    "--corrections " + named + " is neither a file, nor none, nor a known algorithm: " + e.getMessage(),
                    e);
        }
    }

    /** Keys of {@code algorithm}, also under that section. */
    public static Algorithm read(String named, ObjectNode tree, Algorithm ofRun) {
        try {
            ObjectNode keys = tree.size() == 1 && tree.get(SECTION) instanceof ObjectNode section ? section : tree;
            VerlKeys.read(keys);
            return ConfigBinder.bind(ofRun, keys);
        } catch (ConfigException e) {
            throw new ConfigException("--corrections " + named + ": " + e.getMessage(), e);
        }
    }

    /** No weights, masks or scaled step; only the limit on staleness, which decides what is in the batch. */
    static Algorithm none(Algorithm ofRun) {
        return ofRun.with(NamedCorrections::uncorrected);
    }

    /**
     * As {@link #none}, for an algorithm whose other parts are replaced first, since its objective may need
     * corrections.
     */
    static AlgorithmBuilder uncorrected(AlgorithmBuilder algorithm) {
        return algorithm
                .weights(new None())
                .rejection(Rejection.defaults())
                .masks()
                .ess(new Ess(Ess.Rule.NONE, Ess.Weights.RAW, 1.0));
    }
}
